//! Core Endpoints beside the slices of an import, for data planes that read nothing else (`--endpoints-objects`): the slices once
//! more, in the form of before. What is in them is pure; Kubernetes' own limits hold.

use std::collections::{BTreeMap, BTreeSet};

use api::{label, name, resource_import::MergedMetadata};
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};
use kube::ResourceExt;

use super::{
    Importing, metadata,
    object::derived,
    plan::DesiredImport,
    verdict::{Refusal, Refusals},
};
use crate::service::index::{
    endpoints::{CoreEndpoints, canonical},
    known::Known,
    view::{Endpoint, Slice, SlicePort},
};

/// Most addresses of an Endpoints object, as Kubernetes writes them.
const ADDRESSES_MAX: usize = 1000;
/// Annotation of an Endpoints object that lacks some addresses, and its value (Kubernetes).
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const TRUNCATED: &str = "truncated";
/// Label of an Endpoints object of which Kubernetes shall make no EndpointSlices: there are some (Kubernetes).
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Label of an Endpoints object of a headless Service (Kubernetes).
const HEADLESS: &str = "service.kubernetes.io/headless";

impl Importing {
    /// Writes the Endpoints of an import, or takes them away where there have to be none. While nobody `is_reachable` by way of
    /// the Service they stay as they are, like the slices.
    pub(super) async fn put_endpoints(
        &self,
        known: &Known,
        desired: &DesiredImport,
        is_reachable: bool,
        refusals: &mut Refusals,
    ) {
        let have = known.entry.imported_endpoints.as_deref();
        let done = match (endpoints(known, desired), have) {
            (None, Some(have)) => self.delete(have).await,
            (Some(want), _) if is_reachable => {
                self.knowledge.put_imported(&self.writer, have, &want).await.map(drop)
            }
            _ => Ok(()),
        };
        refusals.note(Refusal::Endpoints, done);
    }
}

/// The Endpoints as they have to be here, of the slices that will be here; none where nobody wants any, or where the Service is
/// somebody else's or has no address.
fn endpoints(known: &Known, desired: &DesiredImport) -> Option<CoreEndpoints> {
    if !known.cluster.endpoints_objects || desired.taken {
        return None;
    }
    // They have room for one family: the first of the Service.
    let family = derived(known, desired).spec.ip_families.into_iter().next()?;
    let service = &known.service;
    let slices = desired.slices.iter().chain(&desired.held);
    let slices: BTreeMap<String, &Slice> = slices.map(|slice| (slice.name_any(), slice)).collect();
    let mut subsets = subsets(slices.into_values().filter(|slice| slice.address_type == family));
    let mut metadata = metadata::of_ours(service, name::imported_service(&service.name));
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(label::MCS_SERVICE_NAME.into(), service.name.clone());
    labels.insert(SKIP_MIRROR.into(), label::TRUE.into());
    // By the note that `add` makes of them they go when they are not true any more.
    let mut for_now = MergedMetadata::default();
    if desired.is_headless() {
        for_now.labels.insert(HEADLESS.into(), String::new());
    }
    if truncate(&mut subsets) {
        for_now.annotations.insert(OVER_CAPACITY.into(), TRUNCATED.into());
    }
    metadata::add(&for_now, &mut metadata);
    Some(CoreEndpoints { metadata, subsets: canonical(subsets) })
}

type Port = (Option<String>, i32, Option<String>, Option<String>);

/// What one address serves: ports by which it takes traffic, and by which it does not yet.
#[derive(Default)]
struct Served {
    address: EndpointAddress,
    ready: Option<BTreeSet<Port>>,
    not_ready: Option<BTreeSet<Port>>,
}

