//! Kinds as a member reads them, reduced to the fields that matter. Those that the member also writes hold exactly what it owns of them.

mod record;

use std::{collections::BTreeMap, fmt::Debug};

use api::{
    label,
    mcs::{
        ServiceExport, ServiceExportSpec, ServiceExportStatus, ServiceImport, ServiceImportSpec,
        ServiceImportStatus, ServicePort, SessionAffinityConfig,
    },
    name,
    resource_export::{HEADLESS, check_size},
    slice,
    view::{Lenient, is_written_by, or_default, ours_annotated, unlabelled},
};
use k8s_openapi::api::{
    core::v1 as core,
    discovery::v1::{self as discovery},
};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize};

pub use self::record::OwnRecord;

/// A ServiceExport of this cluster.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = ServiceExport)]
pub struct Export {
    /// Name and age.
    #[serde(deserialize_with = "unlabelled")]
    pub metadata: ObjectMeta,
    /// Labels and annotations to export; not kept where there are more than can be exported.
    #[serde(default, deserialize_with = "exportable")]
    pub spec: Lenient<ServiceExportSpec>,
    /// Conditions that we write.
    #[serde(default)]
    pub status: Lenient<ServiceExportStatus>,
}

fn exportable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Lenient<ServiceExportSpec>, D::Error> {
    let Lenient(spec) = Lenient::<ServiceExportSpec>::deserialize(deserializer)?;
    let spec = spec.map_err(|error| format!("the spec of the ServiceExport cannot be read: {error}"));
    Ok(Lenient(spec.and_then(|spec| {
        check_size(&spec.exported_labels, &spec.exported_annotations)?;
        Ok(spec)
    })))
}

/// A Service of this cluster: a user's, or that of an import.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Service)]
pub struct Service {
    /// Name, labels, annotations; of a user's only the one that says that it is imported.
    #[serde(deserialize_with = "ours_or_marked")]
    pub metadata: ObjectMeta,
    /// What matters to other clusters.
    #[serde(default)]
    pub spec: ServiceSpec,
}

fn ours_or_marked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = ours_annotated(deserializer)?;
    trim(&mut metadata);
    Ok(metadata)
}

/// Most bytes of labels and annotations that an object of ours has: what is exported, what notes that, and a few of others.
const METADATA_MAX: usize = 256 << 10;

/// Takes out of metadata what is not read. Kubernetes bounds neither how many labels an object has nor their size together, and in
/// memory they take many times what they take on the wire; whoever may write an object may also label it as ours.
fn trim(metadata: &mut ObjectMeta) {
    let texts = metadata.labels.iter().chain(&metadata.annotations).flatten();
    let bytes: usize = texts.map(|(key, value)| key.len() + value.len()).sum();
    if is_ours(metadata) && bytes <= METADATA_MAX {
        return;
    }
    for (texts, read) in [(&mut metadata.labels, LABELS), (&mut metadata.annotations, ANNOTATIONS)] {
        texts.iter_mut().for_each(|all| all.retain(|key, _| read.contains(&key.as_str())));
        texts.take_if(|all| all.is_empty());
    }
    metadata.finalizers = None;
}

/// What is read of the metadata of others' Services and EndpointSlices.
const LABELS: &[&str] = &[
    label::MANAGED_BY,
    label::SERVICE_NAME,
    label::SLICE_MANAGED_BY,
    label::MCS_SERVICE_NAME,
    label::MCS_SOURCE_CLUSTER,
];
const ANNOTATIONS: &[&str] = &[label::IMPORTED_SERVICE];

/// The part of a Service's spec that we read, and own on those we make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Its first address; the word `None` on a headless Service.
    #[serde(rename = "clusterIP", default, skip_serializing_if = "Option::is_none")]
    pub cluster_ip: Option<String>,
    /// Its addresses, or the word `None`.
    #[serde(rename = "clusterIPs", default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_ips: Vec<String>,
    /// Families of its addresses, in their order; on a headless Service those of its endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<String>,
    /// `SingleStack`, `PreferDualStack` or `RequireDualStack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_family_policy: Option<String>,
    /// `None` or `ClientIP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,
    /// How long `ClientIP` affinity lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// `Cluster` or `Local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<String>,
    /// Preference for near endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<String>,
    /// Its ports, without what the API server adds for this cluster alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ServicePort>,
    /// What the Service of an import never has, so that it goes if somebody else puts it there.
    #[serde(flatten)]
    pub never: Never,
}

