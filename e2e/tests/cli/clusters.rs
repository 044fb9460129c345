//! Clusters of these tests, and the programs people use on them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use e2e::{
    cluster::Cluster,
    shared::{Fixture, Shared},
    waiting::eventually,
    world::World,
};
use fleet::program;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use serde_json::Value;

use crate::cli::program::{Ran, run};

/// A ClusterSet with its daemons.
pub(crate) const SET: [&str; 3] = ["leader", "east", "west"];
/// Without anything but Kubernetes, to begin with.
pub(crate) const PAIR: [&str; 2] = ["hub", "spoke"];

pub(crate) static CLUSTERS: Shared<Clusters> =
    Shared::new("cli", SET.len(), || Box::pin(Clusters::up("cli", &SET)));
pub(crate) static PAIRED: Shared<Clusters> =
    Shared::new("cli-pair", PAIR.len(), || Box::pin(Clusters::up("cli-pair", &PAIR)));

/// The clusters, and the programs.
pub(crate) struct Clusters {
    pub world: World,
    freeport: PathBuf,
    plugin: PathBuf,
}

impl Fixture for Clusters {
    fn dir(&self) -> &Path {
        self.world.real().fleet.dir()
    }
}

impl Clusters {
    pub(crate) async fn up(name: &str, clusters: &[&str]) -> Self {
        let world = World::bring_up(name, clusters).await;
        let freeport = program::path("cli", "freeport").await.unwrap();
        let plugin = program::path("cli", "kubectl-freeport").await.unwrap();
        Self { world, freeport, plugin }
    }

    pub(crate) fn cluster(&self, name: &str) -> &Cluster {
        self.world.cluster(name)
    }

    /// Runs `freeport` with the words of `line`.
    pub(crate) async fn freeport(&self, line: &str) -> Ran {
        run(&self.freeport, line, &[("KUBECONFIG", &self.world.real().fleet.kubeconfig())], "").await
    }

    /// Runs `freeport` where there is no kubeconfig.
    pub(crate) async fn freeport_alone(&self, line: &str) -> Ran {
        run(&self.freeport, line, &[("KUBECONFIG", Path::new("/nowhere"))], "").await
    }

    /// Runs `kubectl` with the words of `line`; it finds `kubectl-freeport` in its PATH.
    pub(crate) async fn kubectl(&self, line: &str) -> Ran {
        self.kubectl_reading(line, "").await
    }

    /// [`Self::kubectl`] with this input.
    pub(crate) async fn kubectl_reading(&self, line: &str, stdin: &str) -> Ran {
        self.run(&self.world.real().fleet.kubectl(), line, stdin).await
    }

    /// Runs a command that was printed for people to run.
    pub(crate) async fn shell(&self, command: &str) -> Ran {
        self.run(Path::new("/bin/sh"), "-s", command).await
    }

    async fn run(&self, program: &Path, line: &str, stdin: &str) -> Ran {
        // Its cache goes with the fleet.
        let (kubectl, cache) = (
            self.world.real().fleet.kubectl(),
            self.world.real().fleet.clusters()[0].dir().join("kubectl-cache"),
        );
        let path = env::join_paths([kubectl.parent().unwrap(), self.plugin.parent().unwrap()]).unwrap();
        let config = self.world.real().fleet.kubeconfig();
        let env: [(&str, &Path); 3] =
            [("KUBECONFIG", &config), ("KUBECACHEDIR", &cache), ("PATH", Path::new(&path))];
        run(program, line, &env, stdin).await
    }

    /// A folder for kubeconfigs of daemons, which goes with the cluster.
    pub(crate) fn folder(&self, cluster: &str) -> String {
        self.world.real().fleet.cluster(cluster).unwrap().dir().join("daemons").display().to_string()
    }

    /// What people, and the programs they run, have asked the cluster to write so far: `verb uri code`.
    pub(crate) async fn written_by_people(&self, cluster: &str) -> Vec<String> {
        let mark = self.mark(cluster).await;
        let log = self.world.real().fleet.cluster(cluster).unwrap().audit_log();
        let lines = within_the_log(&log, &mark).await;
        let events = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_people =
            events.filter(|event| !event["user"]["username"].as_str().unwrap().starts_with("system:"));
        let request = |event: Value| {
            let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
            let code = &event["responseStatus"]["code"];
            format!("{} {} {code}", text(&event["verb"]), text(&event["requestURI"]))
        };
        of_people.map(request).filter(|line| !line.contains(MARK)).collect()
    }

    /// Asks for something that the audit log tells of: what was asked for before is before it.
    async fn mark(&self, cluster: &str) -> String {
        let name = format!("{MARK}-{:x}", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos());
        let config_maps = self.cluster(cluster).api::<ConfigMap>("default");
        let deleted = config_maps.delete(&name, &DeleteParams::default()).await;
        assert!(deleted.is_err(), "there is no {name}");
        name
    }
}

const MARK: &str = "audit-mark";

/// The lines of an audit log before the mark.
async fn within_the_log(log: &Path, mark: &str) -> Vec<String> {
    eventually("the audit log is written", || async {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let end = lines.iter().rposition(|line| line.contains(mark));
        end.map(|end| lines[..end].to_vec()).ok_or(format!("{} lines", lines.len()))
    })
    .await
}
