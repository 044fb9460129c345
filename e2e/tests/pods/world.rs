//! The ClusterSet that all tests share, and a Pod in each cluster that asks.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    ask::Protocol,
    bring_up::bring_up_nodes,
    cluster::Cluster,
    fixture::{RUNTIME, SET, SYSTEM},
    manifests,
    pod::nodes_are_possible,
    seen::imported,
    waiting::{eventually, within},
};
use fleet::{Fleet, cluster_set};
use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use tokio::sync::{Mutex, OnceCell};

pub const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
/// Namespace and name of the Pod that asks, in each cluster.
pub const CLIENT: (&str, &str) = ("default", "client");
/// A daemon that did not come up says what it waits for only in its log and the Pod's status.
const UP: Duration = Duration::from_secs(120);

static WORLD: OnceCell<World> = OnceCell::const_new();
static TURN: Mutex<()> = Mutex::const_new(());

/// Never dropped: the fleet ends with this process, whatever ends it.
pub struct World {
    pub fleet: Fleet,
    clusters: Vec<Cluster>,
}

/// Runs a test, unless there can be no nodes here. The test has the ClusterSet for itself.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    if !nodes_are_possible() {
        return;
    }
    RUNTIME.block_on(async {
        let _turn = TURN.lock().await;
        let world = WORLD.get_or_init(World::up).await;
        for cluster in CLUSTERS {
            world.daemons_run(cluster).await;
        }
        test(world).await;
    });
}

impl World {
    /// `leader` leads and `east` belongs by what `manifests/` holds, then all do by the commands.
    async fn up() -> Self {
        let (fleet, clusters) = bring_up_nodes("pods", &CLUSTERS).await.unwrap();
        cluster_set::load(&fleet).await.unwrap();
        manifests::apply(&fleet, "leader", "east").await;
        let world = Self { fleet, clusters };
        world.runs("leader", "freeport-leader").await;
        world.runs("east", "freeport-member").await;
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
    ) -> Result<String, String> {
        self.cluster(cluster).ask_from(CLIENT, protocol, server, "hostname").await
    }

    /// The ClusterIP of an imported Service, once there is one.
    pub async fn vip(&self, cluster: &str, namespace: &str, service: &str) -> String {
        eventually(&format!("{cluster} imports {service}"), || async {
            imported(self.cluster(cluster), namespace, service).await.map(|import| import.vip)
        })
        .await
    }

    /// Waits until exactly these answer in `cluster`, on port 80 of `host`.
    pub async fn answer(&self, cluster: &str, protocol: Protocol, host: &str, names: &BTreeSet<String>) {
        eventually(&format!("{names:?} answer {cluster} by {protocol} as {host}"), || async {
            let seen = self.cluster(cluster).answers_to(CLIENT, protocol, (host, 80)).await?;
            if seen == *names { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await;
    }

    /// Waits until nobody answers in `cluster` on port 80 of `host`, with an error that says `why`.
    pub async fn nobody_answers(&self, cluster: &str, host: &str, why: &str) {
        eventually(&format!("nobody answers {cluster} as {host}"), || async {
            match self.ask(cluster, Protocol::Http, (host, 80)).await {
                Err(error) if error.contains(why) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}

/// Name of a Service for the whole set.
pub fn clusterset_name(namespace: &str, service: &str) -> String {
    format!("{service}.{namespace}.svc.clusterset.local")
}
