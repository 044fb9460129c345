//! `ClusterSet`: which cluster this is, and who leads the set it belongs to.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::AntreaCondition;

/// ClusterSet says that this cluster takes part in a set of clusters, under which ID, and who leads the set. Its name is
/// the ID of the set. In a member it lives in the Namespace of the Freeport member, in the leader in the Common Area.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "multicluster.crd.antrea.io",
    version = "v1alpha2",
    kind = "ClusterSet",
    namespaced,
    status = "ClusterSetStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Leader Cluster Namespace",
        type_ = "string",
        json_path = ".spec.namespace",
        description = "Common Area in the leader's cluster"
    ),
    printcolumn(name = "Total Clusters", type_ = "string", json_path = ".status.totalClusters"),
    printcolumn(name = "Ready Clusters", type_ = "string", json_path = ".status.readyClusters"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(oldSelf.clusterID) || oldSelf.clusterID == '' || (has(self.clusterID) && self.clusterID == oldSelf.clusterID)").message("clusterID cannot be changed: leave the set and join it again"))]
pub struct ClusterSetSpec {
    /// ID of this cluster: a DNS label, or two with a dot between, unique in the set. Where it is missing, ClusterClaim
    /// `id.k8s.io` of this Namespace says it. It cannot be changed: leave the set and join it again.
    #[serde(rename = "clusterID", default, skip_serializing_if = "String::is_empty")]
    pub cluster_id: String,
    /// The leader of the set. Exactly one.
    #[schemars(length(min = 1, max = 1))]
    pub leaders: Vec<LeaderCluster>,
    /// Common Area: the Namespace in the leader's cluster that holds the records of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Where the leader is and how to speak to it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderCluster {
    /// ID of the leader's cluster.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// URL of the leader's API server, as this member reaches it: `https://HOST:PORT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the Secret in this Namespace that holds `ca.crt` and `token` for that API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// State of the set as this cluster sees it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetStatus {
    /// Number of members of the set, with this cluster if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_clusters: Option<i32>,
    /// Number of those that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_clusters: Option<i32>,
    /// One entry for each cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_statuses: Vec<ClusterStatus>,
    /// `Ready`: whether exports and imports flow. In a member also `ImportsComplete`: whether everything is imported that others
    /// export, `ExportsDeclared`: whether everything that is exported has its ServiceExport, and `CredentialRenewed`: whether the member
    /// renews its token for the leader. `WritesAccepted`: whether API servers accept what the daemon writes; the message names what they
    /// refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<AntreaCondition>,
    /// Generation of the spec this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// State of one cluster of the set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// ID of the cluster.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// `Ready`, and `IsLeader` on the entry of the leader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<AntreaCondition>,
}

/// The address of a leader's API server in [`LeaderCluster::server`], if it is one a token may be sent to: `https`, a host, perhaps
/// a port and a path (API servers behind a proxy have one), and neither a user nor a query.
pub fn server_uri(server: &str) -> Option<http::Uri> {
    let uri: http::Uri = server.parse().ok()?;
    let authority = uri.authority()?;
    let fits = uri.scheme_str() == Some("https")
        && !authority.host().is_empty()
        && !authority.as_str().contains('@')
        && uri.query().is_none();
    fits.then_some(uri)
}

/// Condition type of a ClusterSet and of each cluster in it.
pub const READY: &str = "Ready";
/// Condition type of a member's ClusterSet: everything is imported that others export.
pub const IMPORTS_COMPLETE: &str = "ImportsComplete";
/// Condition type of a member's ClusterSet: everything that is exported has its ServiceExport.
pub const EXPORTS_DECLARED: &str = "ExportsDeclared";
/// Condition type of a member's ClusterSet: the member renews its token for the leader itself.
pub const CREDENTIAL_RENEWED: &str = "CredentialRenewed";
/// Condition type of a ClusterSet, in members and in the Common Area: API servers accept what the daemon writes.
pub const WRITES_ACCEPTED: &str = "WritesAccepted";
/// Condition type of a cluster in a member's ClusterSet: it leads (Antrea).
pub const IS_LEADER: &str = "IsLeader";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_https_address_is_a_server() {
        for good in ["https://10.0.0.1:6443", "https://leader.example.com/", "https://proxy/k8s/clusters/c-1"]
        {
            assert!(server_uri(good).is_some(), "{good}");
        }
        for bad in [
            "http://10.0.0.1:6443",
            "10.0.0.1:6443",
            "file:///etc/passwd",
            "https://u:p@leader",
            "https://l/?x=1",
            "",
        ] {
            assert!(server_uri(bad).is_none(), "{bad}");
        }
    }
}
