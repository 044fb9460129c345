//! `ServiceExport` and `ServiceImport` of the Kubernetes Multi-Cluster Services API (KEP-1645).
//!
//! Served as `v1alpha1` and `v1beta1` with one schema; the daemons speak `v1alpha1`, which every installation has.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ServiceExport makes the Service of the same name and Namespace available in every cluster of the set.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ServiceExport",
    namespaced,
    status = "ServiceExportStatus",
    derive = "PartialEq",
    shortname = "svcex",
    shortname = "svcexport",
    category = "multicluster",
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status",
        description = "Whether the Service can be exported"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status",
        description = "Whether the leader has merged the export"
    ),
    printcolumn(
        name = "Conflict",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Conflict')].status",
        description = "Whether the exports of several clusters differ"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExportSpec {
    /// Labels the ServiceImports get. Labels of the Service itself never travel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_labels: BTreeMap<String, String>,
    /// Annotations the ServiceImports get. Annotations of the Service itself never travel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_annotations: BTreeMap<String, String>,
}

/// State of an export.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExportStatus {
    /// `Valid`: the Service exists and can be exported. `Ready`: the leader has it. `Conflict`: it differs from other
    /// clusters' exports of the same Service. `NoReadyEndpoints`: no endpoint of it can answer.
    /// `multicluster.freeport.dev/Imported`: no cluster of the set reports that its import is not ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// Condition type: the Service exists and can be exported (rules ).
pub const VALID: &str = "Valid";
/// Condition type: the leader has the export (rule R-11).
pub const READY: &str = "Ready";

/// Condition type: the exports of this Service differ (rule R-37).
pub const CONFLICT: &str = "Conflict";

/// Condition type of a ServiceExport: no cluster of the set reports that its import of the Service is not ready.
pub const IMPORTED: &str = "multicluster.freeport.dev/Imported";

/// Condition type of a ServiceExport and of a ServiceImport: no endpoint of it can answer. It is there once that was so for a while, and
/// says since then how it is.
pub const NO_READY_ENDPOINTS: &str = "NoReadyEndpoints";

/// Condition type of a ServiceImport: whether the clusters that take part are there, and their endpoints answer from here.
pub const CLUSTERS_REACHABLE: &str = "ClustersReachable";

/// ServiceImport is a Service of the whole set, as this cluster sees it. Written by the Freeport member, never by users.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ServiceImport",
    namespaced,
    status = "ServiceImportStatus",
    derive = "PartialEq",
    shortname = "svcim",
    shortname = "svcimport",
    category = "multicluster",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "ClusterSetIP or Headless"
    ),
    printcolumn(
        name = "IP",
        type_ = "string",
        json_path = ".spec.ips",
        description = "The addresses of the Service in this cluster"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status",
        description = "Whether the Service can be used in this cluster"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportSpec {
    /// Whether the Service has an address of its own or only those of its endpoints.
    #[serde(rename = "type", default)]
    #[schemars(required)]
    pub type_: ServiceImportType,
    /// Ports of the Service.
    #[serde(default)]
    #[schemars(required)]
    pub ports: Vec<ServicePort>,
    /// Addresses of the Service in this cluster, at most one for each IP family; none when Headless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub ips: Vec<String>,
    /// `IPv4`, `IPv6` or both, in the order of `ips`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub ip_families: Vec<String>,
    /// `None` or `ClientIP`; ignored when Headless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,
    /// How long `ClientIP` affinity lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// `Cluster` or `Local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<String>,
    /// Preference for near endpoints, as on a Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<String>,
}

/// Type of a ServiceImport.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum ServiceImportType {
    /// One address for all endpoints.
    #[default]
    ClusterSetIP,
    /// Only the endpoints' own addresses.
    Headless,
}

/// Port of a ServiceImport.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Name, unique among the ports; may be empty only on a single port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `TCP`, `UDP` or `SCTP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Application protocol, as on a Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
    /// Port number.
    pub port: i32,
}

/// Settings of session affinity.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAffinityConfig {
    /// Settings of `ClientIP` affinity.
    #[serde(rename = "clientIP", default, skip_serializing_if = "Option::is_none")]
    pub client_ip: Option<ClientIpConfig>,
}

/// Settings of `ClientIP` affinity.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientIpConfig {
    /// Seconds a client stays with its endpoint, 1 to 86400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// State of an import.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportStatus {
    /// Clusters whose endpoints are behind the Service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["cluster".into()]))]
    pub clusters: Vec<ImportedCluster>,
    /// `Ready`: the Service works in this cluster. `ClustersReachable`: the clusters that take part are there. `NoReadyEndpoints`: no
    /// endpoint of it can answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// `Present`: the endpoints of this import are EndpointSlices in its Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_slice_objects: Option<EndpointSliceObjects>,
}

/// Whether an import's endpoints are EndpointSlices.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum EndpointSliceObjects {
    /// They are.
    Present,
    /// They are not.
    Absent,
}

/// A cluster whose endpoints are behind an import.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct ImportedCluster {
    /// ID of the cluster.
    pub cluster: String,
}
