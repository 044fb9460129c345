//! What `freeport status` says: the shape of `-o json`.
//!
//! The shape is stable: fields may be added; none is renamed or removed, and none changes its meaning. A field whose value
//! is not known, or may not be read, is `null`; then a problem says why. Times are RFC 3339.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

/// State of one cluster as its own API server tells it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Context of the cluster in the kubeconfig.
    pub cluster: String,
    /// When this was judged, by the clock of whoever asked.
    pub as_of: Time,
    /// Version of this command.
    pub version: String,
    /// What is wrong. Empty when all is well, and only then is the exit code 0.
    pub problems: Vec<Problem>,
    /// What is worth knowing and no problem.
    pub notes: Vec<String>,
    /// ClusterSets this cluster leads.
    pub leads: Vec<Leading>,
    /// ClusterSets this cluster belongs to. More than one is a problem of theirs.
    pub belongs: Vec<Belonging>,
    /// Of daemons with several replicas, the one that is active.
    pub active_replicas: Vec<ActiveReplica>,
    /// ServiceExports in this cluster, unless it belongs to no set: troubled unless `Valid` and `Ready`, or with `Conflict`.
    pub service_exports: Option<Tally>,
    /// ServiceImports that Freeport made in this cluster, unless it belongs to no set: troubled unless `Ready`.
    pub service_imports: Option<Tally>,
    /// OffloadPeers in this cluster, where offloading is set up: troubled unless `Ready`.
    pub offload_peers: Option<Tally>,
    /// NamespaceOffloadings in this cluster, likewise: troubled unless their phase is `Ready` and `PlacementEnforced`.
    pub namespace_offloadings: Option<Tally>,
    /// Contracts with consumers of this cluster's APIs, where it is a provider: troubled if their ClusterBinding is not `Ready`, or if
    /// its consumer was heard and is not any more.
    pub cluster_bindings: Option<Tally>,
    /// APIServiceBindings in this cluster, where it is a consumer: troubled unless `Ready`, or if not `Synced`.
    #[serde(rename = "apiServiceBindings")]
    pub api_service_bindings: Option<Tally>,
}

impl Report {
    /// Whether there is nothing to do.
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Which of several replicas of a daemon is active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveReplica {
    /// The daemon.
    pub daemon: String,
    /// Its replica: the name of a Pod, where it runs in Pods.
    pub replica: String,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Where: `Kind namespace/name`, or a part of the cluster.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// What to do next.
    pub next: String,
}

/// A ClusterSet this cluster leads.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leading {
    /// Name of the ClusterSet.
    pub cluster_set: Option<String>,
    /// Its Common Area.
    pub namespace: String,
    /// ID of this cluster in the set.
    #[serde(rename = "clusterID")]
    pub cluster_id: Option<String>,
    /// Conditions of the ClusterSet in the Common Area.
    pub conditions: Vec<Said>,
    /// The daemon freeport-leader, by its Lease.
    pub leader: Leader,
    /// All clusters of the set that a Lease, a ServiceAccount or a record names, by ID.
    pub clusters: Vec<ClusterState>,
    /// ResourceExports, of all kinds: troubled are those that are not valid.
    pub resource_exports: Option<Tally>,
    /// Number of ResourceImports with a merged Service.
    pub imports: Option<usize>,
}

/// The daemon freeport-leader.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// Whether it is there.
    pub state: LeaderState,
    /// Last renewal of its Lease, by its own clock.
    pub renewed: Option<Time>,
    /// Its version.
    pub version: Option<String>,
    /// Wire contract it uses.
    pub wire: Option<String>,
}

/// Whether freeport-leader is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum LeaderState {
    /// It renews its Lease.
    Present,
    /// It stopped renewing its Lease.
    Stale,
    /// It never had one.
    Missing,
    /// Its Lease may not be read, or was renewed in our future.
    Unknown,
}

/// One cluster of a ClusterSet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterState {
    /// ID in the set.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Whether it leads; not known without the ClusterSet.
    pub role: Option<Role>,
    /// Whether its daemon freeport-member is there.
    pub state: MemberState,
    /// Last renewal of its Lease, by its own clock.
    pub renewed: Option<Time>,
    /// Version of its daemon.
    pub version: Option<String>,
    /// Wire contract it uses.
    pub wire: Option<String>,
    /// Number of Services it exports.
    pub exports: Option<usize>,
}

/// Part of a cluster in a ClusterSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// It holds the Common Area, and exports and imports as well.
    Leader,
    /// It exports and imports.
    Member,
}

/// Whether a member's daemon is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MemberState {
    /// It renews its Lease.
    Ready,
    /// It stopped renewing its Lease, or never had one.
    NotReady,
    /// It was removed from the set for good.
    Left,
    /// Leases may not be read, or its was renewed in our future.
    Unknown,
}

/// A ClusterSet this cluster belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Belonging {
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// ID of this cluster in the set.
    #[serde(rename = "clusterID")]
    pub cluster_id: Option<String>,
    /// URL of the leader's API server.
    pub leader: Option<String>,
    /// Whether freeport-member was told to leave it, and has not done so yet.
    pub leaving: bool,
    /// Its condition `Ready`, as freeport-member last wrote it. It stays when that daemon stops.
    pub ready: Option<Said>,
    /// Whether freeport-member is known not to run, so that `ready` may be out of date.
    pub stale: bool,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// Which question is answered.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// When the status last changed.
    pub since: Option<Time>,
}

impl Said {
    /// Reason and message, as far as there are any.
    pub fn why(&self) -> String {
        let words = [self.reason.as_str(), self.message.as_str()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ")
    }
}

/// Objects, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// All of them.
    pub total: usize,
    /// Those with something wrong.
    pub troubled: usize,
    /// The first ten of those, by name.
    pub first: Vec<Trouble>,
}

/// One object with something wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// Its Namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The condition that says so.
    pub condition: Said,
}
