//! One imported EndpointSlice for each source slice, so that endpoints that were together stay together: pure.

use std::{collections::BTreeMap, net::IpAddr};

use api::{
    ServiceName, label,
    mcs::{ServiceImportSpec, ServiceImportType, ServicePort},
    name, port,
    slice::SlicePayload,
};
use k8s_openapi::api::discovery::v1::{EndpointHints, ForNode, ForZone};

use super::metadata;
use crate::view::{Endpoint, Slice, SlicePort};

/// Where a slice comes from.
pub struct Source<'a> {
    /// The cluster.
    pub cluster: &'a str,
    /// Name of its record, or of the record it would have.
    pub record: &'a str,
    /// The slice itself, where it is of this cluster.
    pub local: Option<&'a Slice>,
}

/// The slice as it has to be here; `None` when nothing of it is reached through the import.
pub fn imported(
    service: &ServiceName,
    from: &Source<'_>,
    payload: &SlicePayload,
    merged: &ServiceImportSpec,
) -> Option<Slice> {
    let ports: Vec<_> = payload
        .ports
        .iter()
        .filter_map(|port| {
            // A cluster serves a port of the merged Service if its own Service has that very number and protocol
            // (rule R-42), whatever it calls it.
            let is_it = |merged: &&ServicePort| {
                port::is_same(
                    merged.port,
                    merged.protocol.as_deref(),
                    port.service_port,
                    Some(&port.protocol),
                )
            };
            let merged = merged.ports.iter().find(is_it)?;
            Some(SlicePort {
                name: Some(merged.name.clone().unwrap_or_default()),
                protocol: Some(port.protocol.clone()),
                port: Some(port.port),
                app_protocol: merged.app_protocol.clone(),
            })
        })
        .collect();
    // By an address of its own an endpoint is reached on all its ports, and on none by way of a Service.
    let is_reached = !ports.is_empty() || merged.type_ == ServiceImportType::Headless;
    if !is_reached || payload.endpoints.is_empty() {
        return None;
    }
    let mut metadata = metadata::of_ours(service, name::imported_slice(&service.name, from.record));
    let source = (label::MCS_SOURCE_CLUSTER.to_owned(), from.cluster.to_owned());
    metadata.labels.get_or_insert_default().extend([source]);
    let slice = Slice {
        metadata,
        address_type: payload.address_type.clone(),
        endpoints: endpoints(from, payload, merged.traffic_distribution.as_deref()),
        ports,
    };
    Some(labelled(service, slice))
}

/// The slice while ports of its Service get other names than they have there (`before`): under both. Whoever reads Service and slices one
/// after the other finds endpoints in either order.
pub fn under_both_names(slice: &mut Slice, before: &[ServicePort], after: &[ServicePort]) {
    let mut more = Vec::new();
    for port in &slice.ports {
        let Some(now) = after.iter().find(|now| port.name.as_deref() == Some(word(now))) else { continue };
        let Some(was) = before.iter().find(|was| is_same(was, now)).map(word) else { continue };
        // Two that change names with each other cannot have both.
        if slice.ports.iter().all(|other| other.name.as_deref() != Some(was)) {
            more.push(SlicePort { name: Some(was.to_owned()), ..port.clone() });
        }
    }
    slice.ports.extend(more);
}

/// Reports whether a port has another name than before.
pub fn are_renamed(before: &[ServicePort], after: &[ServicePort]) -> bool {
    before.iter().any(|was| after.iter().any(|now| is_same(was, now) && word(was) != word(now)))
}

fn is_same(a: &ServicePort, b: &ServicePort) -> bool {
    port::is_same(a.port, a.protocol.as_deref(), b.port, b.protocol.as_deref())
}

/// The name of a port: of an unnamed one an empty word.
fn word(port: &ServicePort) -> &str {
    port.name.as_deref().unwrap_or_default()
}

/// The slice as one of ours that belongs to the import, wherever it comes from.
pub fn labelled(service: &ServiceName, mut slice: Slice) -> Slice {
    let labels = [
        (label::MANAGED_BY, label::FREEPORT.to_owned()),
        (label::SLICE_MANAGED_BY, label::FREEPORT.to_owned()),
        (label::SERVICE_NAME, name::imported_service(&service.name)),
        (label::MCS_SERVICE_NAME, service.name.clone()),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value));
    slice.metadata.labels.get_or_insert_default().extend(labels);
    (slice.metadata.finalizers, slice.metadata.owner_references) = (Some(vec![]), Some(vec![]));
    slice
}

/// Nodes and Pods mean something only in the cluster they are of: elsewhere a node of the same name would be taken for it.
fn endpoints(from: &Source<'_>, payload: &SlicePayload, distribution: Option<&str>) -> Vec<Endpoint> {
    let local: BTreeMap<_, _> =
        from.local.iter().flat_map(|slice| &slice.endpoints).map(|e| (&e.shared.addresses, e)).collect();
    let endpoint = |shared: &api::slice::Endpoint| {
        let local = local.get(&shared.addresses);
        let node_name = local.and_then(|endpoint| endpoint.node_name.clone());
        let hints = hints(distribution, from.cluster, shared.zone.as_deref(), node_name.as_deref());
        let target_ref = local.and_then(|endpoint| endpoint.target_ref.clone());
        Endpoint { shared: canonical(shared), node_name, target_ref, hints }
    };
    payload.endpoints.iter().map(endpoint).collect()
}

/// Addresses as API servers want them written, which older ones did not (`2001:DB8::1`).
fn canonical(endpoint: &api::slice::Endpoint) -> api::slice::Endpoint {
    let canonical = |address: &String| address.parse().map_or(address.clone(), |ip: IpAddr| ip.to_string());
    api::slice::Endpoint { addresses: endpoint.addresses.iter().map(canonical).collect(), ..endpoint.clone() }
}

/// What makes kube-proxy prefer near endpoints: it follows hints alone, and Kubernetes writes them only into slices of its own.
///
/// It follows those for nodes only where every endpoint has one, so an endpoint elsewhere is meant for a node nobody has here.
fn hints(
    distribution: Option<&str>,
    cluster: &str,
    zone: Option<&str>,
    node: Option<&str>,
) -> Option<EndpointHints> {
    let by_node = match distribution? {
        "PreferSameNode" => true,
        "PreferSameZone" | "PreferClose" => false,
        _ => return None,
    };
    let node = || node.map_or_else(|| format!("{cluster}.{}", label::ELSEWHERE), str::to_owned);
    let hints = EndpointHints {
        for_nodes: by_node.then(|| vec![ForNode { name: node() }]),
        for_zones: zone.map(|zone| vec![ForZone { name: zone.to_owned() }]),
    };
    (hints != EndpointHints::default()).then_some(hints)
}
