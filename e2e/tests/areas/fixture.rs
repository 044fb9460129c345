//! Two ClusterSets of one fleet, led by one freeport-leader.

use std::{
    env,
    io::Write,
    panic::{AssertUnwindSafe, resume_unwind},
};

use api::{condition::AntreaCondition, resource_export::ResourceExport};
use e2e::{
    cluster::Cluster,
    daemon::{LEADER, log_tail},
    fixture::RUNTIME,
    metrics::Metrics,
    seen::imported,
    waiting::eventually,
};
use fleet::{
    Fleet, Lifetime, Options,
    cluster_set::{self, Composition, Daemon},
};
use futures::{FutureExt, future::join_all};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::PostParams;
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};

/// Led by `leader`, which is a member; so is `east`.
pub const FIRST: &str = "first";
/// Led by `leader`, which is no member; `west` is.
pub const SECOND: &str = "second";
const CLUSTERS: [&str; 3] = ["leader", "east", "west"];

static WORLD: OnceCell<World> = OnceCell::const_new();
static TURN: Mutex<()> = Mutex::const_new(());

/// The Common Area of a set.
pub fn area(set: &str) -> String {
    cli::objects::area::name(set)
}

/// Never dropped: the fleet ends with this process, whatever ends it.
pub struct World {
    pub fleet: Fleet,
    leader_daemon: Daemon,
    clusters: Vec<Cluster>,
}

