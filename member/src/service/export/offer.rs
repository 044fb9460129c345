//! What this cluster offers under one Service name, or why it offers nothing: pure.

use std::collections::BTreeMap;

use api::{
    ServiceName, family, label,
    mcs::{ServicePort, SessionAffinityConfig},
    resource_export::{HEADLESS, ServicePayload},
    slice::SlicePayload,
};
use k8s_openapi::api::core::v1 as core;

use super::{
    slices::{self, EndpointIp},
    vanished::still_exported,
};
use crate::service::{
    entry::ServiceEntry,
    view::{Export, Service},
};

/// What this cluster offers under one Service name.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The Service record's payload.
    pub service: ServicePayload,
    /// The slice records' payloads, by the records' names.
    pub slices: BTreeMap<String, SlicePayload>,
    /// The slices of the Service here, which this cluster uses itself, by what records of them would be called.
    pub own: BTreeMap<String, SlicePayload>,
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
    exportable(local, entry)?;
    Ok(Some(Offer {
        service: ServicePayload { service_spec: exported_spec(local, entry), ..asked? },
        slices: slices::exported(cluster, service, entry, local),
        own: slices::own(cluster, service, entry, local),
    }))
}

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

fn exportable(service: &Service, entry: &ServiceEntry) -> Result<(), Invalid> {
    let annotations = service.metadata.annotations.as_ref();
    if annotations.is_some_and(|annotations| annotations.contains_key(label::IMPORTED_SERVICE)) {
        return Err(invalid(
            "ImportedService",
            "this Service is an import of other clusters' and cannot be exported again",
        ));
    }
    let no = |message: &str| Err(invalid("InvalidServiceType", message));
    match service.spec.type_.as_deref() {
        None | Some("ClusterIP" | "NodePort" | "LoadBalancer") => {}
        Some(other) => return no(&format!("a Service of type {other} cannot be exported")),
    }
    let is_headless = service.spec.is_headless();
    if is_headless && entry.local.endpoint_ip == EndpointIp::Cluster {
        return no(
            "a headless Service has no ClusterIP, and ClusterIPs are all that this member exports (--endpoint-ip \
                   cluster): give the Service a ClusterIP, or run the member with --endpoint-ip pod",
        );
    }
    if is_headless && entry.antrea_leads {
        return no(
            "the leader is Antrea's, where an imported Service always has a ClusterIP: give this one a ClusterIP, too",
        );
    }
    if entry.antrea_leads && !families(service, entry).iter().any(|family| family == family::IPV4) {
        return no("the leader is Antrea's, which knows IPv4 only, and the Service has no IPv4");
    }
    if service.spec.ports.is_empty() && !is_headless {
        return no("the Service has no ports");
    }
    Ok(())
}

/// Families in which the Service is reached here. A headless one without a selector says both wherever it is: then those count that
/// this cluster has, or in which there are endpoints, whoever wrote them.
pub(super) fn families(service: &Service, entry: &ServiceEntry) -> Vec<String> {
    let said = family::said(&service.spec.ip_families);
    let is_there = |family: &String| {
        entry.local.families.contains(family)
            || entry.slices.values().any(|slice| slice.address_type == *family)
    };
    let there: Vec<_> = said.iter().filter(|family| is_there(family)).cloned().collect();
    if entry.local.families.is_empty() || there.is_empty() { said } else { there }
}

pub(super) fn protocol(protocol: Option<&String>) -> String {
    protocol.cloned().unwrap_or_else(|| "TCP".into())
}

/// What other clusters need to know of it: as it is, said or not.
fn exported_spec(service: &Service, entry: &ServiceEntry) -> core::ServiceSpec {
    let spec = &service.spec;
    let client_ip = |config: &SessionAffinityConfig| {
        let timeout_seconds = config.client_ip.as_ref()?.timeout_seconds;
        Some(core::ClientIPConfig { timeout_seconds })
    };
    core::ServiceSpec {
        ports: Some(spec.ports.iter().map(exported_port).collect()),
        cluster_ip: spec.is_headless().then(|| HEADLESS.to_owned()),
        ip_families: Some(families(service, entry)),
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
