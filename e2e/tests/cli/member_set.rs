//! The ClusterSet of three clusters, set up by the commands, with its daemons under the fleet's care.

use std::{fs, path::PathBuf};

use api::cluster_set::ClusterSet;
use e2e::{
    cluster::Cluster,
    seen::{imported, right},
    waiting::{VOUCHED, within},
    world::pace,
};
use fleet::{Component, Exit, ProcessSpec, program};
use futures::future::join_all;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Secret, Service},
    discovery::v1::EndpointSlice,
};
use kube::Api;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::cli::{
    clusters::{CLUSTERS, Clusters, SET},
    contents::Contents,
};

pub(crate) const NAME: &str = "demo";
pub(crate) const AREA: &str = "clusterset-demo";
pub(crate) const SYSTEM: &str = "freeport-system";
/// Namespace in which users of `east` had Services before it joined anything.
pub(crate) const SHOP: &str = "shop";

/// Of the clusters that are there.
static MADE: Mutex<Option<&'static MemberSet>> = Mutex::const_new(None);

/// The ClusterSet: led by `leader`, with member `west`. `east` joins in tests.
pub(crate) struct MemberSet {
    pub clusters: &'static Clusters,
    leader_program: PathBuf,
    member_program: PathBuf,
    /// What was in `east` before Freeport was.
    pub before: Contents,
}

/// Runs a test that has the ClusterSet for itself: `leader` and `west` are members, with their daemons.
pub(crate) fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static MemberSet) -> F) {
    CLUSTERS.one_by_one(async |clusters| {
        let set = MemberSet::of(clusters).await;
        // A test that failed may have left anything.
        let fleet = &clusters.world.real().fleet;
        let hub = fleet.cluster("leader").unwrap();
        let api_server = fleet.process(&hub.process_name(Component::ApiServer)).await.unwrap();
        if !api_server.unwrap().is_running().await.unwrap() {
            hub.start(Component::ApiServer).await.unwrap();
        }
        for cluster in ["leader", "west"] {
            set.join(cluster).await;
        }
        // What goes with a Namespace of the test before this one is not well meanwhile.
        clusters.world.quiet().await;
        test(set).await;
    });
}

