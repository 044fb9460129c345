//! A simulated ClusterSet whose traffic is counted.

use std::{ops::Add, time::Duration};

use serde_json::{Value, json};
use sim::{
    net::Traffic,
    world::{ClusterPlan, Plan, SetPlan, World},
};
use tokio::time::{Instant, sleep};

use crate::passed::Passed;

/// The Namespace of all Services.
const NAMESPACE: &str = "shop";
/// Without a write for so long, nothing is left to do.
const QUIET: Duration = Duration::from_secs(20);
/// What takes longer does not end.
const LIMIT: Duration = Duration::from_secs(3600);

/// A connected ClusterSet.
pub(crate) struct Set(World);

impl Set {
    pub(crate) async fn up(members: usize) -> Self {
        let name = |number: usize| if number == 0 { "leader".to_owned() } else { format!("m{number}") };
        let cluster = |number| ClusterPlan { name: name(number), is_dual: false };
        let world = World::new(Plan {
            seed: 1,
            clusters: (0..members).map(cluster).collect(),
            sets: vec![SetPlan { name: "demo".into(), members: (0..members).map(name).collect() }],
            lease_seconds: 30,
            offload: false,
            bind: false,
        });
        for cluster in world.names() {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
            world.server(cluster).install(&namespace);
        }
        world.start_all();
        let set = Self(world);
        set.passes(|| set.0.is_connected().is_ok()).await;
        set
    }

    /// The cluster that exports.
    fn exporter(&self) -> &sim::api::Server {
        self.0.server("m1")
    }

    pub(crate) fn create(&self, name: &str) {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let ports = json!([{"name": "http", "port": 80}]);
        self.exporter().install(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": name}, "ports": ports},
        }));
        self.exporter().install(&slice(name, 3));
        self.exporter().install(&json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": metadata,
        }));
    }

    pub(crate) fn change(&self, name: &str) {
        self.exporter().install(&slice(name, 2));
    }

    pub(crate) fn withdraw(&self, name: &str) {
        self.exporter().remove("multicluster.x-k8s.io", "serviceexports", NAMESPACE, name);
    }

    fn has(&self, cluster: &str, name: &str) -> bool {
        self.0.server(cluster).names("", "services").contains(&format!("antrea-mc-{name}"))
    }

    pub(crate) fn all_have(&self, name: &str) -> bool {
        self.0.names().all(|cluster| self.has(cluster, name))
    }

    pub(crate) fn none_has(&self, name: &str) -> bool {
        !self.0.names().any(|cluster| self.has(cluster, name))
    }

    /// Whether every cluster has so many imports.
    pub(crate) fn have(&self, imports: usize) -> bool {
        let of = |cluster| self.0.server(cluster).names("multicluster.x-k8s.io", "serviceimports").len();
        self.0.names().all(|cluster| of(cluster) == imports)
    }

    /// What passes until `holds`, and nobody writes any more.
    pub(crate) async fn passes(&self, holds: impl Fn() -> bool) -> Passed {
        let (before, begun) = (self.sum(false), Instant::now());
        let (mut writes, mut quiet_since) = (before.writes(), begun);
        while quiet_since.elapsed() < QUIET || !holds() {
            assert!(begun.elapsed() < LIMIT, "nothing settles");
            sleep(Duration::from_secs(1)).await;
            let now = self.sum(false).writes();
            if now != writes {
                (writes, quiet_since) = (now, Instant::now());
            }
        }
        self.0.check();
        // Logs of a long run are larger than all else.
        self.0.net.take_log();
        self.sum(false).since(&before)
    }

    /// What Leases cost in a minute.
    pub(crate) async fn idle(&self) -> Passed {
        let before = self.sum(true);
        sleep(Duration::from_secs(60)).await;
        self.sum(true).since(&before)
    }

    fn sum(&self, is_of_leases: bool) -> Passed {
        let of = |cluster| self.0.net.traffic(cluster, is_of_leases);
        let others = self.0.names().skip(1).map(of).fold(Traffic::default(), Add::add);
        Passed { leader: of(self.0.leader()), others, count: self.0.names().count() - 1 }
    }
}

/// Slice of a Service with so many endpoints.
fn slice(name: &str, endpoints: usize) -> Value {
    let endpoint =
        |number| json!({"addresses": [format!("172.20.0.{number}")], "conditions": {"ready": true}});
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": format!("{name}-1"), "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": name}},
        "ports": [{"name": "http", "port": 80}], "endpoints": (1..=endpoints).map(endpoint).collect::<Vec<_>>(),
    })
}
