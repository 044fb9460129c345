//! The ClusterSet that all tests share, and a Pod in each cluster that asks.

use std::{any::Any, collections::BTreeSet, panic::AssertUnwindSafe, time::Duration};

use e2e::{
    ask::{Protocol, Silence},
    bring_up::bring_up_nodes,
    cluster::Cluster,
    cluster_set::says,
    fixture::{RUNTIME, SET, SYSTEM},
    manifests,
    pod::nodes_are_possible_for,
    seen::imported,
    waiting::{VOUCHED, always, eventually, within},
};
use fleet::{
    Fleet,
    cluster_set::{self, DaemonImage},
};
use futures::{FutureExt, future::join_all};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};

/// Clusters with IPv4; the first two have IPv6, too.
pub const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
/// A cluster without IPv4.
pub const SIX: &str = "six";
const FAMILIES: [&str; 4] = ["leader=dual", "east=dual", "west=ipv4", "six=ipv6"];
/// Namespace and name of the Pod that asks, in each cluster.
pub const CLIENT: (&str, &str) = ("default", "client");
/// A daemon that did not come up says what it waits for only in its log and the Pod's status.
const UP: Duration = Duration::from_secs(300);

/// Why it did not come up, if it did not: then each test fails at once and says it again.
static WORLD: OnceCell<Result<World, String>> = OnceCell::const_new();
static TURN: Mutex<()> = Mutex::const_new(());

/// Never dropped: the fleet ends with this process, whatever ends it.
pub struct World {
    pub fleet: Fleet,
    clusters: Vec<Cluster>,
}

/// Runs a test, unless there can be no nodes here. The test has the ClusterSet for itself.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    if !nodes_are_possible_for(&FAMILIES) {
        return;
    }
    RUNTIME.block_on(async {
        let _turn = TURN.lock().await;
        let up = async || AssertUnwindSafe(World::up()).catch_unwind().await.map_err(|panic| said(&*panic));
        let world = match WORLD.get_or_init(up).await {
            Ok(world) => world,
            Err(why) => panic!("no ClusterSet: {why}"),
        };
        // A test that failed may have stopped it.
        let _: Deployment =
            world.cluster("leader").patch(SYSTEM, "freeport-leader", &json!({"spec": {"replicas": 1}})).await;
        for cluster in CLUSTERS.into_iter().chain([SIX]) {
            world.daemons_run(cluster).await;
        }
        test(world).await;
    });
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}

impl World {
    /// `leader` leads and `east` belongs by what `manifests/` holds, then all do by the commands.
    async fn up() -> Self {
        let (fleet, clusters) = bring_up_nodes("pods", &FAMILIES).await.unwrap();
        cluster_set::load_daemons(&fleet, DaemonImage::OfManifests).await.unwrap();
        manifests::apply(&fleet, "leader", "east").await;
        let world = Self { fleet, clusters };
        world.runs("leader", "freeport-leader").await;
        world.runs("east", "freeport-member").await;
        within(VOUCHED, "the daemons of manifests/ are connected", || {
            says(world.cluster("east"), SYSTEM, ("True", "Connected"))
        })
        .await;
        cluster_set::deploy(&world.fleet, SET, &mut |_: &str| {}).await.unwrap();
        join_all(world.clusters.iter().map(|cluster| cluster.run_server(CLIENT.0, CLIENT.1))).await;
        world
    }

    pub fn cluster(&self, name: &str) -> &Cluster {
        self.clusters.iter().find(|cluster| cluster.name == name).unwrap()
    }

    /// A Namespace in all clusters.
    pub async fn namespace(&self, name: &str) {
        join_all(self.clusters.iter().map(|cluster| cluster.create_namespace(name))).await;
    }

    pub async fn release(&self, namespace: &str) {
        join_all(self.clusters.iter().map(|cluster| cluster.release_namespace(namespace))).await;
    }

    /// The daemons of a cluster are ready.
    pub async fn daemons_run(&self, cluster: &str) {
        if cluster == "leader" {
            self.runs(cluster, "freeport-leader").await;
        }
        self.runs(cluster, "freeport-member").await;
    }

    async fn runs(&self, cluster: &str, daemon: &str) {
        let deployments = self.cluster(cluster).api::<Deployment>(SYSTEM);
        within(UP, &format!("{daemon} is ready in {cluster}"), || async {
            let found = deployments.get(daemon).await.map_err(|error| error.to_string())?;
            let status = found.status.unwrap_or_default();
            let is_new = status.observed_generation == found.metadata.generation;
            let has_one = (status.available_replicas, status.replicas) == (Some(1), Some(1));
            if is_new && has_one { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// Asks from the client of `cluster`.
    pub async fn ask(
        &self,
        cluster: &str,
        protocol: Protocol,
        server: (&str, u16),
    ) -> Result<String, Silence> {
        self.cluster(cluster).ask_from(CLIENT, protocol, server, "hostname").await
    }

    /// The ClusterIP of an imported Service, once there is one.
    pub async fn vip(&self, cluster: &str, namespace: &str, service: &str) -> String {
        eventually(&format!("{cluster} imports {service}"), || async {
            imported(self.cluster(cluster), namespace, service).await.map(|import| import.vip)
        })
        .await
    }

    /// Waits until exactly these answer in `cluster` at a host and a port.
    pub async fn answer(
        &self,
        cluster: &str,
        protocol: Protocol,
        server: (&str, u16),
        names: &BTreeSet<String>,
    ) {
        eventually(&format!("{names:?} answer {cluster} by {protocol} as {server:?}"), || async {
            match self.cluster(cluster).answers_to(CLIENT, protocol, server).await {
                Ok(seen) if seen == *names => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Waits until nobody answers in `cluster` at a host and a port, and stays that way.
    pub async fn nobody_answers(&self, cluster: &str, server: (&str, u16)) {
        let asked = || async {
            match self.ask(cluster, Protocol::Http, server).await {
                Err(Silence::NoAnswer(_)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        };
        eventually(&format!("nobody answers {cluster} as {server:?}"), asked).await;
        always(&format!("nobody answers {cluster} as {server:?}"), asked).await;
    }

    /// Waits until a name stands for nothing in `cluster`.
    pub async fn is_no_name(&self, cluster: &str, host: &str) {
        eventually(&format!("{host} is no name in {cluster}"), || async {
            match self.ask(cluster, Protocol::Http, (host, 80)).await {
                Err(Silence::NoAnswer(why)) if why.contains("no such host") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}
