//! What a record is worth by itself: pure.
//!
//! A record that is not valid takes no part in anything. It does not count as empty either: what its cluster offered before stays
//! as it is until the cluster writes a valid one. So whose a record is, is known also where its spec does not say it.

use api::{
    ServiceName,
    antrea::Members,
    label,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, EndpointsPayload, SERVICE, ServicePayload},
    resource_import::Objection,
};
use kube::api::ObjectMeta;

use super::index::{
    identity::{identity, owner},
    judged::{Judged, Judgement},
    record::{Payload, Record, RecordSpec, bytes, is_withdrawn},
};

/// The record and what it is worth; `antrea` are the members that write theirs as Antrea does.
pub(super) fn judged(record: Record, antrea: &Members) -> Judged {
    let Record { mut metadata, spec, status } = record;
    let conditions = status.0.map(|status| status.conditions).unwrap_or_default();
    let bytes = spec.bytes + bytes(&metadata);
    let (said, judgement) = match spec.content {
        Ok(spec) => (spec.cluster_id.clone(), judge(&metadata, spec, antrea)),
        Err(error) => (None, undecodable(&metadata, &error, spec.withdrawn, antrea)),
    };
    let labelled = || metadata.labels.as_ref()?.get(label::SOURCE_CLUSTER_ID).cloned();
    let cluster = said.or_else(labelled).or_else(|| owner(&metadata, antrea).map(|(cluster, _)| cluster));
    let cluster = cluster.unwrap_or_default();
    metadata.labels = None;
    Judged { metadata, cluster, bytes, judgement, conditions }
}

fn judge(metadata: &ObjectMeta, spec: RecordSpec, antrea: &Members) -> Judgement {
    let kind = spec.kind.as_str();
    match kind {
        SERVICE | ENDPOINT_SLICE => {}
        ENDPOINTS if !antrea.is_empty() => {}
        _ => return foreign(metadata, kind, antrea),
    }
    let (cluster, service) = match identity(metadata, kind, &spec, antrea) {
        Ok(identity) => identity,
        Err(objection) => return Judgement::refused(objection, owner(metadata, antrea)),
    };
    let withdrawn = is_withdrawn(metadata, &cluster, antrea);
    match spec.payload {
        Payload::Slice(Ok(_)) => Judgement::Passed,
        Payload::Slice(Err(objection)) => Judgement::refused(objection, None),
        _ if withdrawn && kind == ENDPOINTS => {
            Judgement::Endpoints { cluster, service, payload: EndpointsPayload::default() }
        }
        Payload::Endpoints(text) => match text.read() {
            Ok(payload) => Judgement::Endpoints { cluster, service, payload },
            Err(objection) => Judgement::refused(objection, None),
        },
        _ if withdrawn && kind == SERVICE => withdrawal(cluster, service),
        Payload::Service(Ok(payload)) => Judgement::Service { cluster, service, payload },
        Payload::Service(Err(objection)) => Judgement::refused(objection, Some((cluster, service))),
        Payload::Unkept => Judgement::Unread { of: (kind == SERVICE).then_some((cluster, service)) },
        Payload::Missing => {
            let of = (kind == SERVICE).then_some((cluster, service));
            Judgement::refused(Objection::new("NoPayload", format!("spec.{} is missing", field(kind))), of)
        }
    }
}

/// The field of a record that its kind is about.
fn field(kind: &str) -> &'static str {
    match kind {
        ENDPOINT_SLICE => "endpointSlice",
        ENDPOINTS => "endpoints",
        _ => "service",
    }
}

/// A kind that is none of our business, unless the record is labelled as one of a Service.
fn foreign(metadata: &ObjectMeta, kind: &str, antrea: &Members) -> Judgement {
    let labelled = metadata.labels.as_ref().and_then(|labels| labels.get(label::SOURCE_KIND));
    match owner(metadata, antrea).filter(|_| labelled.is_some_and(|kind| kind == SERVICE)) {
        None => Judgement::Foreign,
        of => {
            let message =
                format!("spec.kind is {kind:?}, and the record is named and labelled as one of a Service");
            Judgement::refused(Objection::new("ForeignTuple", message), of)
        }
    }
}

/// A record that does not decode; it may still say that it is taken back.
fn undecodable(metadata: &ObjectMeta, error: &str, says_withdrawn: bool, antrea: &Members) -> Judgement {
    let of = owner(metadata, antrea);
    if let Some((cluster, service)) =
        of.clone().filter(|(cluster, _)| says_withdrawn || is_withdrawn(metadata, cluster, antrea))
    {
        return withdrawal(cluster, service);
    }
    Judgement::refused(Objection::new("NotDecodable", format!("spec does not decode: {error}")), of)
}

fn withdrawal(cluster: String, service: ServiceName) -> Judgement {
    let payload = ServicePayload { withdrawn: true, ..ServicePayload::default() };
    Judgement::Service { cluster, service, payload: Box::new(payload) }
}

#[cfg(test)]
mod tests;
