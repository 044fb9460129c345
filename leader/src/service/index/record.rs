//! A record as it is watched, and whether its member takes it back by deleting it, as Antrea's do.
//!
//! What the leader does not use is let go while a record is decoded: so a long list costs what is kept of it.

use api::{
    antrea::{Members, RECORD_FINALIZERS},
    resource_export::{EndpointsPayload, HEADLESS, ResourceExport, ResourceExportStatus, ServicePayload},
    slice::SlicePayload,
    view::{Lenient, Measured, lean},
};
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer};

/// A ResourceExport. Whatever is in it, the watch goes on.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct Record {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What the member says, if it decodes.
    #[serde(default)]
    pub(crate) spec: Measured<RecordSpec>,
    /// What we said about it.
    #[serde(default)]
    pub(crate) status: Lenient<ResourceExportStatus>,
}

/// What the leader reads of a record.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RecordSpec {
    #[serde(rename = "clusterID")]
    pub(crate) cluster_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "merged")]
    pub(crate) service: Option<ServicePayload>,
    pub(crate) endpoint_slice: Option<Checked>,
    pub(crate) endpoints: Option<EndpointsPayload>,
}

/// Whether a slice is valid. It does not pass through the leader.
#[derive(Clone, Debug)]
pub(crate) struct Checked(pub(crate) Result<(), String>);

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SlicePayload::deserialize(deserializer).map(|slice| Self(slice.check()))
    }
}

/// A Service with nothing but what is merged; without anything if it is taken back.
fn merged<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ServicePayload>, D::Error> {
    let payload = Option::<ServicePayload>::deserialize(deserializer)?;
    Ok(payload.map(|payload| match payload.withdrawn {
        true => ServicePayload { withdrawn: true, ..ServicePayload::default() },
        false => ServicePayload { service_spec: spec(payload.service_spec), ..payload },
    }))
}

fn spec(said: ServiceSpec) -> ServiceSpec {
    let port = |said: ServicePort| ServicePort {
        name: said.name,
        port: said.port,
        protocol: said.protocol,
        app_protocol: said.app_protocol,
        ..ServicePort::default()
    };
    ServiceSpec {
        cluster_ip: said.cluster_ip.filter(|ip| ip == HEADLESS),
        ports: said.ports.map(|ports| ports.into_iter().map(port).collect()),
        ip_families: said.ip_families,
        session_affinity: said.session_affinity,
        session_affinity_config: said.session_affinity_config,
        internal_traffic_policy: said.internal_traffic_policy,
        traffic_distribution: said.traffic_distribution,
        ..ServiceSpec::default()
    }
}

/// Bytes of the metadata that the member says and we keep while the record is judged.
pub(crate) fn bytes(metadata: &ObjectMeta) -> usize {
    let labels = metadata.labels.iter().flatten().map(|(key, value)| key.len() + value.len());
    let finalizers = metadata.finalizers.iter().flatten().map(String::len);
    labels.chain(finalizers).sum()
}

/// Whether a record is being deleted and has a finalizer that the leader takes off.
pub(crate) fn is_held(metadata: &ObjectMeta) -> bool {
    let ours = |finalizer: &String| RECORD_FINALIZERS.contains(&finalizer.as_str());
    metadata.deletion_timestamp.is_some() && metadata.finalizers.iter().flatten().any(ours)
}

/// Whether `cluster` has taken the record back by deleting it. Freeport's members put no finalizer on a record, so one of theirs
/// that is being deleted merely vanishes.
pub(crate) fn is_withdrawn(metadata: &ObjectMeta, cluster: &str, antrea: &Members) -> bool {
    metadata.deletion_timestamp.is_some() && (antrea.contains(cluster) || is_held(metadata))
}
