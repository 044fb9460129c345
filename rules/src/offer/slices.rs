//! A Service's endpoints as slices: those that travel, and those that this cluster uses itself. Pure.

mod kept;

use std::collections::BTreeMap;

use api::{
    family, label,
    mcs::ServicePort,
    name, port,
    slice::{self, SlicePayload, SlicePort},
};
use k8s_openapi::api::{core::v1 as core, discovery::v1::EndpointConditions};

use super::Offer;
use crate::view::{self, Slice};

/// The slices that other clusters get, by the names of their records.
pub(super) fn exported(offer: &Offer<'_>) -> BTreeMap<String, SlicePayload> {
    let local = offer.local;
    // A headless Service that was exported before this member exported ClusterIPs has none.
    if !local.only_cluster_ips || offer.is_kept && offer.payload.is_headless() {
        return own(offer);
    }
    let of_family = |address: &String| {
        // Not the name of any EndpointSlice.
        let source = format!("ClusterIP/{}", family::of(address));
        let record = name::slice_export(local.cluster, local.name, &source);
        (record, cluster_ip(address, offer))
    };
    offer.service.spec.addresses().map(of_family).collect()
}

/// The slices of the Service here, as other clusters would see them.
pub(super) fn own(offer: &Offer<'_>) -> BTreeMap<String, SlicePayload> {
    let local = offer.local;
    let families = families(offer);
    let of_families = local.slices.iter().filter(|(_, slice)| families.contains(&slice.address_type));
    let of = |source: &String, slice: &Slice| {
        let record = name::slice_export(local.cluster, local.name, source);
        let ports = ports(offer, &record, slice);
        (record, payload(slice, ports))
    };
    of_families.map(|(source, slice)| of(source, slice)).collect()
}

/// The families that slices are exported of.
pub(super) fn families(offer: &Offer<'_>) -> Vec<String> {
    family::said(offer.payload.service_spec.ip_families.as_deref().unwrap_or_default())
}

/// Reports whether the endpoints of a slice are reached on any port through the Service here.
pub(super) fn has_port(offer: &Offer<'_>, source: &str, slice: &Slice) -> bool {
    let record = name::slice_export(offer.local.cluster, offer.local.name, source);
    !ports(offer, &record, slice).is_empty()
}

/// The ports of that slice, whose record has that name.
fn ports(offer: &Offer<'_>, record: &str, slice: &Slice) -> Vec<SlicePort> {
    match offer.is_kept {
        true => kept::ports(offer, record, slice),
        false => current(slice, &offer.service.spec.ports, said(offer, record)),
    }
}

/// What the record of that name says.
fn said<'a>(offer: &Offer<'a>, record: &str) -> Option<&'a SlicePayload> {
    let record = offer.local.records.get(record)?;
    record.spec.0.as_ref().ok()?.endpoint_slice.as_ref()
}

/// Who writes the slices of Services that select Pods.
const KUBERNETES: &str = "endpointslice-controller.k8s.io";

/// The Service port that a port of a slice of Kubernetes' led to when we `said` it last, if only its name has changed. An unnamed port
/// that gets company gets a name, and the slice gets it a moment later.
fn renamed<'a>(
    slice: &Slice,
    port: &view::SlicePort,
    service_ports: &'a [ServicePort],
    said: Option<&SlicePayload>,
) -> Option<&'a ServicePort> {
    let by_kubernetes =
        slice.metadata.labels.as_ref().and_then(|labels| labels.get(label::SLICE_MANAGED_BY))? == KUBERNETES;
    let (name, protocol) = (word(port.name.as_ref()), port::protocol(port.protocol.as_deref()));
    let led = |said: &&SlicePort| word(said.name.as_ref()) == name && said.protocol == protocol;
    let number = said.filter(|_| by_kubernetes)?.ports.iter().find(led)?.service_port;
    let is_it = |p: &&ServicePort| port::is_same(p.port, p.protocol.as_deref(), number, Some(protocol));
    let service_port = service_ports.iter().find(is_it)?;
    let has_own = slice.ports.iter().any(|p| word(p.name.as_ref()) == word(service_port.name.as_ref()));
    (!has_own).then_some(service_port)
}

/// No name is an empty one.
fn word(name: Option<&String>) -> &str {
    name.map(String::as_str).unwrap_or_default()
}

/// The ports of a slice that belong to Service ports, by name; one that belongs to none is not reached through the Service here, and so not
/// elsewhere.
fn current(slice: &Slice, service_ports: &[ServicePort], said: Option<&SlicePayload>) -> Vec<SlicePort> {
    let of = |port: &view::SlicePort| {
        let name = word(port.name.as_ref());
        let named_so = service_ports.iter().find(|p| word(p.name.as_ref()) == name);
        let of = named_so.or_else(|| renamed(slice, port, service_ports, said))?;
        exported_port(port, of.port, of.app_protocol.clone())
    };
    slice.ports.iter().filter_map(of).collect()
}

/// A port of a slice, which leads to that port of the Service.
fn exported_port(
    port: &view::SlicePort,
    service_port: i32,
    app_protocol: Option<String>,
) -> Option<SlicePort> {
    Some(SlicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: port::protocol(port.protocol.as_deref()).to_owned(),
        port: port.port?,
        service_port,
        app_protocol,
    })
}

/// The slice with these ports as other clusters see it.
fn payload(slice: &Slice, mut ports: Vec<SlicePort>) -> SlicePayload {
    ports.sort_by(|a, b| (a.service_port, &a.protocol).cmp(&(b.service_port, &b.protocol)));
    // A zone is a hint, and nobody could use this one.
    let zone = |zone: Option<String>| zone.filter(|zone| name::is_label_value(zone));
    let travels = |endpoint: slice::Endpoint| slice::Endpoint { zone: zone(endpoint.zone), ..endpoint };
    let shared = slice.endpoints.iter().map(|endpoint| travels(endpoint.shared.clone()));
    let mut endpoints: Vec<_> = shared.collect();
    endpoints.sort_by(|a, b| a.addresses.cmp(&b.addresses));
    SlicePayload { address_type: slice.address_type.clone(), ports, endpoints }
}

/// A ClusterIP as an endpoint: ready while any Pod behind it is. A port that the Service does not have any more leads nowhere.
fn cluster_ip(address: &str, offer: &Offer<'_>) -> SlicePayload {
    let address_type = family::of(address);
    let behind = offer.local.slices.values().filter(|slice| slice.address_type == address_type);
    let ready = behind.flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.shared.is_ready());
    let conditions = EndpointConditions { ready: Some(ready), ..EndpointConditions::default() };
    let port = |port: &core::ServicePort| SlicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: port::protocol(port.protocol.as_deref()).to_owned(),
        port: port.port,
        service_port: port.port,
        app_protocol: port.app_protocol.clone(),
    };
    let ports = offer.ports().iter().filter(|port| offer.local_port(port).is_some());
    SlicePayload {
        address_type: address_type.to_owned(),
        ports: ports.map(port).collect(),
        endpoints: vec![slice::Endpoint {
            addresses: vec![address.to_owned()],
            conditions: Some(conditions),
            ..slice::Endpoint::default()
        }],
    }
}
