//! The Service and the ServiceImport that realise an import: pure.

use api::view::Lenient;
use api::{
    ServiceName, family, label,
    mcs::{ClientIpConfig, ServiceImportSpec, SessionAffinityConfig},
    name,
};
use kube::api::ObjectMeta;

use super::{address, belief::Hub, exported, plan::Realise};
use crate::service::{
    entry::ServiceEntry,
    view::{Import, Service, ServiceSpec},
};

const CLIENT_IP: &str = "ClientIP";
/// Kubernetes' own default.
const AFFINITY_SECONDS: i32 = 10_800;

pub(super) fn metadata(service: &ServiceName, name: String) -> ObjectMeta {
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
    let (families, is_headless) = (&realise.families, realise.is_headless());
    let there = entry.derived.as_ref().filter(|there| realise.fits(there)).map(|there| &there.spec);
    let noted = entry.import.as_ref().and_then(|import| import.spec.0.as_ref().ok());
    let noted = noted.map(|spec| spec.ips.as_slice()).unwrap_or_default();
    let merged = &realise.merged;
    // What the API server adds to what is not said is said here, or each look would find a difference.
    let said = |value: &Option<String>, default: &str| {
        Some(value.clone().filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()))
    };
    // Without an address nothing comes by way of the Service, and so nothing can stick.
    let session_affinity = said(&merged.session_affinity.clone().filter(|_| !is_headless), "None");
    let sticks = session_affinity.as_deref() == Some(CLIENT_IP);
    let spec = ServiceSpec {
        type_: Some("ClusterIP".into()),
        session_affinity,
        session_affinity_config: sticks.then(|| affinity_config(merged)),
        internal_traffic_policy: said(&merged.internal_traffic_policy, "Cluster"),
        traffic_distribution: merged.traffic_distribution.clone(),
        ports: merged.ports.clone(),
        ..address::asked(families, is_headless, there, noted)
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
    let ip_families = match realise.is_headless() {
        true => realise.families.clone(),
        false => addresses.iter().map(|ip| family::of(ip).to_owned()).collect(),
    };
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
