//! Objects as they are read: only the fields that are used, and a part that does not decode hides nothing but itself.

mod pod;

use std::collections::BTreeMap;

use api::{
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus, READY},
    condition::AntreaCondition,
    label,
    mcs::{ImportedCluster, ServiceExport, ServiceImport, ServiceImportSpec},
    resource_export::{ResourceExport, ResourceExportStatus, SERVICE, ServicePayload},
    resource_import::{Exporter, ResourceImport},
    view::{Lenient, is_written_by, lean, or_default, ours_annotated, sourced},
};
use k8s_openapi::api::{
    core::v1::{Service, ServicePort},
    discovery::v1::{EndpointPort, EndpointSlice},
};
use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;

pub use self::pod::PodView;

/// A ClusterSet, of a member or of a Common Area.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = ClusterSet)]
pub struct ClusterSetView {
    /// Without annotations.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Its spec.
    #[serde(default)]
    pub spec: Lenient<Option<ClusterSetSpec>>,
    /// Its status.
    #[serde(default)]
    pub status: Lenient<ClusterSetStatus>,
}

impl ClusterSetView {
    /// ID of this cluster, unless a ClusterClaim says it.
    pub fn cluster_id(&self) -> Option<&str> {
        filled(Some(&self.spec()?.cluster_id))
    }

    /// ID of the cluster that leads.
    pub fn leader_id(&self) -> Option<&str> {
        filled(self.spec()?.leaders.first()?.cluster_id.as_ref())
    }

    /// URL of the leader's API server.
    pub fn server(&self) -> Option<&str> {
        filled(self.spec()?.leaders.first()?.server.as_ref())
    }

    fn spec(&self) -> Option<&ClusterSetSpec> {
        self.spec.0.as_ref().ok()?.as_ref()
    }

    /// Its conditions.
    pub fn conditions(&self) -> &[AntreaCondition] {
        self.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }

    /// Its condition `Ready`.
    pub fn ready(&self) -> Option<&AntreaCondition> {
        self.condition(READY)
    }

    /// Its condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&AntreaCondition> {
        of_type(self.conditions(), type_)
    }

    /// Whether the status is about the spec as it is now.
    pub fn is_observed(&self) -> bool {
        self.status.0.as_ref().is_ok_and(|status| status.observed_generation == self.metadata.generation)
    }
}

fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// The condition of this type.
pub fn of_type<'a>(conditions: &'a [AntreaCondition], type_: &str) -> Option<&'a AntreaCondition> {
    conditions.iter().find(|condition| condition.type_.as_deref() == Some(type_))
}

/// A ServiceExport.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ServiceExport)]
pub struct ServiceExportView {
    /// Without annotations.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Its conditions.
    #[serde(default)]
    pub status: Lenient<ExportStatus>,
}

/// What is looked at of the status of a ServiceExport.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExportStatus {
    /// The conditions.
    conditions: Vec<Observing>,
}

impl ExportStatus {
    /// The conditions.
    pub fn conditions(self) -> Vec<AntreaCondition> {
        self.conditions.into_iter().map(|said| said.condition).collect()
    }
}

/// A condition, with the generation that it is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Observing {
    observed_generation: Option<i64>,
    #[serde(flatten)]
    condition: AntreaCondition,
}

impl ServiceExportView {
    /// Its condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&AntreaCondition> {
        Some(&self.of_type(type_)?.condition)
    }

    /// Whether its condition of this type is about this generation or a later one. Where the CRD lacks the field, each is.
    pub fn has_observed(&self, type_: &str, generation: Option<i64>) -> bool {
        let observed = self.of_type(type_).and_then(|said| said.observed_generation);
        observed.is_none() || observed >= generation
    }

    fn of_type(&self, type_: &str) -> Option<&Observing> {
        let conditions = &self.status.0.as_ref().ok()?.conditions;
        conditions.iter().find(|said| said.condition.type_.as_deref() == Some(type_))
    }
}

/// A ServiceImport.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ServiceImport)]
pub struct ServiceImportView {
    /// With the names of those of our daemons that wrote it.
    #[serde(deserialize_with = "ours_annotated")]
    pub metadata: ObjectMeta,
    /// Its spec.
    #[serde(default)]
    pub spec: Lenient<ServiceImportSpec>,
    /// Its conditions, and the clusters behind it.
    #[serde(default)]
    pub status: Lenient<ImportStatus>,
}

/// What is looked at of the status of a ServiceImport.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ImportStatus {
    /// The conditions.
    pub conditions: Vec<AntreaCondition>,
    /// Clusters whose endpoints are behind it.
    pub clusters: Lenient<Vec<ImportedCluster>>,
}

impl ServiceImportView {
    /// IDs of the clusters whose endpoints are behind it.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        let status = self.status.0.as_ref().ok();
        let clusters = status.and_then(|status| status.clusters.0.as_deref().ok()).unwrap_or_default();
        clusters.iter().map(|cluster| cluster.cluster.as_str())
    }

    /// Its condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&AntreaCondition> {
        of_type(&self.status.0.as_ref().ok()?.conditions, type_)
    }

    /// Whether freeport-member wrote it.
    pub fn is_ours(&self) -> bool {
        is_written_by(&self.metadata, label::MEMBER)
    }

    /// Reports whether freeport-member wrote it or its status. Nobody keeps a copy that a user made of it.
    pub fn is_members(&self) -> bool {
        self.is_ours() || self.status.0.as_ref().is_ok_and(|status| !status.conditions.is_empty())
    }
}

