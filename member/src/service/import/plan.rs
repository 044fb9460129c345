//! What has to be here for an import: pure functions of what is known.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    condition::{Status, Verdict},
    label,
    mcs::{self, ServiceImportSpec},
    name,
    resource_import::{Exporter, ResourceImportSpec},
    slice::SlicePayload,
};
use kit::view::Lenient;
use kube::{ResourceExt, api::ObjectMeta};

use crate::service::{
    entry::ServiceEntry,
    export::offer,
    view::{Import, Service, ServiceSpec, Slice, SlicePort, is_ours},
};

/// What a look at one import comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing is imported and nothing of ours is here.
    Nothing,
    /// The import vanished unsaid: everything stays as it is.
    Hold(Doubt),
    /// Nobody exports it any more: what we made goes.
    Remove,
    /// This has to be here.
    Realise(Realise),
}

/// Something is missing that its writer has not taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The leader's import.
    Import(BTreeSet<String>),
    /// Slices of a cluster.
    Slices {
        /// Which cluster.
        cluster: String,
        /// Names of the imported slices whose records are missing.
        missing: BTreeSet<String>,
    },
}

impl Doubt {
    /// Lease of the one who has to vouch.
    pub fn writer(&self) -> String {
        match self {
            Doubt::Import(_) => name::LEADER_LEASE.into(),
            Doubt::Slices { cluster, .. } => name::member_lease(cluster),
        }
    }

    /// Names of what is missing.
    pub fn missing(&self) -> &BTreeSet<String> {
        match self {
            Doubt::Import(missing) | Doubt::Slices { missing, .. } => missing,
        }
    }
}

/// What realises an import here.
#[derive(Clone, Debug, PartialEq)]
pub struct Realise {
    /// The merged Service, each port with a name if there are several.
    pub merged: ServiceImportSpec,
    /// Somebody else's Service has the name of ours: no Service and no slices then.
    pub taken: bool,
    /// Clusters that take part, sorted.
    pub clusters: Vec<String>,
    /// The EndpointSlices.
    pub slices: Vec<Slice>,
    /// Names of slices of ours that have to go.
    pub leftover: Vec<String>,
    /// Slices that are missing without a word; what was imported from them stays.
    pub doubts: Vec<Doubt>,
}

/// Plans for one import.
pub fn desired(us: &str, service: &ServiceName, entry: &ServiceEntry) -> Plan {
    let ours_here = entry.import.as_ref().is_some_and(|import| is_ours(&import.metadata))
        || entry.derived.as_ref().is_some_and(|derived| is_ours(&derived.metadata))
        || !entry.imported_slices.is_empty();
    match &entry.hub_import {
        None if !ours_here => Plan::Nothing,
        None if entry.import_gone => Plan::Remove,
        None => Plan::Hold(Doubt::Import([name::service_import(service)].into())),
        Some(import) => {
            let exporters: Vec<&Exporter> = import.exporters.iter().flatten().collect();
            match exporters.is_empty() {
                true if ours_here => Plan::Remove,
                true => Plan::Nothing,
                false => Plan::Realise(realise(us, service, entry, import, &exporters)),
            }
        }
    }
}

fn realise(
    us: &str,
    service: &ServiceName,
    entry: &ServiceEntry,
    import: &ResourceImportSpec,
    exporters: &[&Exporter],
) -> Realise {
    let mut merged = import.service_import.as_ref().map(|merged| merged.spec.clone()).unwrap_or_default();
    merged.ports = named(&merged.ports);
    let taking_part: BTreeSet<&str> =
        exporters.iter().filter(|e| e.refused.is_none()).map(|e| e.cluster_id.as_str()).collect();
    let own = offer(us, service, entry).ok().flatten().map(|offer| offer.slices).unwrap_or_default();

    let (mut slices, mut leftover, mut doubts) = (Vec::new(), Vec::new(), Vec::new());
    let none = BTreeMap::new();
    for cluster in &taking_part {
        let said = if *cluster == us { &own } else { entry.peers.get(*cluster).unwrap_or(&none) };
        slices.extend(
            said.iter().filter_map(|(record, payload)| imported(service, cluster, record, payload, &merged)),
        );
        let told: BTreeSet<_> =
            said.keys().map(|record| name::imported_slice(&service.name, record)).collect();
        let untold = |slice: &&String| !told.contains(*slice) && !entry.slices_gone.contains(*slice);
        let missing: BTreeSet<_> = imported_from(entry, cluster).filter(untold).cloned().collect();
        if *cluster != us && !missing.is_empty() {
            doubts.push(Doubt::Slices { cluster: (*cluster).to_owned(), missing });
        }
    }
    let wanted: BTreeSet<_> = slices.iter().map(ResourceExt::name_any).collect();
    for (name, slice) in &entry.imported_slices {
        let cluster = slice.labels().get(label::MCS_SOURCE_CLUSTER).map(String::as_str).unwrap_or_default();
        let held = cluster != us
            && taking_part.contains(cluster)
            && !entry.slices_gone.contains(name)
            && !told_by(entry, service, cluster).any(|told| told == *name);
        if !wanted.contains(name) && !held {
            leftover.push(name.clone());
        }
    }
    let clusters = taking_part.into_iter().map(str::to_owned).collect();
    let taken = entry.derived.as_ref().is_some_and(|derived| !is_ours(&derived.metadata));
    if taken {
        // Slices of ours would send that Service's clients to other clusters.
        (slices, doubts, leftover) = (vec![], vec![], entry.imported_slices.keys().cloned().collect());
    }
    Realise { merged, taken, clusters, slices, leftover, doubts }
}