/// Addresses by the ports that they serve. One that is ready in any slice is ready; one that ends and is not ready is left out.
fn subsets<'a>(slices: impl Iterator<Item = &'a Slice>) -> Vec<EndpointSubset> {
    let mut served = BTreeMap::<&str, Served>::new();
    for slice in slices {
        let ports: BTreeSet<Port> = slice.ports.iter().filter_map(port).collect();
        for endpoint in &slice.endpoints {
            let conditions = endpoint.shared.conditions.as_ref();
            let is_ready = endpoint.shared.is_ready();
            let ends = conditions.is_some_and(|conditions| conditions.terminating == Some(true));
            // All addresses of an endpoint are the same endpoint.
            let Some(ip) = endpoint.shared.addresses.first().filter(|_| is_ready || !ends) else { continue };
            let of = served.entry(ip).or_default();
            if of.address.ip.is_empty() {
                of.address = address(ip, endpoint);
            }
            let kind = if is_ready { &mut of.ready } else { &mut of.not_ready };
            kind.get_or_insert_default().extend(ports.iter().cloned());
        }
    }
    let mut by_ports = BTreeMap::<BTreeSet<Port>, (Vec<EndpointAddress>, Vec<EndpointAddress>)>::new();
    for Served { address, ready, not_ready } in served.into_values() {
        let rest = not_ready.map(|ports| &ports - ready.as_ref().unwrap_or(&BTreeSet::new()));
        if let Some(ports) = rest.filter(|rest| ready.is_none() || !rest.is_empty()) {
            by_ports.entry(ports).or_default().1.push(address.clone());
        }
        if let Some(ports) = ready {
            by_ports.entry(ports).or_default().0.push(address);
        }
    }
    let subset = |(ports, (ready, not_ready)): (BTreeSet<Port>, (Vec<_>, Vec<_>))| {
        // Beside another port one needs a name. For a moment it has none, when it gets company.
        let are_several = ports.len() > 1;
        let ports = ports.into_iter().filter(|port| !are_several || port.0.is_some());
        EndpointSubset {
            addresses: Some(ready),
            not_ready_addresses: Some(not_ready),
            ports: Some(ports.map(core_port).collect()),
        }
    };
    by_ports.into_iter().map(subset).collect()
}

fn port(port: &SlicePort) -> Option<Port> {
    let name = port.name.clone().filter(|name| !name.is_empty());
    Some((name, port.port?, port.protocol.clone(), port.app_protocol.clone()))
}

fn core_port((name, port, protocol, app_protocol): Port) -> EndpointPort {
    EndpointPort { name, port, protocol, app_protocol }
}

fn address(ip: &str, endpoint: &Endpoint) -> EndpointAddress {
    EndpointAddress {
        ip: ip.to_owned(),
        hostname: endpoint.shared.hostname.clone(),
        node_name: endpoint.node_name.clone(),
        target_ref: endpoint.target_ref.clone(),
    }
}

/// Leaves out what is too much, as Kubernetes does: of each subset in proportion, first those that are not ready. Whether there was
/// too much.
fn truncate(subsets: &mut Vec<EndpointSubset>) -> bool {
    let size = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
    let ready: usize = subsets.iter().map(|subset| size(&subset.addresses)).sum();
    let not_ready: usize = subsets.iter().map(|subset| size(&subset.not_ready_addresses)).sum();
    if ready + not_ready <= ADDRESSES_MAX {
        return false;
    }
    let (room, total) =
        if ready > ADDRESSES_MAX { (ADDRESSES_MAX, ready) } else { (ADDRESSES_MAX - ready, not_ready) };
    let mut left = room;
    for subset in subsets.iter_mut() {
        let list = if ready > ADDRESSES_MAX {
            subset.not_ready_addresses = None;
            &mut subset.addresses
        } else {
            &mut subset.not_ready_addresses
        };
        let share = (size(list) * room).div_ceil(total).min(left);
        left -= share;
        list.iter_mut().for_each(|list| list.truncate(share));
    }
    // An API server takes none without addresses.
    subsets.retain(|subset| size(&subset.addresses) + size(&subset.not_ready_addresses) > 0);
    true
}

#[cfg(test)]
mod tests;
