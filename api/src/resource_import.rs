//! `ResourceImport`: what the leader made of all members' offers.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    condition::AntreaCondition,
    mcs::{ServiceImportSpec, ServicePort},
    resource_export::EndpointsPayload,
    schema::preserved_object,
};

/// Kind of an import with a merged Service.
pub const SERVICE_IMPORT: &str = "ServiceImport";

/// ResourceImport is what the leader merged from the exports of all members. Members read it; only the leader writes it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.crd.antrea.io",
    version = "v1alpha1",
    kind = "ResourceImport",
    namespaced,
    status = "ResourceImportStatus",
    derive = "PartialEq",
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Exporters",
        type_ = "string",
        json_path = ".spec.exportedBy",
        description = "The clusters that take part, oldest export first"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceImportSpec {
    /// Members this import is for; empty means all (Antrea; never set).
    #[serde(rename = "clusterID", default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_id: Vec<String>,
    /// Name of the imported object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the imported object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `ServiceImport`, `Endpoints`, `ClusterInfo`, `LabelIdentity` or `AntreaClusterNetworkPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The merged Service, for kind `ServiceImport`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_import: Option<MergedService>,
    /// Clusters that take part in the merged Service, oldest export first (Freeport). An empty list is said on purpose:
    /// nobody exports it any more. A missing list says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exporters: Option<Vec<Exporter>>,
    /// The first three of `exporters` and how many more there are, for a column of `kubectl get`: an API server shows only one item of a
    /// list there (Freeport).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_by: Option<String>,
    /// Clusters that took part until the leader withdrew their exports in their place, since they were silent for too long (Freeport).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evicted: Vec<Evicted>,
    /// Endpoints of all clusters in one, for kind `Endpoints` (Antrea).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsPayload>,
    /// Networks and gateways of a cluster (Antrea; Freeport ignores it).
    #[serde(rename = "clusterinfo", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub cluster_info: Option<Value>,
    /// Antrea's ExternalEntity; Freeport ignores it.
    #[serde(rename = "externalentity", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub external_entity: Option<Value>,
    /// Antrea's ClusterNetworkPolicy; Freeport ignores it.
    #[serde(rename = "clusternetworkpolicy", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub cluster_network_policy: Option<Value>,
    /// Antrea's LabelIdentity; Freeport ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub label_identity: Option<Value>,
    /// Raw data (Antrea); Freeport ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub raw: Option<Value>,
}

/// A ServiceImport as Antrea nests it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergedService {
    /// What every member's ServiceImport gets, but for its own `ips`.
    #[serde(default)]
    pub spec: ServiceImportSpec,
    /// Labels and annotations that every member's ServiceImport gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MergedMetadata>,
    /// Empty; a Go writer emits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub status: Option<Value>,
}

/// What the oldest export asks for (`exportedLabels`, `exportedAnnotations`).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct MergedMetadata {
    /// Labels for the ServiceImports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations for the ServiceImports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// One cluster that takes part in a merged Service, and the leader's verdict on its export.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exporter {
    /// ID of the cluster.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// When its ServiceExport was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_at: Option<Time>,
    /// `<uid>/<generation>` of the ResourceExport this verdict is about.
    #[serde(default)]
    pub observed: String,
    /// Its ports, where the merged Service has others: what is left of the ports when it can be asked no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<ServicePort>>,
    /// Where its Service differs from the merged one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Objection>,
    /// Reserved: why the endpoints of this cluster are not to be used. The leader does not set it yet; importers that find it set use
    /// no endpoint of this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Objection>,
}

/// A cluster that was silent for too long.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
pub struct Evicted {
    /// ID of the cluster.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Since when its exports are withdrawn.
    pub since: Time,
}

/// A reason for machines and a message for people.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Objection {
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Objection {
    /// Puts the two parts together.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

/// Antrea's status: the leader's word on each exporting cluster. Freeport neither writes nor reads it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceImportStatus {
    /// One entry for each exporting cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_statuses: Vec<ImportClusterStatus>,
}

/// Antrea's status of one exporting cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportClusterStatus {
    /// ID of the cluster.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// `Succeeded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<AntreaCondition>,
}
