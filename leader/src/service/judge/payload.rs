//! Whether every importer's API server would take what a record says: pure.

use std::collections::BTreeSet;

use api::{
    family, name, port,
    resource_export::{EndpointsPayload, ServicePayload},
    resource_import::Objection,
    slice::SlicePayload,
};
use k8s_openapi::api::core::v1::ServiceSpec;

use super::objection;

/// Most ports a Service may have: what a ServiceImport of many exporters can still hold.
const PORTS_MAX: usize = 100;

/// Longest session affinity, in seconds: a day.
const AFFINITY_MAX: i32 = 86_400;

/// Those of a record that is withdrawn are none.
pub(super) fn endpoints(
    payload: Option<EndpointsPayload>,
    withdrawn: bool,
) -> Result<EndpointsPayload, Objection> {
    let payload = payload.or_else(|| withdrawn.then(EndpointsPayload::default));
    let payload = payload.ok_or_else(|| objection("NoPayload", "spec.endpoints is missing"))?;
    api::endpoints::slices(&payload, &[]).map_err(|error| objection("InvalidEndpoints", error))?;
    Ok(payload)
}

pub(super) fn slice(payload: Option<&SlicePayload>) -> Result<(), Objection> {
    let payload = payload.ok_or_else(|| objection("NoPayload", "spec.endpointSlice is missing"))?;
    payload.check().map_err(|error| objection("InvalidSlice", error))
}

/// Whether every importer's API server would take a Service made of this.
pub(super) fn serviceable(payload: &ServicePayload) -> Result<(), Objection> {
    if payload.withdrawn {
        return Ok(());
    }
    let invalid = |message: String| Err(objection("InvalidService", message));
    let families = payload.service_spec.ip_families.as_deref().unwrap_or_default();
    let is_known = |family: &String| family == family::IPV4 || family == family::IPV6;
    if families.len() > 2
        || !families.iter().all(is_known)
        || (families.len() == 2 && families[0] == families[1])
    {
        return invalid(format!("IP families {families:?} are not IPv4, IPv6 or both"));
    }
    let ports = payload.service_spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !payload.is_headless() {
        return invalid("the Service has no ports, which only a headless one can do without".into());
    }
    if ports.len() > PORTS_MAX {
        return Err(objection(
            "TooManyPorts",
            format!("{} ports, at most {PORTS_MAX} can be imported", ports.len()),
        ));
    }
    let mut seen = BTreeSet::new();
    for port in ports {
        let protocol = port::protocol(port.protocol.as_deref());
        let name = port.name.as_deref().unwrap_or_default();
        if !(1..=65535).contains(&port.port) {
            return invalid(format!("port {} is no port number", port.port));
        }
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            return invalid(format!("port {} has protocol {protocol:?}", port.port));
        }
        if !name.is_empty() && !name::is_dns_label(name) {
            return invalid(format!("port name {name:?} is no DNS label"));
        }
        if let Some(app_protocol) = port.app_protocol.as_deref().filter(|p| !name::is_qualified_name(p)) {
            return invalid(format!("application protocol {app_protocol:?} is no qualified name"));
        }
        if !seen.insert((protocol, port.port.to_string())) || !seen.insert(("", name.to_owned())) {
            return invalid(format!("port {}/{protocol} {name:?} is there twice", port.port));
        }
    }
    policies(&payload.service_spec).or_else(invalid)?;
    payload.check_metadata().or_else(invalid)
}

/// Whether the rest of the spec that is merged has values that Kubernetes knows.
fn policies(spec: &ServiceSpec) -> Result<(), String> {
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
        Some(seconds) if !(1..=AFFINITY_MAX).contains(&seconds) => Err(format!(
            "sessionAffinityConfig: {seconds} seconds, at most {AFFINITY_MAX} and at least 1 are possible"
        )),
        _ => Ok(()),
    }
}
