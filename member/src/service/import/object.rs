//! The Service and the ServiceImport of an import: pure.

use api::{
    family, label,
    mcs::{ClientIpConfig, ServiceImportSpec, SessionAffinityConfig},
    name,
    view::Lenient,
};

use super::{
    address,
    continuity::{self, Writers},
    metadata,
    plan::DesiredImport,
};
use crate::service::index::{
    known::Known,
    view::{Import, Service, ServiceSpec},
};

const CLIENT_IP: &str = "ClientIP";
/// Kubernetes' own default.
const AFFINITY_SECONDS: i32 = 10_800;

/// The Service `antrea-mc-<name>`: what the API server chose for the one there is stays; a lost one asks for the address
/// noted in the import, and one that comes back for the address that it had.
pub(super) fn derived(known: &Known, desired: &DesiredImport) -> Service {
    let (service, entry) = (&known.service, &known.entry);
    let mut metadata = metadata::of_ours(service, name::imported_service(&service.name));
    metadata.annotations = Some([(label::IMPORTED_SERVICE.to_owned(), label::TRUE.to_owned())].into());
    metadata.labels.get_or_insert_default().insert(label::MCS_SERVICE_NAME.into(), service.name.clone());
    metadata::add(&metadata::for_service(&desired.exported), &mut metadata);
    let (families, is_headless) = (&desired.families, desired.is_headless());
    let there = entry.derived.as_deref().filter(|there| desired.fits(there)).map(|there| &there.spec);
    let noted = entry.import.as_deref().and_then(|import| import.spec.0.as_ref().ok());
    let returning = desired.returning.as_ref().map(|returning| &returning.ips);
    let noted = noted.map(|spec| &spec.ips).filter(|ips| !ips.is_empty()).or(returning);
    let noted = noted.map(Vec::as_slice).unwrap_or_default();
    let merged = &desired.merged;
    // What the API server sets where nothing is set is set here, or each reconcile would find a difference.
    let or_default = |value: &Option<String>, default: &str| {
        Some(value.clone().filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()))
    };
    // Without an address nothing comes by way of the Service, and so nothing can stick.
    let session_affinity = or_default(&merged.session_affinity.clone().filter(|_| !is_headless), "None");
    let sticks = session_affinity.as_deref() == Some(CLIENT_IP);
    let spec = ServiceSpec {
        type_: Some("ClusterIP".into()),
        session_affinity,
        session_affinity_config: sticks.then(|| affinity_config(merged)),
        internal_traffic_policy: or_default(&merged.internal_traffic_policy, "Cluster"),
        traffic_distribution: merged.traffic_distribution.clone(),
        ports: merged.ports.clone(),
        ..address::asked(families, is_headless, there, noted)
    };
    Service { metadata, spec }
}

/// How long a client stays: as long as the exporter says, else as long as Kubernetes says.
fn affinity_config(merged: &ServiceImportSpec) -> SessionAffinityConfig {
    let config = merged.session_affinity_config.as_ref();
    let seconds = config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    let timeout_seconds = Some(seconds.unwrap_or(AFFINITY_SECONDS));
    SessionAffinityConfig { client_ip: Some(ClientIpConfig { timeout_seconds }) }
}

/// The ServiceImport, with the addresses of its Service; `ips` and `ipFamilies` agree in one write. It notes the leader, but
/// only once nothing is missing in the import of that one; after a restore nothing noted before counts. That it stays against the leader's
/// word is noted for the next process.
pub(super) fn service_import(
    known: &Known,
    writers: &Writers,
    desired: &DesiredImport,
    addresses: Vec<String>,
) -> Import {
    let ip_families = match desired.is_headless() {
        true => desired.families.clone(),
        false => addresses.iter().map(|ip| family::of(ip).to_owned()).collect(),
    };
    let spec = ServiceImportSpec { ips: addresses, ip_families, ..desired.merged.clone() };
    let mut metadata = metadata::of_ours(&known.service, known.service.name.clone());
    let noted = match (&desired.accepted, known.accepted()) {
        (Some(_), _) => writers.leader_uid.clone(),
        (None, None) if writers.restored => Some(String::new()),
        _ => None,
    };
    let hub = noted.map(|noted| (label::HUB.to_owned(), noted));
    let withheld = match &writers.withheld {
        None if known.exporters().is_empty() => None,
        None => continuity::withheld(&known.entry).map(|_| String::new()),
        withheld => withheld.clone(),
    };
    let withheld = withheld.map(|withheld| (label::WITHHELD.to_owned(), withheld));
    // Somebody else's Service is none of the import, whatever its name.
    let derived = if desired.taken { String::new() } else { name::imported_service(&known.service.name) };
    let derived = (label::DERIVED_SERVICE.to_owned(), derived);
    metadata.annotations = Some([derived].into_iter().chain(hub).chain(withheld).collect());
    metadata::add(&desired.exported, &mut metadata);
    Import { metadata, spec: Lenient(Ok(spec)), status: Lenient::default() }
}
