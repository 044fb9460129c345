//! What a member reads of records in the Common Area: other clusters' slices, imports.

use api::{
    ServiceName, label, name,
    resource_export::{OVER_QUOTA, ResourceExport, ResourceExportStatus, Withdrawal},
    resource_import::{ResourceImport, ResourceImportSpec},
    slice,
    view::{Lenient, Measured, lean, sourced},
};
use kit::quota::Counted;
use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;

/// Another cluster's record of a Service: whether it still takes part.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct Offered {
    #[serde(deserialize_with = "sourced")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<OfferedSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OfferedSpec {
    service: Option<Withdrawal>,
}

impl Offered {
    /// Whether it takes its Service back.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.spec.0.as_ref().is_ok_and(|spec| spec.service.as_ref().is_some_and(|service| service.withdrawn))
    }
}

/// Another cluster's slice in the Common Area. What is refused is let go while a record is decoded, so that a long list costs what
/// is kept of it.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
#[serde(from = "SliceRecord")]
pub(crate) struct PeerSlice {
    /// Name.
    pub(crate) metadata: ObjectMeta,
    /// The cluster whose slice it is, and the Service: by name and labels, which its spec cannot change.
    pub(crate) of: Option<(String, ServiceName)>,
    /// What the other cluster exports; none if that is not valid, or the leader refuses it as too much.
    pub(crate) payload: Option<slice::SlicePayload>,
    /// Its size as JSON, or in memory if that is more; 0 without one.
    pub(crate) bytes: usize,
}

impl Counted for PeerSlice {
    fn writer(&self) -> Option<String> {
        self.of.as_ref().map(|(cluster, _)| cluster.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn without_content(self) -> Self {
        Self { payload: None, bytes: 0, ..self }
    }
}

#[derive(Deserialize)]
struct SliceRecord {
    #[serde(deserialize_with = "sourced")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Measured<SliceSpec>,
    #[serde(default)]
    status: Lenient<ResourceExportStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SliceSpec {
    #[serde(rename = "clusterID")]
    cluster_id: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    endpoint_slice: Option<slice::SlicePayload>,
}

impl From<SliceRecord> for PeerSlice {
    fn from(record: SliceRecord) -> Self {
        let SliceRecord { mut metadata, spec, status } = record;
        let of = slice_of(&metadata);
        (metadata.labels, metadata.finalizers) = (None, None);
        let length = spec.bytes;
        let conditions = status.0.map(|status| status.conditions).unwrap_or_default();
        let is_too_much = conditions.iter().any(|c| c.reason.as_deref() == Some(OVER_QUOTA));
        let is_its = |spec: &SliceSpec| {
            of.as_ref().is_some_and(|(cluster, service)| {
                spec.cluster_id.as_ref() == Some(cluster)
                    && spec.namespace.as_ref() == Some(&service.namespace)
                    && spec.name.as_ref() == Some(&service.name)
            })
        };
        let spec = spec.content.ok().filter(|spec| !is_too_much && is_its(spec));
        let payload = spec.and_then(|spec| spec.endpoint_slice).filter(|slice| slice.check().is_ok());
        let bytes = payload.as_ref().map_or(0, |slice| length.max(slice.weight()));
        Self { metadata, of, payload, bytes }
    }
}

fn slice_of(metadata: &ObjectMeta) -> Option<(String, ServiceName)> {
    let label = |key: &str| metadata.labels.as_ref()?.get(key).cloned();
    let cluster = label(label::SOURCE_CLUSTER_ID)?;
    let service = ServiceName::new(label(label::SOURCE_NAMESPACE)?, label(label::SOURCE_NAME)?);
    let record = metadata.name.as_deref().unwrap_or_default();
    name::is_slice_export(record, &cluster, &service).then_some((cluster, service))
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