/// Conditions of whoever wrote them. Those of Kubernetes and of Antrea have the same fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The conditions.
    pub conditions: Vec<AntreaCondition>,
}

/// A Service.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Service)]
pub struct ServiceView {
    /// With the names of those of our daemons that wrote it.
    #[serde(deserialize_with = "ours_annotated")]
    pub metadata: ObjectMeta,
    /// What is looked at of its spec.
    #[serde(default)]
    pub spec: Lenient<ServiceSpec>,
}

/// What is looked at of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// `ClusterIP`, `ExternalName`, ...
    #[serde(rename = "type")]
    pub type_: Option<String>,
    /// Labels of its Pods; none if somebody else writes its EndpointSlices.
    #[serde(deserialize_with = "or_default")]
    pub selector: BTreeMap<String, String>,
    /// Its ports.
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ServicePort>,
    /// Its address; `None` if it is headless.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Option<String>,
    /// `Cluster` or `Local`; none means the former.
    #[serde(rename = "internalTrafficPolicy")]
    pub internal_traffic_policy: Option<String>,
}

impl ServiceView {
    /// Whether freeport-member wrote it.
    pub fn is_ours(&self) -> bool {
        is_written_by(&self.metadata, label::MEMBER)
    }

    /// Whether it is only another name.
    pub fn is_external_name(&self) -> bool {
        matches!(&self.spec.0, Ok(spec) if spec.type_.as_deref() == Some("ExternalName"))
    }
}

/// An EndpointSlice.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = EndpointSlice)]
pub struct SliceView {
    /// Without annotations.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Its endpoints.
    #[serde(default)]
    pub endpoints: Lenient<Option<Vec<Endpoint>>>,
    /// Their ports.
    #[serde(default)]
    pub ports: Lenient<Option<Vec<EndpointPort>>>,
}

/// An endpoint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Whether it can answer.
    #[serde(deserialize_with = "or_default")]
    pub conditions: EndpointConditions,
}

/// Whether an endpoint can answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EndpointConditions {
    /// Not said means that it is.
    pub ready: Option<bool>,
}

impl SliceView {
    /// Number of its endpoints, and of those that are ready.
    pub fn count(&self) -> (usize, usize) {
        let endpoints = self.endpoints.0.as_ref().ok().and_then(Option::as_deref).unwrap_or_default();
        let ready = endpoints.iter().filter(|endpoint| endpoint.conditions.ready != Some(false)).count();
        (endpoints.len(), ready)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }
}

/// A ResourceExport.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub struct RecordView {
    /// Name, times, and labels that say whose it is.
    #[serde(deserialize_with = "sourced")]
    pub metadata: ObjectMeta,
    /// What is looked at of its spec.
    #[serde(default)]
    pub spec: Lenient<RecordSpec>,
    /// The leader's word on it.
    #[serde(default)]
    pub status: Lenient<ResourceExportStatus>,
}

/// What a record is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RecordSpec {
    /// ID of the cluster that exports.
    #[serde(rename = "clusterID")]
    pub cluster_id: Option<String>,
    /// `Service`, `EndpointSlice`, ...
    pub kind: Option<String>,
    /// The Service, for kind `Service`.
    pub service: Lenient<Option<ServicePayload>>,
}

impl RecordView {
    /// ID of the cluster that exports the Service with it; none if it is about something else, or withdraws the Service.
    pub fn exporter(&self) -> Option<&str> {
        let spec = self.spec.0.as_ref().ok()?;
        let is_withdrawn = matches!(&spec.service.0, Ok(Some(service)) if service.withdrawn);
        let is_offer = spec.kind.as_deref() == Some(SERVICE) && !is_withdrawn;
        spec.cluster_id.as_deref().filter(|_| is_offer)
    }

    /// What it exports.
    pub fn payload(&self) -> Option<&ServicePayload> {
        self.spec.0.as_ref().ok()?.service.0.as_ref().ok()?.as_ref()
    }

    /// Why the leader refuses it, if it does.
    pub fn failure(&self) -> Option<&AntreaCondition> {
        of_type(&self.status.0.as_ref().ok()?.conditions, api::resource_export::FAILURE)
    }
}

/// A ResourceImport.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceImport)]
pub struct MergedView {
    /// Without annotations.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Who takes part.
    #[serde(default)]
    pub spec: Lenient<MergedSpec>,
}

/// Who takes part in a merged Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MergedSpec {
    /// Oldest export first.
    #[serde(deserialize_with = "or_default")]
    pub exporters: Vec<Exporter>,
}

impl MergedView {
    /// Who takes part, oldest export first.
    pub fn exporters(&self) -> &[Exporter] {
        self.spec.0.as_ref().map(|spec| spec.exporters.as_slice()).unwrap_or_default()
    }
}
