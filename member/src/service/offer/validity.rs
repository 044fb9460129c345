//! Whether an export can be made, and what it asks for.

use api::{
    ServiceName, family, label,
    resource_export::{PORTS_MAX, ServicePayload},
};

use crate::service::index::{
    cluster::EndpointIp,
    entry::{ServiceEntry, Unexported},
    known::Known,
    view::{Export, Service},
};

/// Why a ServiceExport exports nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// In CamelCase: the standard reason where the Multi-Cluster Services API has one.
    pub(crate) reason: &'static str,
    /// A sentence.
    pub(crate) message: String,
}

impl Invalid {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What we exported last under that name, if its ServiceExport is gone and it is not known that somebody decided that.
///
/// The record may have vanished as well, where this cluster leads and all CRDs were deleted. Then our own part in what is
/// imported here shows that there was one: it is no younger than the export.
pub(crate) fn still_exported(us: &str, entry: &ServiceEntry) -> Option<ServicePayload> {
    if entry.export.is_some() || entry.unexported == Some(Unexported::Decided) {
        return None;
    }
    let record = entry.own_service.as_deref();
    let payload = record.and_then(|record| record.spec.0.as_ref().ok()?.service.as_ref());
    match (payload, &entry.last_exported) {
        (Some(payload), _) => (!payload.withdrawn).then(|| {
            // Antrea's records do not have it: the record is hardly younger than the export.
            let created = record.and_then(|record| record.metadata.creation_timestamp.clone());
            ServicePayload { exported_at: payload.exported_at.clone().or(created), ..payload.clone() }
        }),
        (None, Some(payload)) => Some((**payload).clone()),
        (None, None) => {
            let slices = entry.imported_from(us).filter_map(|name| entry.imported_slices.get(name));
            let age = slices
                .filter_map(|slice| slice.metadata.creation_timestamp.clone())
                .min_by_key(|time| time.0)?;
            Some(ServicePayload { exported_at: Some(age), ..ServicePayload::default() })
        }
    }
}

/// What the ServiceExport itself asks for.
pub(super) fn asked_for(export: &Export) -> Result<ServicePayload, Invalid> {
    let spec = export.spec.0.as_ref();
    let spec =
        spec.map_err(|error| Invalid::new("InvalidExport", format!("spec does not decode: {error}")))?;
    let payload = ServicePayload {
        exported_at: export.metadata.creation_timestamp.clone(),
        exported_labels: spec.exported_labels.clone(),
        exported_annotations: spec.exported_annotations.clone(),
        ..ServicePayload::default()
    };
    payload.check_metadata().map_err(|error| Invalid::new("InvalidExport", error))?;
    Ok(payload)
}

/// What the administrator decided goes before anything a user asks for.
pub(super) fn excluded(namespace: &str) -> Invalid {
    let message = format!(
        "the administrator excluded Namespace {namespace} from exporting with label {}: \"{}\"",
        label::EXPORT,
        label::FALSE
    );
    Invalid::new("NamespaceExcluded", message)
}

pub(super) fn no_service(service: &ServiceName) -> Invalid {
    Invalid::new("NoService", format!("there is no Service {service}"))
}

pub(super) fn exportable(service: &Service, known: &Known) -> Result<(), Invalid> {
    let annotations = service.metadata.annotations.as_ref();
    if annotations.is_some_and(|annotations| annotations.contains_key(label::IMPORTED_SERVICE)) {
        let message = "this Service was imported from other clusters and cannot be exported again";
        return Err(Invalid::new("ImportedService", message));
    }
    let no = |message: &str| Err(Invalid::new("InvalidServiceType", message));
    match service.spec.type_.as_deref() {
        None | Some("ClusterIP" | "NodePort" | "LoadBalancer") => {}
        Some(other) => return no(&format!("a Service of type {other} cannot be exported")),
    }
    let (is_headless, antrea_leads) = (service.spec.is_headless(), known.antrea_leads());
    if is_headless && known.cluster.endpoint_ip == EndpointIp::Cluster {
        return no(
            "a headless Service has no ClusterIP, and this member exports only ClusterIPs (--endpoint-ip cluster). Give the \
             Service a ClusterIP, or run the member with --endpoint-ip pod",
        );
    }
    if is_headless && antrea_leads {
        return no(
            "the leader is Antrea's, which does not support headless Services: give this Service a ClusterIP",
        );
    }
    if antrea_leads && !known.families(service).iter().any(|family| family == family::IPV4) {
        return no("the leader is Antrea's, which supports only IPv4, and this Service has no IPv4 address");
    }
    if service.spec.ports.is_empty() && !is_headless {
        return no("the Service has no ports");
    }
    // The leader's API server would refuse the record again and again. One with fewer, but too many, the leader refuses once, and its
    // cluster keeps the part it had.
    let count = service.spec.ports.len();
    if count > usize::from(PORTS_MAX) {
        let message = format!("the Service has {count} ports, and no record has more than {PORTS_MAX}");
        return Err(Invalid::new("TooManyPorts", message));
    }
    Ok(())
}
