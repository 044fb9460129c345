//! What a record is worth by itself: pure.
//!
//! A record that is not valid takes no part in anything. It does not count as empty either: what its cluster offered before stays
//! as it is until the cluster writes a valid one. So whose a record is, is known also where its spec does not say it.

use api::{
    ServiceName,
    antrea::Members,
    label,
    ranges::Bounds,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, EndpointsPayload, OUT_OF_RANGE, SERVICE, ServicePayload},
    resource_import::Objection,
    view::Unread,
    words::first_names,
};
use kube::api::ObjectMeta;

use super::index::{
    identity::{identity, owner},
    judged::{Judged, Judgement},
    record::{Payload, Record, RecordSpec, bytes, is_withdrawn},
};

/// The record and what it is worth; `antrea` are the members that write theirs as Antrea does, and `bounds` says which addresses
/// members may export.
pub(super) fn judged(record: Record, antrea: &Members, bounds: &Bounds) -> Judged {
    let Record { mut metadata, spec, status } = record.bounded(bounds);
    let conditions = status.0.map(|status| status.conditions).unwrap_or_default();
    let bytes = spec.bytes + bytes(&metadata);
    let (said, outside, mut judgement) = match spec.content {
        Ok(spec) => (spec.cluster_id.clone(), outside(&spec), judge(&metadata, spec, antrea)),
        Err(why) => (None, vec![], unread(&metadata, &why, spec.withdrawn, antrea)),
    };
    let labelled = || metadata.labels.as_ref()?.get(label::SOURCE_CLUSTER_ID).cloned();
    let cluster = said.or_else(labelled).or_else(|| owner(&metadata, antrea).map(|(cluster, _)| cluster));
    let cluster = cluster.unwrap_or_default();
    let remark = match &mut judgement {
        Judgement::Passed => out_of_range(&cluster, &outside, bounds),
        Judgement::Endpoints { payload, .. } => {
            out_of_range(&cluster, &taken_out(payload, &cluster, bounds), bounds)
        }
        _ => None,
    };
    metadata.labels = None;
    Judged { metadata, cluster, bytes, judgement, remark, conditions }
}

/// The addresses of a slice that its member may not export.
fn outside(spec: &RecordSpec) -> Vec<String> {
    match &spec.payload {
        Payload::Slice(Ok(slice)) => slice.addresses.iter().map(ToString::to_string).collect(),
        _ => vec![],
    }
}

/// Takes those out of all endpoints of a Service, which the leader merges; which they were.
fn taken_out(payload: &mut EndpointsPayload, cluster: &str, bounds: &Bounds) -> Vec<String> {
    let Some(ranges) = bounds.of(cluster) else { return vec![] };
    payload.retain(|address| address.parse().is_ok_and(|address| ranges.contains(address)))
}

/// What is to be said of these addresses.
fn out_of_range(cluster: &str, addresses: &[String], bounds: &Bounds) -> Option<Objection> {
    let ranges = bounds.of(cluster).filter(|_| !addresses.is_empty())?;
    let message = format!(
        "{}: in none of the ranges of cluster {cluster} ({ranges}), so other clusters do not send there; the other addresses \
         are used. Ranges are noted on its ServiceAccount at the leader (annotation {})",
        first_names(addresses),
        label::ADDRESS_RANGES
    );
    Some(Objection::new(OUT_OF_RANGE, message))
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

/// A record that is not read; it may still say that it is taken back.
fn unread(metadata: &ObjectMeta, why: &Unread, says_withdrawn: bool, antrea: &Members) -> Judgement {
    let of = owner(metadata, antrea);
    if let Some((cluster, service)) =
        of.clone().filter(|(cluster, _)| says_withdrawn || is_withdrawn(metadata, cluster, antrea))
    {
        return withdrawal(cluster, service);
    }
    let objection = match why {
        Unread::TooLarge(_) => Objection::new("TooLarge", format!("spec is too large: {why}")),
        Unread::Undecodable(_) => Objection::new("NotDecodable", format!("spec cannot be read: {why}")),
    };
    Judgement::refused(objection, of)
}

fn withdrawal(cluster: String, service: ServiceName) -> Judgement {
    let payload = ServicePayload { withdrawn: true, ..ServicePayload::default() };
    Judgement::Service { cluster, service, payload: Box::new(payload) }
}

#[cfg(test)]
mod tests;
