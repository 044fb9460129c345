//! What a record is worth by itself: pure.
//!
//! A record that is not valid takes no part in anything. It does not count as empty either: what its cluster offered before stays
//! as it is until the cluster writes a valid one. So whose a record is, is known also where its spec does not say it.

mod payload;

use api::{
    ServiceName,
    antrea::Members,
    label,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, SERVICE, ServicePayload},
    resource_import::Objection,
};
use kube::api::ObjectMeta;

use super::index::{
    identity::{identity, owner},
    judged::{Judged, Judgement},
    record::{Record, RecordSpec, bytes, is_withdrawn},
};

/// The record and what it is worth; `antrea` are the members that write theirs as Antrea does.
pub(super) fn judged(record: Record, antrea: &Members) -> Judged {
    let Record { mut metadata, spec, status } = record;
    let conditions = status.0.map(|status| status.conditions).unwrap_or_default();
    let bytes = spec.bytes + bytes(&metadata);
    let (said, judgement) = match spec.content {
        Ok(spec) => (spec.cluster_id.clone(), judge(&metadata, spec, antrea)),
        Err(error) => (None, undecodable(&metadata, &error, antrea)),
    };
    let labelled = || metadata.labels.as_ref()?.get(label::SOURCE_CLUSTER_ID).cloned();
    let cluster = said.or_else(labelled).or_else(|| owner(&metadata, antrea).map(|(cluster, _)| cluster));
    let cluster = cluster.unwrap_or_default();
    metadata.labels = None;
    Judged { metadata, cluster, bytes, judgement, conditions }
}

fn judge(metadata: &ObjectMeta, spec: RecordSpec, antrea: &Members) -> Judgement {
    let kind = spec.kind.clone().unwrap_or_default();
    match kind.as_str() {
        SERVICE | ENDPOINT_SLICE => {}
        ENDPOINTS if !antrea.is_empty() => {}
        _ => return foreign(metadata, &kind, antrea),
    }
    let (cluster, service) = match identity(metadata, &kind, &spec, antrea) {
        Ok(identity) => identity,
        Err(objection) => return Judgement::refused(objection, owner(metadata, antrea)),
    };
    let withdrawn = is_withdrawn(metadata, &cluster, antrea);
    match kind.as_str() {
        ENDPOINT_SLICE => match payload::slice(spec.endpoint_slice) {
            Ok(()) => Judgement::Passed,
            Err(objection) => Judgement::refused(objection, None),
        },
        ENDPOINTS => match payload::endpoints(spec.endpoints.filter(|_| !withdrawn), withdrawn) {
            Ok(payload) => Judgement::Endpoints { cluster, service, payload },
            Err(objection) => Judgement::refused(objection, None),
        },
        _ if withdrawn => withdrawal(cluster, service),
        _ => match payload::service(spec.service) {
            Ok(payload) => Judgement::Service { cluster, service, payload: Box::new(payload) },
            Err(objection) => Judgement::refused(objection, Some((cluster, service))),
        },
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

fn undecodable(metadata: &ObjectMeta, error: &str, antrea: &Members) -> Judgement {
    let of = owner(metadata, antrea);
    if let Some((cluster, service)) =
        of.clone().filter(|(cluster, _)| is_withdrawn(metadata, cluster, antrea))
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