impl MemberSet {
    /// The one of these clusters. Its daemons end with them.
    async fn of(clusters: &'static Clusters) -> &'static Self {
        let mut made = MADE.lock().await;
        match *made {
            Some(set) if std::ptr::eq(set.clusters, clusters) => set,
            _ => made.insert(Box::leak(Box::new(Self::up(clusters).await))),
        }
    }

    async fn up(clusters: &'static Clusters) -> Self {
        users_were_here(clusters.cluster("east")).await;
        let before = Contents::at_rest(clusters, "east").await;
        let leader_program = program::path("leader", "freeport-leader").await.unwrap();
        let member_program = program::path("member", "freeport-member").await.unwrap();
        let set = Self { clusters, leader_program, member_program, before };
        set.join("leader").await;
        set
    }

    pub(crate) fn cluster(&self, name: &str) -> &Cluster {
        self.clusters.cluster(name)
    }

    /// `freeport init` for the leader, `freeport join` for others; their daemons run then.
    pub(crate) async fn join(&self, cluster: &str) {
        self.join_as(cluster, cluster).await;
    }

    /// [`join`](Self::join) under another ID than the cluster's name.
    pub(crate) async fn join_as(&self, cluster: &str, id: &str) {
        let (dir, clusters) = (self.clusters.folder(cluster), self.clusters);
        let at = if cluster == "leader" {
            format!("init --clusterset {NAME} --cluster-id leader --context leader --external {dir}")
        } else {
            format!(
                "join --clusterset {NAME} --cluster-id {id} --context {cluster} --leader-context leader --external {dir}"
            )
        };
        let said = clusters.freeport(&at).await.succeeded();
        let daemons = ["freeport-leader", "freeport-member"];
        for daemon in daemons.into_iter().filter(|daemon| *daemon == "freeport-member" || cluster == "leader")
        {
            let had = said.contains(&format!("unchanged {dir}/{daemon}.kubeconfig"));
            self.start(daemon, cluster, had).await;
        }
    }

    /// Starts a daemon, unless it runs and `may_run` on.
    async fn start(&self, daemon: &str, cluster: &str, may_run: bool) {
        let fleet = &self.clusters.world.real().fleet;
        let name = format!("{daemon}-{cluster}");
        if let Some(process) = fleet.process(&name).await.unwrap()
            && process.is_running().await.unwrap()
        {
            if may_run {
                return;
            }
            process.stop().await.unwrap();
        }
        let program = if daemon == "freeport-leader" { &self.leader_program } else { &self.member_program };
        let kubeconfig = format!("{}/{daemon}.kubeconfig", self.clusters.folder(cluster));
        let spec = ProcessSpec::new(name, program)
            .args(["--kubeconfig".to_owned(), kubeconfig])
            .args(["--listen".to_owned(), "127.0.0.1:0".to_owned()]);
        let (name, value) = pace();
        fleet.run(spec.env(name, value)).await.unwrap();
    }

    /// Stops the member's daemon, as deleting its Deployment does.
    pub(crate) async fn stop_member(&self, cluster: &str) {
        let process = self
            .clusters
            .world
            .real()
            .fleet
            .process(&format!("freeport-member-{cluster}"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(process.stop().await.unwrap(), Exit::Status(0), "see {}", process.log().display());
    }

    /// Kills the member's daemon: it says farewell to nobody.
    pub(crate) async fn kill_member(&self, cluster: &str) {
        let process = self
            .clusters
            .world
            .real()
            .fleet
            .process(&format!("freeport-member-{cluster}"))
            .await
            .unwrap()
            .unwrap();
        process.kill().await.unwrap();
    }

    /// Waits until Service `web` of the Namespace is imported in each of `into` with endpoints of exactly these clusters.
    pub(crate) async fn imports(&self, namespace: &str, web: &str, from: &[&str], into: &[&str]) {
        join_all(into.iter().map(async |&into| {
            let what = format!("{into} imports {web} from {from:?}");
            within(VOUCHED, &what, || async {
                let seen = right(imported(self.cluster(into), namespace, web).await, |seen| {
                    seen.endpoints.keys().eq(from) && seen.clusters.iter().eq(from)
                });
                seen.map_err(|seen| format!("{seen}; {}", self.logs()))
            })
            .await
        }))
        .await;
    }

    /// The ends of the daemons' logs, for failure messages.
    fn logs(&self) -> String {
        let logs = SET.map(|cluster| {
            let log = self
                .clusters
                .world
                .real()
                .fleet
                .dir()
                .join("logs")
                .join(format!("freeport-member-{cluster}.log"));
            let text = fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            format!("log of {cluster}:\n{}", lines[lines.len().saturating_sub(30)..].join("\n"))
        });
        logs.join("\n")
    }

    /// What the member's cluster holds of a membership, imports apart.
    pub(crate) async fn traces(&self, cluster: &str) -> Vec<String> {
        let of = self.cluster(cluster);
        let mut traces = Vec::new();
        if of.api::<ClusterSet>(SYSTEM).get_opt(NAME).await.unwrap().is_some() {
            traces.push("ClusterSet");
        }
        if of.api::<ConfigMap>(SYSTEM).get_opt(api::membership::NAME).await.unwrap().is_some() {
            traces.push("note");
        }
        if of.api::<Secret>(SYSTEM).get_opt("freeport-leader-demo").await.unwrap().is_some() {
            traces.push("credential");
        }
        traces.into_iter().map(str::to_owned).collect()
    }
}

/// What users have that is named or labelled much like what Freeport makes, and is none of its business.
async fn users_were_here(east: &Cluster) {
    // Clusters may outlive a set of them.
    if Api::<Namespace>::all(east.client.clone()).get_opt(SHOP).await.unwrap().is_some() {
        return;
    }
    east.create_namespace(SHOP).await;
    east.service(SHOP, "web", &[("http", 80)]).await;
    east.slice(SHOP, "web", "web-1", &["10.1.0.1"], &[("http", 8080)]).await;
    east.service(SHOP, "antrea-mc-old", &[("http", 80)]).await;
    let labels = json!({"app.kubernetes.io/managed-by": "freeport"});
    let _: Service = east
        .create(
            SHOP,
            json!({"metadata": {"name": "labelled", "labels": labels}, "spec": {"ports": [{"port": 80}]}}),
        )
        .await;
    // Copied from what an import consists of, to have it under another name.
    let copied = json!({"app.kubernetes.io/managed-by": "freeport", "multicluster.kubernetes.io/service-name": "labelled"});
    let service =
        json!({"metadata": {"name": "copied", "labels": copied}, "spec": {"ports": [{"port": 80}]}});
    let _: Service = east.create(SHOP, service).await;
    let labels = json!({
        "app.kubernetes.io/managed-by": "freeport",
        "kubernetes.io/service-name": "copied",
        "multicluster.kubernetes.io/service-name": "labelled",
        "multicluster.kubernetes.io/source-cluster": "west",
        "endpointslice.kubernetes.io/managed-by": "freeport",
    });
    slice(east, "copied-1", &labels, "10.9.0.2").await;
    let labels = json!({
        "kubernetes.io/service-name": "antrea-mc-old",
        "multicluster.kubernetes.io/service-name": "old",
        "multicluster.kubernetes.io/source-cluster": "elsewhere",
        "endpointslice.kubernetes.io/managed-by": "another-implementation",
    });
    slice(east, "old-1", &labels, "10.9.0.1").await;
    let _: Secret = east
        .create(SHOP, json!({"metadata": {"name": "freeport-leader-demo"}, "stringData": {"token": "ours"}}))
        .await;
    let _: ConfigMap = east
        .create(SHOP, json!({"metadata": {"name": api::membership::NAME}, "data": {"leave": "withdraw"}}))
        .await;
}

async fn slice(cluster: &Cluster, name: &str, labels: &Value, address: &str) {
    let metadata = json!({"name": name, "labels": labels});
    let endpoints = json!([{"addresses": [address]}]);
    let slice = json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints});
    let _: EndpointSlice = cluster.create(SHOP, slice).await;
}
