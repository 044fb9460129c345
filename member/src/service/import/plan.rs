//! What has to be here for an import: pure functions of what is known.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    condition::{Status, Verdict},
    label,
    mcs::{self, ClientIpConfig, ServiceImportSpec, SessionAffinityConfig},
    name,
    resource_import::{Exporter, MergedMetadata, MergedService},
    slice::SlicePayload,
};
use kit::view::Lenient;
use kube::{ResourceExt, api::ObjectMeta};

use super::{
    belief::{self, Hub},
    exported,
};
use crate::service::{
    entry::ServiceEntry,
    export::offer,
    view::{Import, Service, ServiceSpec, Slice, SlicePort, is_ours},
};

const CLIENT_IP: &str = "ClientIP";
/// Kubernetes' own default.
const AFFINITY_SECONDS: i32 = 10_800;

/// What a look at one import comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing is imported and nothing of ours is here.
    Nothing,
    /// The import vanished unsaid, and what it was is not known any more: everything stays as it is.
    Hold(Vec<Doubt>),
    /// Nobody exports it any more: what we made goes.
    Remove,
    /// This has to be here.
    Realise(Realise),
}

/// Something is missing that its writer has not taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The leader's import.
    Import,
    /// A cluster's part in it.
    Part {
        /// Which cluster.
        cluster: String,
    },
    /// Slices of a cluster.
    Slices {
        /// Which cluster.
        cluster: String,
        /// Names of the imported slices whose records are missing.
        missing: BTreeSet<String>,
    },
}

/// What realises an import here.
#[derive(Clone, Debug, PartialEq)]
pub struct Realise {
    /// The merged Service, each port with a name if there are several.
    pub merged: ServiceImportSpec,
    /// Labels and annotations of the ServiceImport that exporters gave it.
    pub exported: MergedMetadata,
    /// Somebody else's Service has the name of ours: no Service and no slices then.
    pub taken: bool,
    /// Clusters that take part, sorted.
    pub clusters: Vec<String>,
    /// Those of them that take part only because nobody said that they do not.
    pub kept: BTreeSet<String>,
    /// The EndpointSlices.
    pub slices: Vec<Slice>,
    /// Names of slices of ours that have to go.
    pub leftover: Vec<String>,
    /// What is missing without a word.
    pub doubts: Vec<Doubt>,
    /// uid of the import, when nothing of what is here is missing in it.
    pub accepted: Option<String>,
}

/// Plans for one import.
pub fn desired(us: &str, service: &ServiceName, hub: &Hub, entry: &ServiceEntry) -> Plan {
    let ours_here = entry.import.as_ref().is_some_and(|import| is_ours(&import.metadata))
        || entry.derived.as_ref().is_some_and(|derived| is_ours(&derived.metadata))
        || !entry.imported_slices.is_empty();
    match &entry.hub_import {
        None if !ours_here => Plan::Nothing,
        Some(import) if !(ours_here && hub.leader_is_outdated()) => {
            let absent = belief::absent(us, service, entry, import);
            let exporters: Vec<&Exporter> = import.spec.exporters.iter().flatten().collect();
            if exporters.is_empty() && absent.is_empty() {
                return if ours_here { Plan::Remove } else { Plan::Nothing };
            }
            let named =
                exporters.iter().filter(|e| e.refused.is_none()).map(|e| e.cluster_id.clone()).collect();
            // An import that does not know of all yet may lack their ports.
            let known = if absent.is_empty() { None } else { belief::realised(entry) };
            let merged = known.unwrap_or_else(|| belief::merged(&import.spec));
            let accepted = absent.is_empty().then(|| import.uid.clone());
            Plan::Realise(Realise { accepted, ..realise(us, service, hub, entry, merged, &named, absent) })
        }
        nothing_of_now => {
            let missing = nothing_of_now.is_none();
            let had: BTreeSet<_> =
                belief::had(us, service, entry).difference(&entry.parts_gone).cloned().collect();
            if missing && entry.import_gone && had.is_empty() {
                return Plan::Remove;
            }
            let import = (missing && !entry.import_gone).then_some(Doubt::Import);
            match belief::realised(entry) {
                Some(merged) => {
                    let mut realise = realise(us, service, hub, entry, merged, &BTreeSet::new(), had);
                    realise.doubts.extend(import);
                    realise.doubts.retain(|doubt| missing || matches!(doubt, Doubt::Slices { .. }));
                    Plan::Realise(realise)
                }
                None => {
                    let parts = had.into_iter().filter(|_| missing).map(|cluster| Doubt::Part { cluster });
                    Plan::Hold(parts.chain(import).collect())
                }
            }
        }
    }
}

