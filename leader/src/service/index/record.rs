//! A record as it is watched, and whether its member takes it back by deleting it, as Antrea's do.
//!
//! What the leader does not use is let go while a record is decoded: so a long list costs what is kept of it.

use std::net::IpAddr;

use api::{
    antrea::{Members, RECORD_FINALIZERS},
    ranges::Bounds,
    resource_export::{
        ENDPOINT_SLICE, ENDPOINTS, EndpointsPayload, HEADLESS, ResourceExport, ResourceExportStatus, SERVICE,
        ServicePayload,
    },
    resource_import::Objection,
    slice::SlicePayload,
    view::{Lenient, Measured, Unread, decoded, sourced, weight},
};
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::payload::{check_endpoints, check_slice};

/// A ResourceExport. Whatever is in it, the watch goes on.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct Record {
    #[serde(deserialize_with = "sourced")]
    pub(crate) metadata: ObjectMeta,
    /// What the member says.
    #[serde(default)]
    pub(crate) spec: Said,
    /// What we said about it.
    #[serde(default)]
    pub(crate) status: Lenient<ResourceExportStatus>,
}

impl Record {
    /// The record with no other addresses than those that its member may not export: most have none.
    pub(crate) fn bounded(mut self, bounds: &Bounds) -> Self {
        if let Ok(RecordSpec { cluster_id: Some(cluster), payload: Payload::Slice(Ok(slice)), .. }) =
            &mut self.spec.content
        {
            slice.addresses = match bounds.of(cluster) {
                None => Box::default(),
                Some(ranges) => {
                    slice.addresses.iter().copied().filter(|address| !ranges.contains(*address)).collect()
                }
            };
        }
        self
    }
}

/// What a member says in a record.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// Length of its JSON text, or the memory that it needs here or in importers if that is more.
    pub(crate) bytes: usize,
    /// What it says, if it is read.
    pub(crate) content: Result<RecordSpec, Unread>,
    /// Whether it is taken back, though it does not decode otherwise.
    pub(crate) withdrawn: bool,
}

impl Default for Said {
    fn default() -> Self {
        Self { bytes: 0, content: Ok(RecordSpec::default()), withdrawn: false }
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Measured { bytes, content } = Measured::<RecordSpec>::of(&text);
        let weight = content.as_ref().map_or(0, |spec: &RecordSpec| spec.payload.weight());
        let withdrawn = content.is_err() && decoded::<Withdrawal>(&text).is_ok_and(|said| said.is_one());
        Ok(Self { bytes: bytes.max(weight), content, withdrawn })
    }
}

/// The one word of a record that counts whatever else is in it.
#[derive(Deserialize)]
struct Withdrawal {
    service: Lenient<Withdrawn>,
}

#[derive(Deserialize)]
struct Withdrawn {
    withdrawn: bool,
}

impl Withdrawal {
    fn is_one(&self) -> bool {
        self.service.0.as_ref().is_ok_and(|service| service.withdrawn)
    }
}

/// What the leader reads of a record.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "AllFields")]
pub(crate) struct RecordSpec {
    pub(crate) cluster_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) kind: String,
    pub(crate) payload: Payload,
}

/// What the kind of a record is about, if an API server would take it; no more of it than the leader uses.
#[derive(Clone, Debug, Default)]
pub(crate) enum Payload {
    /// The field of its kind is not there.
    #[default]
    Missing,
    Service(Result<Box<ServicePayload>, Objection>),
    /// It does not pass through the leader.
    Slice(Result<Slice, Objection>),
    Endpoints(EndpointsText),
    /// There was more than is kept of a list.
    Unkept,
}

/// What is read of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    /// How much memory importers need for it.
    weight: usize,
    /// Its addresses; of these, once it is [`bounded`](Record::bounded), those that its member may not export.
    pub(crate) addresses: Box<[IpAddr]>,
}

impl Slice {
    fn of(said: &SlicePayload) -> Self {
        let addresses = said.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        Self {
            weight: said.weight(),
            addresses: addresses.filter_map(|address| address.parse().ok()).collect(),
        }
    }
}

/// The leader keeps what it takes in, and its part of what it makes of it.
const COPIES: usize = 2;