impl World {
    async fn up() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = Options {
            dir: env::temp_dir().join(format!("freeport-areas-{}", std::process::id())),
            clusters: CLUSTERS.map(str::to_owned).into(),
            nodes: false,
            lifetime: Lifetime::Attached { remove: env::var_os("FREEPORT_KEEP").is_none() },
        };
        // Past the test runner's capture: the first time this builds for ten minutes.
        let progress = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
        let fleet = Fleet::up(options, progress).await.unwrap();
        let mut daemons = Vec::new();
        for (set, members) in [(FIRST, &["leader", "east"] as &[_]), (SECOND, &["west"])] {
            daemons = set_up(&fleet, set, members).await;
            for daemon in &daemons {
                daemon.ensure(&fleet).await.unwrap();
            }
            cluster_set::ready(&fleet, set, &daemons).await.unwrap();
        }
        let leader_daemon = daemons.into_iter().find(|daemon| daemon.spec.name == LEADER).unwrap();
        let mut clusters = Vec::new();
        for cluster in fleet.clusters() {
            let client = cluster.client().await.unwrap();
            clusters.push(Cluster { name: cluster.name().to_owned(), client });
        }
        Self { fleet, leader_daemon, clusters }
    }

    /// One more set, which has no members. Its daemon runs already.
    pub async fn one_more(&self, set: &str) {
        set_up(&self.fleet, set, &[]).await;
        self.is_served(set, true).await;
    }

    pub fn cluster(&self, name: &str) -> &Cluster {
        self.clusters.iter().find(|cluster| cluster.name == name).unwrap()
    }

    pub fn leader(&self) -> &Cluster {
        self.cluster("leader")
    }

    /// A Namespace of a test's own, in all clusters.
    pub async fn namespace(&self, name: &str) -> String {
        join_all(self.clusters.iter().map(|cluster| cluster.create_namespace(name))).await;
        name.to_owned()
    }

    /// Lets the Namespace go wherever it is.
    pub async fn release(&self, namespace: &str) {
        join_all(self.clusters.iter().map(|cluster| cluster.release_namespace(namespace))).await;
    }

    /// What a new Service of `east` exports gets to the leader's cluster: the first set does its work.
    pub async fn first_goes_on(&self, namespace: &str, service: &str) {
        self.cluster("east").exported(namespace, service, &["10.2.0.1"]).await;
        let what = format!("the first set goes on: {service}");
        eventually(&what, || self.gets_to("leader", namespace, service)).await;
    }

    /// The cluster imports the Service, or what is missing.
    pub async fn gets_to(&self, cluster: &str, namespace: &str, service: &str) -> Result<(), String> {
        let imported = imported(self.cluster(cluster), namespace, service).await;
        imported.map(drop).map_err(|missing| format!("{missing}; {}", self.log()))
    }

    /// Waits until the leader says that it is present in the set's Common Area, or that it is not.
    pub async fn is_served(&self, set: &str, present: bool) {
        eventually(&format!("{set} is served: {present}"), || async {
            match self.measured("freeport_present", set).await? {
                Some(value) if value == f64::from(u8::from(present)) => Ok(()),
                other => Err(format!("{other:?}; {}", self.log())),
            }
        })
        .await;
    }

    /// Waits until the leader says nothing about the set's Common Area any more.
    pub async fn is_forgotten(&self, set: &str) {
        eventually(&format!("{set} is forgotten"), || async {
            if self.metrics().await?.mentions(&area(set)) { Err(self.log()) } else { Ok(()) }
        })
        .await;
    }

    /// What the leader measures of a set.
    pub async fn measured(&self, metric: &str, set: &str) -> Result<Option<f64>, String> {
        Ok(self.metrics().await?.of(metric, "common_area", &area(set)))
    }

    /// What the leader measures.
    pub async fn metrics(&self) -> Result<Metrics, String> {
        let read = Metrics::read(self.leader_daemon.listen).await;
        read.map_err(|error| format!("{error}; {}", self.log()))
    }

    /// Tells one leader process from another.
    pub async fn leader_process(&self) -> u32 {
        let process = self.fleet.process(LEADER).await.unwrap().unwrap();
        assert!(process.is_running().await.unwrap(), "{}", self.log());
        process.pid().unwrap()
    }

    /// Ends the leader without a word.
    pub async fn kill_leader(&self) {
        self.fleet.process(LEADER).await.unwrap().unwrap().kill().await.unwrap();
    }

    pub async fn start_leader(&self) {
        self.leader_daemon.start(&self.fleet).await.unwrap();
    }

    /// Takes the leader's rights in a set's Common Area away while `meanwhile` runs, however that ends.
    pub async fn without_rights(&self, set: &str, meanwhile: impl AsyncFnOnce()) {
        let bindings = self.leader().api::<RoleBinding>(&area(set));
        let mut binding = bindings.get("freeport-leader").await.unwrap();
        self.leader().delete::<RoleBinding>(&area(set), "freeport-leader").await;
        let outcome = AssertUnwindSafe(Box::pin(meanwhile())).catch_unwind().await;
        (binding.metadata.uid, binding.metadata.resource_version) = (None, None);
        bindings.create(&PostParams::default(), &binding).await.unwrap();
        if let Err(failure) = outcome {
            resume_unwind(failure);
        }
    }

    /// Puts a record that cannot be judged into a set's Common Area.
    pub async fn bad_record(&self, set: &str, name: &str) {
        let spec = json!({"clusterID": "north", "namespace": "nowhere", "name": name, "kind": "Service"});
        let record = json!({"metadata": {"name": name}, "spec": spec});
        let _: ResourceExport = self.leader().create(&area(set), record).await;
    }

    /// What the leader says about a record.
    pub async fn said(&self, set: &str, record: &str) -> Vec<AntreaCondition> {
        let record = self.leader().api::<ResourceExport>(&area(set)).get(record).await.unwrap();
        record.status.unwrap_or_default().conditions
    }

    /// The last lines of the leader's log, for failure messages.
    pub fn log(&self) -> String {
        let log = self.fleet.dir().join("logs").join(format!("{LEADER}.log"));
        format!("the leader's log: {}", log_tail(&log))
    }
}

async fn set_up(fleet: &Fleet, set: &str, members: &[&str]) -> Vec<Daemon> {
    let composition = Composition {
        set: set.to_owned(),
        leader: "leader".to_owned(),
        members: members.iter().map(|&member| member.to_owned()).collect(),
    };
    cluster_set::set_up_as(fleet, &composition, &mut |_: &str| {}).await.unwrap()
}

/// Runs a test that has the fleet for itself.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _turn = TURN.lock().await;
        test(world).await;
    });
}
