//! `MemberClusterAnnounce`: how a member introduces itself in the Common Area.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// MemberClusterAnnounce introduces a member in the Common Area. Presence is told by the member's Lease, not by this object.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.crd.antrea.io",
    version = "v1alpha1",
    kind = "MemberClusterAnnounce",
    namespaced,
    no_spec,
    derive = "PartialEq",
    printcolumn(name = "Cluster ID", type_ = "string", json_path = ".clusterID"),
    printcolumn(name = "ClusterSet ID", type_ = "string", json_path = ".clusterSetID"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct MemberClusterAnnounceFields {
    /// ID of the member.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Name of the ClusterSet the member belongs to.
    #[serde(rename = "clusterSetID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_set_id: Option<String>,
    /// ID of the leader the member follows.
    #[serde(rename = "leaderClusterID", default, skip_serializing_if = "Option::is_none")]
    pub leader_cluster_id: Option<String>,
}