/// Names of the slices that are to be imported from what `cluster` says now.
pub fn told_by<'a>(
    entry: &'a ServiceEntry,
    service: &'a ServiceName,
    cluster: &str,
) -> impl Iterator<Item = String> + 'a {
    let records = entry.peers.get(cluster).into_iter().flat_map(BTreeMap::keys);
    records.map(|record| name::imported_slice(&service.name, record))
}

/// Names of the slices we imported from `cluster`.
pub fn imported_from<'a>(entry: &'a ServiceEntry, cluster: &'a str) -> impl Iterator<Item = &'a String> {
    let from = move |slice: &Slice| {
        slice.labels().get(label::MCS_SOURCE_CLUSTER).is_some_and(|from| from == cluster)
    };
    entry.imported_slices.iter().filter(move |(_, slice)| from(slice)).map(|(name, _)| name)
}

/// Kubernetes refuses an unnamed port beside others; such a one is called `p<port>`, with the protocol if that is taken.
fn named(ports: &[mcs::ServicePort]) -> Vec<mcs::ServicePort> {
    let mut taken: BTreeSet<String> = ports.iter().filter_map(|port| port.name.clone()).collect();
    let mut named = ports.to_vec();
    for port in named.iter_mut().filter(|port| ports.len() > 1 && port.name.is_none()) {
        let protocol = port.protocol.as_deref().unwrap_or("TCP").to_lowercase();
        let candidates = [format!("p{}", port.port), format!("p{}-{protocol}", port.port)];
        let free = candidates.into_iter().find(|name| !taken.contains(name));
        let name = free.unwrap_or_else(|| format!("p{}-{protocol}-unnamed", port.port));
        taken.insert(name.clone());
        port.name = Some(name);
    }
    named
}

/// The slice as it has to be here; `None` when nothing of it is reached through the import.
fn imported(
    service: &ServiceName,
    cluster: &str,
    record: &str,
    payload: &SlicePayload,
    merged: &ServiceImportSpec,
) -> Option<Slice> {
    let ports: Vec<_> = payload
        .ports
        .iter()
        .filter_map(|port| {
            // A cluster serves a port of the merged Service if its own Service has that very number and protocol
            // (rule R-42), whatever it calls it.
            let merged = merged.ports.iter().find(|m| {
                m.port == port.service_port && m.protocol.as_deref().unwrap_or("TCP") == port.protocol
            })?;
            Some(SlicePort {
                name: Some(merged.name.clone().unwrap_or_default()),
                protocol: Some(port.protocol.clone()),
                port: Some(port.port),
                app_protocol: merged.app_protocol.clone(),
            })
        })
        .collect();
    if ports.is_empty() || payload.endpoints.is_empty() {
        return None;
    }
    let labels = [
        (label::MANAGED_BY, label::FREEPORT.to_owned()),
        (label::SLICE_MANAGED_BY, label::FREEPORT.to_owned()),
        (label::SERVICE_NAME, name::imported_service(&service.name)),
        (label::MCS_SERVICE_NAME, service.name.clone()),
        (label::MCS_SOURCE_CLUSTER, cluster.to_owned()),
    ];
    let mut metadata = metadata(service, name::imported_slice(&service.name, record));
    metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value)).into());
    Some(Slice {
        metadata,
        address_type: payload.address_type.clone(),
        endpoints: payload.endpoints.clone(),
        ports,
    })
}

fn metadata(service: &ServiceName, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(service.namespace.clone()),
        labels: Some([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// The Service `antrea-mc-<name>`: what the API server chose for the one there is stays; a lost one asks for the address
/// noted in the import.
pub fn derived(service: &ServiceName, entry: &ServiceEntry, realise: &Realise) -> Service {
    let mut metadata = metadata(service, name::imported_service(&service.name));
    metadata.annotations = Some([(label::IMPORTED_SERVICE.to_owned(), label::TRUE.to_owned())].into());
    metadata.labels.get_or_insert_default().insert(label::MCS_SERVICE_NAME.into(), service.name.clone());
    let noted = || entry.import.as_ref()?.spec.0.as_ref().ok()?.ips.first().cloned();
    let (cluster_ip, ip_families) = match &entry.derived {
        Some(there) => (there.spec.cluster_ip.clone(), there.spec.ip_families.clone()),
        None => (noted(), realise.merged.ip_families.clone()),
    };
    let spec = ServiceSpec {
        type_: Some("ClusterIP".into()),
        cluster_ip,
        ip_families,
        ports: realise.merged.ports.clone(),
    };
    Service { metadata, spec }
}

/// The ServiceImport, with the addresses of the Service that realises it; `ips` and `ipFamilies` agree in one write.
pub fn service_import(service: &ServiceName, realise: &Realise, addresses: Vec<String>) -> Import {
    let family = |ip: &String| if ip.contains(':') { "IPv6" } else { "IPv4" }.to_owned();
    let ip_families = addresses.iter().map(family).collect();
    let spec = ServiceImportSpec { ips: addresses, ip_families, ..realise.merged.clone() };
    let status = Lenient::default();
    Import { metadata: metadata(service, service.name.clone()), spec: Lenient(Ok(spec)), status }
}

/// Whether the import works here: not when somebody else has the name of its Service.
pub fn ready(name: &str, taken: bool) -> Verdict {
    if taken {
        let service = name::imported_service(name);
        let message = format!("a Service {service} is there that Freeport did not make; it is left alone");
        Verdict::new(mcs::READY, Status::False, "ServiceNameTaken", message)
    } else {
        Verdict::new(mcs::READY, Status::True, "Ready", "the imported Service is in place")
    }
}

#[cfg(test)]
mod tests;
