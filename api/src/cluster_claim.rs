//! `ClusterClaim`: an older way to say which cluster this is, honoured where the ClusterSet does not say it (Antrea up to v1.12).

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// ClusterClaim says one thing about this cluster. `id.k8s.io` is its ID, read where a ClusterSet of the same Namespace has no
/// `spec.clusterID`; `clusterset.k8s.io` is the name of its ClusterSet.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.crd.antrea.io",
    version = "v1alpha2",
    kind = "ClusterClaim",
    namespaced,
    no_spec,
    derive = "PartialEq",
    printcolumn(name = "Value", type_ = "string", json_path = ".value"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ClusterClaimFields {
    /// What is claimed.
    pub value: String,
}

/// Name of the claim of the cluster's ID.
pub const ID: &str = "id.k8s.io";
/// Name of the claim of the ClusterSet's name.
pub const CLUSTER_SET: &str = "clusterset.k8s.io";