/// What leads the traffic of a Service elsewhere than to its EndpointSlices, or leads more of it there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Never {
    /// Pods of this cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// More addresses.
    #[serde(rename = "externalIPs", default, skip_serializing_if = "Vec::is_empty")]
    external_ips: Vec<String>,
    /// Whether endpoints count that are not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    publish_not_ready_addresses: Option<bool>,
    /// A name instead of addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_name: Option<String>,
    /// Address of a load balancer.
    #[serde(rename = "loadBalancerIP", default, skip_serializing_if = "Option::is_none")]
    load_balancer_ip: Option<String>,
    /// Who may use a load balancer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    load_balancer_source_ranges: Vec<String>,
    /// Of which implementation a load balancer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    load_balancer_class: Option<String>,
    /// Whether it uses ports of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allocate_load_balancer_node_ports: Option<bool>,
    /// What comes with external addresses, and is refused without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_traffic_policy: Option<String>,
}

impl Never {
    /// Returns what is kept of a Service that users made: whether it has a selector.
    pub fn of_a_users_service(&self) -> Self {
        let selector = self.selector.first_key_value().map(|(key, value)| (key.clone(), value.clone()));
        Self { selector: selector.into_iter().collect(), ..Self::default() }
    }
}

impl ServiceSpec {
    /// Reports whether it has no address of its own.
    pub fn is_headless(&self) -> bool {
        self.cluster_ip.as_deref() == Some(HEADLESS)
    }

    /// Its addresses, in the order of its families.
    pub fn addresses(&self) -> impl Iterator<Item = &String> {
        // An API server returns all of them; what is to be written may have only the first.
        let first = self.cluster_ip.iter().filter(|_| self.cluster_ips.is_empty());
        self.cluster_ips.iter().chain(first).filter(|ip| !ip.is_empty() && *ip != HEADLESS)
    }
}

/// An EndpointSlice of this cluster: of a local Service, or one we imported.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = discovery::EndpointSlice)]
#[serde(rename_all = "camelCase")]
pub struct Slice {
    /// Name, labels, annotations; of others' the labels that say of which Service it is, and who wrote it.
    #[serde(deserialize_with = "ours_or_marked")]
    pub metadata: ObjectMeta,
    /// `IPv4`, `IPv6` or `FQDN`.
    pub address_type: String,
    /// The endpoints.
    #[serde(default, deserialize_with = "or_default")]
    pub endpoints: Vec<Endpoint>,
    /// Ports of every endpoint.
    #[serde(default, deserialize_with = "or_default")]
    pub ports: Vec<SlicePort>,
}

/// An endpoint in this cluster: what others may know of it, and what only here means anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// What travels.
    #[serde(flatten)]
    pub shared: slice::Endpoint,
    /// The node it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The Pod it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<core::ObjectReference>,
    /// Zones and nodes it is meant to serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<discovery::EndpointHints>,
}

/// A port of an EndpointSlice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlicePort {
    /// Name of the Service port it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `TCP`, `UDP` or `SCTP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Its number on the endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// Application protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// A ServiceImport of this cluster.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ServiceImport)]
pub struct Import {
    /// Name, labels, and by which ResourceImport it was last measured.
    #[serde(deserialize_with = "ours_annotated")]
    pub metadata: ObjectMeta,
    /// The merged Service and its addresses here.
    #[serde(default)]
    pub spec: Lenient<ServiceImportSpec>,
    /// Conditions that we write.
    #[serde(default, skip_serializing)]
    pub status: Lenient<ServiceImportStatus>,
}

/// Reports whether Freeport made the object: it has our label, or we wrote it, and somebody else took the label off.
pub fn is_ours(metadata: &ObjectMeta) -> bool {
    is_labelled(metadata, label::MANAGED_BY) || is_written_by(metadata, label::MEMBER)
}

/// Reports whether we wrote the object, whatever its labels: only that proves that it is for us to delete.
pub fn is_made<K: Resource>(object: &K) -> bool {
    is_written_by(object.meta(), label::MEMBER)
}

fn is_labelled(metadata: &ObjectMeta, key: &str) -> bool {
    metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|by| by == label::FREEPORT)
}

/// Reports whether we imported the slice: its name says it, and our label or that we wrote it. Kubernetes makes slices for a Service with a selector, and
/// gives them the Service's labels; what somebody copied has another name.
pub fn is_imported(slice: &Slice) -> bool {
    let metadata = &slice.metadata;
    let is_named_so = metadata.name.as_deref().and_then(name::service_of_slice).is_some();
    is_named_so && (is_labelled(metadata, label::SLICE_MANAGED_BY) || is_ours(metadata))
}
