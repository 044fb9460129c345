//! `ClusterProperty` of the About API (KEP-2149): what a cluster says about itself.
//!
//! Served as `v1alpha1` and `v1beta1` with one schema; the member speaks `v1alpha1`, which every installation has.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// ClusterProperty says one thing about this cluster. `cluster.clusterset.k8s.io` is its ID, `clusterset.k8s.io` the ClusterSet that it is a
/// member of: Freeport writes both while it is one, unless somebody else has.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "about.k8s.io",
    version = "v1alpha1",
    kind = "ClusterProperty",
    plural = "clusterproperties",
    status = "ClusterPropertyStatus",
    derive = "PartialEq",
    category = "multicluster",
    printcolumn(name = "Value", type_ = "string", json_path = ".spec.value"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ClusterPropertySpec {
    /// What is said.
    #[schemars(length(min = 1))]
    pub value: String,
}

/// Nothing yet.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
pub struct ClusterPropertyStatus {}

/// Name of the property with the cluster's ID.
pub const CLUSTER_ID: &str = "cluster.clusterset.k8s.io";
/// Name of the property with the ClusterSet that the cluster is a member of.
pub const CLUSTER_SET: &str = "clusterset.k8s.io";
