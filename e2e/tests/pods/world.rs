//! The ClusterSet that all tests share, and a Pod in each cluster that asks.

use std::{collections::BTreeSet, ops::Deref, path::Path};

use e2e::{
    ask::{Protocol, Silence},
    bring_up::bring_up_nodes,
    cluster_set::says,
    fixture::{SET, SYSTEM},
    manifests,
    pod::nodes_are_possible_for,
    seen::imported,
    shared::{Fixture, Shared},
    waiting::{PODS_READY, VOUCHED, always, eventually, within},
    world::World,
};
use fleet::cluster_set::{self, Composition, DaemonImage};
use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

/// Clusters with IPv4; the first two have IPv6, too.
pub(crate) const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
/// A cluster without IPv4.
pub(crate) const SIX: &str = "six";
const FAMILIES: [&str; 4] = ["leader=dual", "east=dual", "west=ipv4", "six=ipv6"];
/// Namespace and name of the Pod that asks, in each cluster.
pub(crate) const CLIENT: (&str, &str) = ("default", "client");
static PODS: Shared<Pods> = Shared::new("pods", 2 * FAMILIES.len(), || Box::pin(Pods::up()));

/// The ClusterSet.
pub(crate) struct Pods(World);

impl Deref for Pods {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

/// Runs a test beside others, unless there can be no nodes here.
pub(crate) fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static Pods) -> F) {
    if nodes_are_possible_for(&FAMILIES) {
        PODS.beside(async |pods| {
            pods.all_run().await;
            test(pods).await;
        });
    }
}

/// Runs a test that has the ClusterSet for itself, unless there can be no nodes here.
pub(crate) fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static Pods) -> F) {
    if nodes_are_possible_for(&FAMILIES) {
        PODS.alone(async |pods| {
            pods.all_run().await;
            test(pods).await;
        });
    }
}

impl Fixture for Pods {
    fn dir(&self) -> &Path {
        self.real().fleet.dir()
    }
}

impl Pods {
    /// `leader` leads and `east` belongs by what `manifests/` holds, then all do by the commands, and offload.
    async fn up() -> Self {
        let (fleet, clusters) = bring_up_nodes("pods", &FAMILIES).await.unwrap();
        cluster_set::load_daemons(&fleet, DaemonImage::OfManifests).await.unwrap();
        manifests::apply(&fleet, "leader", "east").await;
        let world = Self(World::new(fleet, clusters));
        world.runs("leader", "freeport-leader").await;
        world.runs("east", "freeport-member").await;
        within(VOUCHED, "the daemons of manifests/ are connected", || {
            says(world.cluster("east"), SYSTEM, ("True", "Connected"))
        })
        .await;
        let composition = Composition { offload: true, ..Composition::of_all(&world.real().fleet, SET) };
        cluster_set::deploy_as(&world.real().fleet, &composition, &mut |_: &str| {}).await.unwrap();
        join_all(world.clusters().iter().map(|cluster| cluster.run_server(CLIENT.0, CLIENT.1))).await;
        world
    }

    /// All daemons are ready, whatever a test that failed has left.
    async fn all_run(&self) {
        let one = json!({"spec": {"replicas": 1}});
        let _: Deployment = self.leader().patch(SYSTEM, "freeport-leader", &one).await;
        for cluster in CLUSTERS.into_iter().chain([SIX]) {
            self.daemons_run(cluster).await;
        }
    }

    /// The daemons of a cluster are ready.
    pub(crate) async fn daemons_run(&self, cluster: &str) {
        if cluster == "leader" {
            self.runs(cluster, "freeport-leader").await;
        }
        self.runs(cluster, "freeport-member").await;
    }

    async fn runs(&self, cluster: &str, daemon: &str) {
        let deployments = self.cluster(cluster).api::<Deployment>(SYSTEM);
        within(PODS_READY, &format!("{daemon} is ready in {cluster}"), || async {
            let found = deployments.get(daemon).await.map_err(|error| error.to_string())?;
            let status = found.status.unwrap_or_default();
            let is_new = status.observed_generation == found.metadata.generation;
            let has_one = (status.available_replicas, status.replicas) == (Some(1), Some(1));
            if is_new && has_one { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// Asks from the client of `cluster`.
    pub(crate) async fn ask(
        &self,
        cluster: &str,
        protocol: Protocol,
        server: (&str, u16),
    ) -> Result<String, Silence> {
        self.cluster(cluster).ask_from(CLIENT, protocol, server, "hostname").await
    }

    /// The ClusterIP of an imported Service, once there is one.
    pub(crate) async fn vip(&self, cluster: &str, namespace: &str, service: &str) -> String {
        eventually(&format!("{cluster} imports {service}"), || async {
            imported(self.cluster(cluster), namespace, service).await.map(|import| import.vip)
        })
        .await
    }

    /// Waits until exactly these answer in `cluster` at a host and a port.
    pub(crate) async fn answer(
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
    pub(crate) async fn nobody_answers(&self, cluster: &str, server: (&str, u16)) {
        let asked = || async {
            match self.ask(cluster, Protocol::Http, server).await {
                Err(Silence::NoAnswer(_)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        };
        eventually(&format!("nobody answers {cluster} as {server:?}"), asked).await;
        let asked = || async {
            match self.ask(cluster, Protocol::Http, server).await {
                Ok(heard) => Err(heard),
                Err(_) => Ok(()),
            }
        };
        always(&format!("nobody answers {cluster} as {server:?}"), asked).await;
    }

    /// Waits until a name stands for nothing in `cluster`.
    pub(crate) async fn is_no_name(&self, cluster: &str, host: &str) {
        eventually(&format!("{host} is no name in {cluster}"), || async {
            match self.ask(cluster, Protocol::Http, (host, 80)).await {
                Err(Silence::NoAnswer(why)) if why.contains("no such host") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}