/// `named` take part by the leader's word, `kept` because nobody said otherwise.
fn realise(
    us: &str,
    service: &ServiceName,
    hub: &Hub,
    entry: &ServiceEntry,
    merged: MergedService,
    named: &BTreeSet<String>,
    kept: BTreeSet<String>,
) -> Realise {
    let exported = merged.metadata.unwrap_or_default();
    let merged = ServiceImportSpec { ports: port_names(&merged.spec.ports), ..merged.spec };
    let own = offer(us, service, entry).ok().flatten().map(|offer| offer.slices).unwrap_or_default();
    let taking_part: BTreeSet<String> = named.union(&kept).cloned().collect();

    let (mut slices, mut doubts, mut held) = (Vec::new(), Vec::new(), BTreeSet::new());
    let none = BTreeMap::new();
    for cluster in &taking_part {
        if hub.is_outdated(cluster) && cluster != us {
            held.extend(imported_from(entry, cluster).cloned());
            continue;
        }
        let said = if cluster == us { &own } else { entry.peers.get(cluster).unwrap_or(&none) };
        let wanted =
            said.iter().filter_map(|(record, payload)| imported(service, cluster, record, payload, &merged));
        slices.extend(wanted);
        let told: BTreeSet<_> =
            said.keys().map(|record| name::imported_slice(&service.name, record)).collect();
        let untold = |slice: &&String| !told.contains(*slice) && !entry.slices_gone.contains(*slice);
        let missing: BTreeSet<_> = imported_from(entry, cluster).filter(untold).cloned().collect();
        if cluster != us && !missing.is_empty() && !entry.says_all(cluster) {
            held.extend(missing.iter().cloned());
            doubts.push(Doubt::Slices { cluster: cluster.clone(), missing });
        }
    }
    doubts.extend(kept.iter().map(|cluster| Doubt::Part { cluster: cluster.clone() }));
    let wanted: BTreeSet<_> = slices.iter().map(ResourceExt::name_any).collect();
    let unwanted = |slice: &&String| !wanted.contains(*slice) && !held.contains(*slice);
    let mut leftover: Vec<_> = entry.imported_slices.keys().filter(unwanted).cloned().collect();
    let taken = entry.derived.as_ref().is_some_and(|derived| !is_ours(&derived.metadata));
    if taken {
        // Slices of ours would send that Service's clients to other clusters.
        (slices, doubts, leftover) = (vec![], vec![], entry.imported_slices.keys().cloned().collect());
    }
    let clusters = taking_part.into_iter().collect();
    Realise { merged, exported, taken, clusters, kept, slices, leftover, doubts, accepted: None }
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
fn port_names(ports: &[mcs::ServicePort]) -> Vec<mcs::ServicePort> {
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
    let merged = &realise.merged;
    // What the API server adds to what is not said is said here, or each look would find a difference.
    let said = |value: &Option<String>, default: &str| {
        Some(value.clone().filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()))
    };
    let session_affinity = said(&merged.session_affinity, "None");
    let sticks = session_affinity.as_deref() == Some(CLIENT_IP);
    let spec = ServiceSpec {
        type_: Some("ClusterIP".into()),
        cluster_ip,
        ip_families,
        session_affinity,
        session_affinity_config: sticks.then(|| affinity_config(merged)),
        internal_traffic_policy: said(&merged.internal_traffic_policy, "Cluster"),
        traffic_distribution: merged.traffic_distribution.clone(),
        ports: merged.ports.clone(),
    };
    Service { metadata, spec }
}

/// How long a client stays: as long as the exporter says, else as long as Kubernetes says.
fn affinity_config(merged: &ServiceImportSpec) -> SessionAffinityConfig {
    let said =
        merged.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    let timeout_seconds = Some(said.unwrap_or(AFFINITY_SECONDS));
    SessionAffinityConfig { client_ip: Some(ClientIpConfig { timeout_seconds }) }
}

/// The ServiceImport, with the addresses of the Service that realises it; `ips` and `ipFamilies` agree in one write.
/// It notes the hub, but only once nothing is missing in the import of that; after a restore nothing noted before counts.
pub fn service_import(
    service: &ServiceName,
    hub: &Hub,
    entry: &ServiceEntry,
    realise: &Realise,
    addresses: Vec<String>,
) -> Import {
    let family = |ip: &String| if ip.contains(':') { "IPv6" } else { "IPv4" }.to_owned();
    let ip_families = addresses.iter().map(family).collect();
    let spec = ServiceImportSpec { ips: addresses, ip_families, ..realise.merged.clone() };
    let mut metadata = metadata(service, service.name.clone());
    let noted = match (&realise.accepted, &entry.accepted) {
        (Some(_), _) => Some(hub.uid.clone()),
        (None, None) if hub.restored => Some(String::new()),
        _ => None,
    };
    metadata.annotations = noted.map(|noted| [(label::HUB.to_owned(), noted)].into());
    exported::add(&realise.exported, &mut metadata);
    Import { metadata, spec: Lenient(Ok(spec)), status: Lenient::default() }
}

/// Whether the import works here: not when somebody else has the name of its Service.
pub fn ready(name: &str, realise: &Realise) -> Verdict {
    if realise.taken {
        let service = name::imported_service(name);
        let message = format!("a Service {service} is there that Freeport did not make; it is left alone");
        Verdict::new(mcs::READY, Status::False, "ServiceNameTaken", message)
    } else if realise.kept.is_empty() {
        Verdict::new(mcs::READY, Status::True, "Ready", "the imported Service is in place")
    } else {
        let kept = realise.kept.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let message = format!(
            "the imported Service is in place; the records of {kept} vanished from the leader without a word, and its part \
             is kept until {kept} is heard of"
        );
        Verdict::new(mcs::READY, Status::True, "Ready", message)
    }
}

#[cfg(test)]
mod tests;