impl Payload {
    fn weight(&self) -> usize {
        match self {
            Self::Slice(Ok(slice)) => slice.weight,
            Self::Service(Ok(service)) => COPIES * service.weight(),
            Self::Endpoints(text) => COPIES * weight(text.0.get()),
            _ => 0,
        }
    }
}

/// All endpoints of a Service. A text until they are judged: decoded they take fifteen times as much, and they are read only while a member
/// runs Antrea's controllers.
#[derive(Clone, Debug)]
pub(crate) struct EndpointsText(Box<RawValue>);

impl EndpointsText {
    /// What it says, if an API server would take it.
    pub(crate) fn read(&self) -> Result<EndpointsPayload, Objection> {
        let said = decoded::<EndpointsPayload>(&self.0);
        let said = said.map_err(|error| {
            Objection::new("NotDecodable", format!("spec.endpoints cannot be read: {error}"))
        })?;
        check_endpoints(&said).map(|()| said)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AllFields {
    #[serde(rename = "clusterID")]
    cluster_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    kind: Option<String>,
    service: Option<ServicePayload>,
    endpoint_slice: Option<SlicePayload>,
    endpoints: Option<Box<RawValue>>,
}

impl From<AllFields> for RecordSpec {
    fn from(all: AllFields) -> Self {
        let kind = all.kind.unwrap_or_default();
        let payload = match kind.as_str() {
            SERVICE => all.service.map(|service| Payload::Service(merged(service).map(Box::new))),
            ENDPOINT_SLICE => all
                .endpoint_slice
                .map(|slice| Payload::Slice(check_slice(&slice).map(|()| Slice::of(&slice)))),
            ENDPOINTS => all.endpoints.map(|text| Payload::Endpoints(EndpointsText(text))),
            _ => None,
        };
        let (cluster_id, name, namespace) = (all.cluster_id, all.name, all.namespace);
        Self { cluster_id, name, namespace, kind, payload: payload.unwrap_or_default() }
    }
}

/// A Service with nothing but what is merged; without anything if it is taken back.
fn merged(payload: ServicePayload) -> Result<ServicePayload, Objection> {
    if payload.withdrawn {
        return Ok(ServicePayload { withdrawn: true, ..ServicePayload::default() });
    }
    payload.check().map_err(|unfit| Objection::new(unfit.reason(), unfit.to_string()))?;
    Ok(ServicePayload { service_spec: spec(payload.service_spec), ..payload })
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

/// What a text takes in memory besides its length.
const ALLOCATED: usize = 40;

/// Bytes of the metadata that the member says and we keep while the record is judged.
pub(crate) fn bytes(metadata: &ObjectMeta) -> usize {
    let labels = metadata.labels.iter().flatten().map(|(key, value)| key.len() + value.len());
    let finalizers = metadata.finalizers.iter().flatten().map(|finalizer| finalizer.len() + ALLOCATED);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::service::index::entry::Import;

    const FIELDS: &[&str] = &[
        "service",
        "serviceSpec",
        "exportedAt",
        "withdrawn",
        "kind",
        "name",
        "namespace",
        "clusterID",
        "ports",
        "port",
        "endpointSlice",
        "endpoints",
        "addresses",
        "subsets",
        "exporters",
        "serviceImport",
        "spec",
        "ips",
        "conditions",
        "lastTransitionTime",
        "exportedLabels",
        "sessionAffinityConfig",
        "labels",
    ];

    proptest! {
        #[test]
        fn a1_no_record_stops_a_list(odd in odd::anything(FIELDS)) {
            odd::everywhere::<Record>(&odd).unwrap();
            odd::everywhere::<Import>(&odd).unwrap();
        }

        #[test]
        fn a1_no_payload_stops_a_list(
            payload in odd::anything(FIELDS),
            kind in proptest::sample::select(&[SERVICE, ENDPOINT_SLICE, ENDPOINTS][..]),
        ) {
            let spec = serde_json::json!({
                "kind": kind, "clusterID": "east", "name": "web", "namespace": "shop",
                "service": payload, "endpointSlice": payload, "endpoints": payload,
            });
            odd::everywhere::<Record>(&spec).unwrap();
        }
    }
}
