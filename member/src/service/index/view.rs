//! The kinds a member reads, reduced to what it uses. Those it also writes hold exactly what it owns of them.

use std::{collections::BTreeMap, fmt::Debug};

use api::view::{Lenient, annotated, lean};
use api::{
    mcs::{
        ServiceExport, ServiceExportSpec, ServiceExportStatus, ServiceImport, ServiceImportSpec,
        ServiceImportStatus, ServicePort, SessionAffinityConfig,
    },
    resource_export::{HEADLESS, ResourceExport, ResourceExportSpec, ResourceExportStatus},
    resource_import::{ResourceImport, ResourceImportSpec},
    slice,
};
use k8s_openapi::api::{
    core::v1 as core,
    discovery::v1::{self as discovery},
};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// A ServiceExport of this cluster.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = ServiceExport)]
pub(crate) struct Export {
    /// Name and age.
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// Labels and annotations to export.
    #[serde(default)]
    pub(crate) spec: Lenient<ServiceExportSpec>,
    /// Conditions that we write.
    #[serde(default)]
    pub(crate) status: Lenient<ServiceExportStatus>,
}

/// A Service of this cluster: a user's, or that of an import.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Service)]
pub(crate) struct Service {
    /// Name, labels, annotations.
    #[serde(deserialize_with = "annotated")]
    pub(crate) metadata: ObjectMeta,
    /// What matters to other clusters.
    #[serde(default)]
    pub(crate) spec: ServiceSpec,
}

/// The part of a Service's spec that we read, and own on those we make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceSpec {
    /// `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub(crate) type_: Option<String>,
    /// Its first address; the word `None` on a headless Service.
    #[serde(rename = "clusterIP", default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_ip: Option<String>,
    /// Its addresses, or the word `None`.
    #[serde(rename = "clusterIPs", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cluster_ips: Vec<String>,
    /// Families of its addresses, in their order; on a headless Service those of its endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ip_families: Vec<String>,
    /// `SingleStack`, `PreferDualStack` or `RequireDualStack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ip_family_policy: Option<String>,
    /// `None` or `ClientIP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_affinity: Option<String>,
    /// How long `ClientIP` affinity lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_affinity_config: Option<SessionAffinityConfig>,
    /// `Cluster` or `Local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) internal_traffic_policy: Option<String>,
    /// Preference for near endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traffic_distribution: Option<String>,
    /// Its ports, without what the API server adds for this cluster alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<ServicePort>,
}

impl ServiceSpec {
    /// Whether it has no address of its own.
    pub(crate) fn is_headless(&self) -> bool {
        self.cluster_ip.as_deref() == Some(HEADLESS)
    }

    /// Its addresses, in the order of its families.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &String> {
        // An API server returns all of them; what is to be written may have only the first.
        let first = self.cluster_ip.iter().filter(|_| self.cluster_ips.is_empty());
        self.cluster_ips.iter().chain(first).filter(|ip| !ip.is_empty() && *ip != HEADLESS)
    }
}

/// An EndpointSlice of this cluster: of a local Service, or one we imported.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = discovery::EndpointSlice)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Slice {
    /// Name and labels.
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// `IPv4`, `IPv6` or `FQDN`.
    pub(crate) address_type: String,
    /// The endpoints.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) endpoints: Vec<Endpoint>,
    /// Ports of every endpoint.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) ports: Vec<SlicePort>,
}

/// An endpoint in this cluster: what others may know of it, and what only here means anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Endpoint {
    /// What travels.
    #[serde(flatten)]
    pub(crate) shared: slice::Endpoint,
    /// The node it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node_name: Option<String>,
    /// The Pod it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target_ref: Option<core::ObjectReference>,
    /// Zones and nodes it is meant to serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hints: Option<discovery::EndpointHints>,
}

/// A port of an EndpointSlice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SlicePort {
    /// Name of the Service port it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// `TCP`, `UDP` or `SCTP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// Its number on the endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<i32>,
    /// Application protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) app_protocol: Option<String>,
}

/// Go writes an empty list as `null`.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_default())
}

/// A ServiceImport of this cluster.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ServiceImport)]
pub(crate) struct Import {
    /// Name, labels, and by which ResourceImport it was last measured.
    #[serde(deserialize_with = "annotated")]
    pub(crate) metadata: ObjectMeta,
    /// The merged Service and its addresses here.
    #[serde(default)]
    pub(crate) spec: Lenient<ServiceImportSpec>,
    /// Conditions that we write.
    #[serde(default, skip_serializing)]
    pub(crate) status: Lenient<ServiceImportStatus>,
}

/// A Namespace of this cluster.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = core::Namespace)]
pub(crate) struct Namespace {
    /// Name, and whether it is going.
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
}

/// One of our own records in the Common Area.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct OwnRecord {
    /// Name, labels, generation.
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What it exports.
    #[serde(default)]
    pub(crate) spec: Lenient<ResourceExportSpec>,
    /// What the leader writes about it.
    #[serde(default, skip_serializing)]
    pub(crate) status: Lenient<ResourceExportStatus>,
}

impl OwnRecord {
    /// What a verdict on just this record has observed.
    pub(crate) fn version(&self) -> String {
        let uid = self.metadata.uid.as_deref().unwrap_or_default();
        format!("{uid}/{}", self.metadata.generation.unwrap_or_default())
    }
}

/// Another cluster's slice in the Common Area.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct PeerSlice {
    /// Name.
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What the other cluster exports.
    #[serde(default)]
    pub(crate) spec: Lenient<ResourceExportSpec>,
}

/// An import in the Common Area.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceImport)]
pub(crate) struct LeaderImport {
    /// Name.
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What the leader merged.
    #[serde(default)]
    pub(crate) spec: Lenient<ResourceImportSpec>,
}

/// The Service of the import it is named after (`antrea-mc-<name>`), whoever made it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Service)]
#[serde(from = "Service", into = "Service")]
pub(crate) struct Derived {
    /// The Service's metadata.
    pub(crate) metadata: ObjectMeta,
    /// The Service.
    pub(crate) service: Service,
}

impl From<Service> for Derived {
    fn from(service: Service) -> Self {
        Self { metadata: service.metadata.clone(), service }
    }
}

impl From<Derived> for Service {
    fn from(derived: Derived) -> Self {
        derived.service
    }
}

/// Whether the object has the label of what Freeport makes.
pub(crate) fn is_ours(metadata: &ObjectMeta) -> bool {
    let labels: Option<&BTreeMap<String, String>> = metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(api::label::MANAGED_BY)).is_some_and(|by| by == api::label::FREEPORT)
}
