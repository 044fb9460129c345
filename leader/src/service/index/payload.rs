//! Whether every importer's API server would take what a record says: pure.

use std::collections::BTreeSet;

use api::{
    family, name, port,
    resource_export::{EndpointsPayload, ServicePayload},
    resource_import::Objection,
    slice::SlicePayload,
};
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

/// Most ports a Service may have: what a ServiceImport of many exporters can still hold.
const PORTS_MAX: usize = 100;

/// Longest session affinity, in seconds: a day.
const AFFINITY_MAX: i32 = 86_400;

/// Whether these can be the endpoints of a Service.
pub(super) fn check_endpoints(payload: &EndpointsPayload) -> Result<(), Objection> {
    let slices = api::endpoints::slices(payload, &[]);
    slices.map(drop).map_err(|error| Objection::new("InvalidEndpoints", error))
}

/// Whether this can be a slice.
pub(super) fn check_slice(payload: &SlicePayload) -> Result<(), Objection> {
    payload.check().map_err(|error| Objection::new("InvalidSlice", error))
}

/// Whether this can be a Service that is not withdrawn.
pub(super) fn check_service(payload: &ServicePayload) -> Result<(), Objection> {
    check_families(payload).map_err(invalid)?;
    check_ports(payload)?;
    check_policies(&payload.service_spec).map_err(invalid)?;
    payload.check_metadata().map_err(invalid)?;
    payload.check_time().map_err(invalid)
}

fn invalid(message: String) -> Objection {
    Objection::new("InvalidService", message)
}

fn check_families(payload: &ServicePayload) -> Result<(), String> {
    let families = payload.service_spec.ip_families.as_deref().unwrap_or_default();
    let is_known = |family: &String| family == family::IPV4 || family == family::IPV6;
    if families.len() > 2
        || !families.iter().all(is_known)
        || (families.len() == 2 && families[0] == families[1])
    {
        return Err(format!("IP families {families:?} are not IPv4, IPv6 or both"));
    }
    Ok(())
}

fn check_ports(payload: &ServicePayload) -> Result<(), Objection> {
    let ports = payload.service_spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !payload.is_headless() {
        return Err(invalid("the Service has no ports; only a headless Service can have none".into()));
    }
    if ports.len() > PORTS_MAX {
        return Err(Objection::new(
            "TooManyPorts",
            format!("the export has {} ports; at most {PORTS_MAX} can be imported", ports.len()),
        ));
    }
    let mut seen = BTreeSet::new();
    for port in ports {
        check_port(port).map_err(invalid)?;
        let protocol = port::protocol(port.protocol.as_deref());
        let name = port.name.as_deref().unwrap_or_default();
        if !seen.insert((protocol, port.port.to_string())) || !seen.insert(("", name.to_owned())) {
            return Err(invalid(format!("two ports are {}/{protocol} or have the name {name:?}", port.port)));
        }
    }
    Ok(())
}

fn check_port(port: &ServicePort) -> Result<(), String> {
    let protocol = port::protocol(port.protocol.as_deref());
    let name = port.name.as_deref().unwrap_or_default();
    if !(1..=65535).contains(&port.port) {
        return Err(format!("port {} is not a valid port number", port.port));
    }
    if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
        return Err(format!(
            "port {} has protocol {protocol:?}, which is none of TCP, UDP and SCTP",
            port.port
        ));
    }
    if !name.is_empty() && !name::is_dns_label(name) {
        return Err(format!("port name {name:?} is not a DNS label"));
    }
    match port.app_protocol.as_deref().filter(|protocol| !name::is_qualified_name(protocol)) {
        Some(protocol) => Err(format!("application protocol {protocol:?} is not a qualified name")),
        None => Ok(()),
    }
}

/// Whether the rest of the spec that is merged has values that Kubernetes knows.
fn check_policies(spec: &ServiceSpec) -> Result<(), String> {
    let known = |field: &str, value: &Option<String>, known: &[&str]| match value.as_deref() {
        Some(value) if !known.contains(&value) => {
            Err(format!("{field} {value:?} is none of {}", known.join(", ")))
        }
        _ => Ok(()),
    };
    known("sessionAffinity", &spec.session_affinity, &["", "None", "ClientIP"])?;
    known("internalTrafficPolicy", &spec.internal_traffic_policy, &["Cluster", "Local"])?;
    known(
        "trafficDistribution",
        &spec.traffic_distribution,
        &["PreferClose", "PreferSameZone", "PreferSameNode"],
    )?;
    let config = spec.session_affinity_config.as_ref();
    match config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds) {
        Some(seconds) if !(1..=AFFINITY_MAX).contains(&seconds) => {
            Err(format!("sessionAffinityConfig: {seconds} seconds is not between 1 and {AFFINITY_MAX}"))
        }
        _ => Ok(()),
    }
}
