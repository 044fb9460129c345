//! What this cluster offers under one Service name, or why it offers nothing: pure.

use std::collections::BTreeMap;

use api::{
    ServiceName, label,
    mcs::{ServicePort, SessionAffinityConfig},
    name,
    resource_export::ServicePayload,
    slice::{SlicePayload, SlicePort},
};
use k8s_openapi::api::core::v1 as core;

use super::vanished::still_exported;
use crate::service::{
    entry::ServiceEntry,
    view::{Export, Service, ServiceSpec, Slice},
};

/// What this cluster offers under one Service name.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The Service record's payload.
    pub service: ServicePayload,
    /// The slice records' payloads, by the records' names.
    pub slices: BTreeMap<String, SlicePayload>,
}

/// Why a ServiceExport exports nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// One CamelCase word: standard where the Multi-Cluster Services API has one.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// What this cluster offers under that name: nothing without a ServiceExport, and not everything can be exported.
pub fn offer(cluster: &str, service: &ServiceName, entry: &ServiceEntry) -> Result<Option<Offer>, Invalid> {
    let live = entry.export.as_ref().filter(|e| e.metadata.deletion_timestamp.is_none());
    let asked = match (live, still_exported(cluster, entry)) {
        (Some(export), _) => asked_for(export),
        (None, Some(said)) => Ok(said),
        (None, None) => return Ok(None),
    };
    if entry.is_excluded {
        return Err(excluded(&service.namespace));
    }
    let local = entry.service.as_ref().filter(|s| s.metadata.deletion_timestamp.is_none());
    let local = local.ok_or_else(|| invalid("NoService", format!("there is no Service {service}")))?;
    exportable(local)?;
    let payload = ServicePayload { service_spec: exported_spec(&local.spec), ..asked? };
    let slices =
        entry.slices.iter().filter(|(_, slice)| slice.address_type == IPV4).map(|(source, slice)| {
            (name::slice_export(cluster, service, source), exported_slice(slice, &local.spec.ports))
        });
    Ok(Some(Offer { service: payload, slices: slices.collect() }))
}

pub(super) const IPV4: &str = "IPv4";

/// What the ServiceExport itself says.
fn asked_for(export: &Export) -> Result<ServicePayload, Invalid> {
    let spec = export.spec.0.as_ref();
    let spec = spec.map_err(|e| invalid("InvalidExport", format!("spec does not decode: {e}")))?;
    let payload = ServicePayload {
        exported_at: export.metadata.creation_timestamp.clone(),
        exported_labels: spec.exported_labels.clone(),
        exported_annotations: spec.exported_annotations.clone(),
        ..ServicePayload::default()
    };
    payload.check_metadata().map_err(|error| invalid("InvalidExport", error))?;
    Ok(payload)
}

fn invalid(reason: &'static str, message: impl Into<String>) -> Invalid {
    Invalid { reason, message: message.into() }
}

/// The administrator's word goes before anything a user asks for.
fn excluded(namespace: &str) -> Invalid {
    let message = format!(
        "the administrator excluded Namespace {namespace} from exporting, by its label {}: \"{}\"",
        label::EXPORT,
        label::FALSE
    );
    invalid("NamespaceExcluded", message)
}

fn exportable(service: &Service) -> Result<(), Invalid> {
    let annotations = service.metadata.annotations.as_ref();
    if annotations.is_some_and(|annotations| annotations.contains_key(label::IMPORTED_SERVICE)) {
        return Err(invalid(
            "ImportedService",
            "this Service is an import of other clusters' and cannot be exported again",
        ));
    }
    match service.spec.type_.as_deref() {
        None | Some("ClusterIP" | "NodePort" | "LoadBalancer") => {}
        Some(other) => {
            return Err(invalid(
                "InvalidServiceType",
                format!("a Service of type {other} cannot be exported"),
            ));
        }
    }
    if service.spec.cluster_ip.as_deref() == Some("None") {
        return Err(invalid("InvalidServiceType", "headless Services cannot be exported yet"));
    }
    if !service.spec.ip_families.is_empty() && !service.spec.ip_families.iter().any(|family| family == IPV4) {
        return Err(invalid("InvalidServiceType", "Services without IPv4 cannot be exported yet"));
    }
    if service.spec.ports.is_empty() {
        return Err(invalid("InvalidServiceType", "the Service has no ports"));
    }
    Ok(())
}

fn protocol(protocol: Option<&String>) -> String {
    protocol.cloned().unwrap_or_else(|| "TCP".into())
}

/// What other clusters need to know of it: as it is, said or not.
fn exported_spec(spec: &ServiceSpec) -> core::ServiceSpec {
    let client_ip = |config: &SessionAffinityConfig| {
        let timeout_seconds = config.client_ip.as_ref()?.timeout_seconds;
        Some(core::ClientIPConfig { timeout_seconds })
    };
    core::ServiceSpec {
        ports: Some(spec.ports.iter().map(exported_port).collect()),
        ip_families: Some(vec![IPV4.into()]),
        session_affinity: spec.session_affinity.clone(),
        session_affinity_config: spec
            .session_affinity_config
            .as_ref()
            .map(|config| core::SessionAffinityConfig { client_ip: client_ip(config) }),
        internal_traffic_policy: spec.internal_traffic_policy.clone(),
        traffic_distribution: spec.traffic_distribution.clone(),
        ..core::ServiceSpec::default()
    }
}

fn exported_port(port: &ServicePort) -> core::ServicePort {
    core::ServicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: Some(protocol(port.protocol.as_ref())),
        app_protocol: port.app_protocol.clone(),
        port: port.port,
        ..core::ServicePort::default()
    }
}

/// The slice as other clusters see it. Its ports belong to Service ports by name; one that belongs to none is not reached
/// through the Service here, and so not elsewhere.
fn exported_slice(slice: &Slice, service_ports: &[ServicePort]) -> SlicePayload {
    let mut ports: Vec<_> = slice
        .ports
        .iter()
        .filter_map(|port| {
            let name = port.name.clone().filter(|name| !name.is_empty());
            let service_port = service_ports
                .iter()
                .find(|p| p.name.as_deref().unwrap_or_default() == name.as_deref().unwrap_or_default())?;
            Some(SlicePort {
                name,
                protocol: protocol(port.protocol.as_ref()),
                port: port.port?,
                service_port: service_port.port,
                app_protocol: service_port.app_protocol.clone(),
            })
        })
        .collect();
    ports.sort_by(|a, b| (a.service_port, &a.protocol).cmp(&(b.service_port, &b.protocol)));
    let mut endpoints: Vec<_> = slice.endpoints.iter().map(|endpoint| endpoint.shared.clone()).collect();
    endpoints.sort_by(|a, b| a.addresses.cmp(&b.addresses));
    SlicePayload { address_type: slice.address_type.clone(), ports, endpoints }
}
