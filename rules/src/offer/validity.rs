//! Whether an export can be made, and what it asks for.

use api::{ServiceName, family, label, resource_export::ServicePayload};

use super::Local;
use crate::view::{Export, Service};

/// Why a ServiceExport cannot be exported as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// In CamelCase: the standard reason where the Multi-Cluster Services API has one.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// Whether it ends the export; otherwise the last valid export stays.
    pub is_end: bool,
}

impl Invalid {
    fn end(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), is_end: true }
    }

    fn edit(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), is_end: false }
    }
}

/// The reason of what is being deleted, and held by a finalizer.
const TERMINATING: &str = "Terminating";
/// The reason of the Multi-Cluster Services API for a Service that is of the wrong kind.
const INVALID_TYPE: &str = "InvalidServiceType";

/// What the ServiceExport itself asks for.
pub fn asked_for(export: &Export) -> Result<ServicePayload, Invalid> {
    if export.metadata.deletion_timestamp.is_some() {
        let message = "this ServiceExport is being deleted, and exists only until its finalizers are removed";
        return Err(Invalid::end(TERMINATING, message));
    }
    let invalid = |error: String| Invalid::edit("InvalidExport", error);
    let spec = export.spec.0.as_ref().map_err(|error| invalid(error.clone()))?;
    let payload = ServicePayload {
        exported_at: export.metadata.creation_timestamp.clone(),
        exported_labels: spec.exported_labels.clone(),
        exported_annotations: spec.exported_annotations.clone(),
        ..ServicePayload::default()
    };
    payload.check_metadata().map_err(invalid)?;
    Ok(payload)
}

/// What the administrator decided goes before anything a user asks for.
pub(super) fn excluded(namespace: &str) -> Invalid {
    let message = format!(
        "the administrator excluded Namespace {namespace} from exporting with label {}: \"{}\"",
        label::EXPORT,
        label::FALSE
    );
    Invalid::end("NamespaceExcluded", message)
}

/// The Service, if there is one that other clusters could reach.
pub(super) fn present<'a>(service: Option<&'a Service>, name: &ServiceName) -> Result<&'a Service, Invalid> {
    let Some(service) = service else {
        return Err(Invalid::end("NoService", format!("there is no Service {name}")));
    };
    if service.metadata.deletion_timestamp.is_some() {
        let message =
            format!("Service {name} is being deleted, and exists only until its finalizers are removed");
        return Err(Invalid::end(TERMINATING, message));
    }
    match service.spec.type_.as_deref() {
        Some("ExternalName") => {
            let message = "a Service of type ExternalName cannot be exported; what this cluster exported under the name before is withdrawn";
            Err(Invalid::end(INVALID_TYPE, message))
        }
        _ => Ok(service),
    }
}

/// Reports whether a Service of that kind can be exported from this cluster.
pub(super) fn exportable(service: &Service, local: &Local<'_>) -> Result<(), Invalid> {
    let annotations = service.metadata.annotations.as_ref();
    if annotations.is_some_and(|annotations| annotations.contains_key(label::IMPORTED_SERVICE)) {
        let message = "this Service was imported from other clusters and cannot be exported again";
        return Err(Invalid::edit("ImportedService", message));
    }
    let no = |message: &str| Err(Invalid::edit(INVALID_TYPE, message));
    match service.spec.type_.as_deref() {
        None | Some("ClusterIP" | "NodePort" | "LoadBalancer") => {}
        Some(other) => return no(&format!("a Service of type {other} cannot be exported")),
    }
    let (is_headless, antrea_leads) = (service.spec.is_headless(), local.antrea_leads);
    if is_headless && local.only_cluster_ips {
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
    if antrea_leads && !local.families(service).iter().any(|family| family == family::IPV4) {
        return no("the leader is Antrea's, which supports only IPv4, and this Service has no IPv4 address");
    }
    if service.spec.ports.is_empty() && !is_headless {
        return no("the Service has no ports");
    }
    Ok(())
}

/// Reports whether the leader would take it, and every importer's API server: the leader asks the same.
pub(super) fn fits(payload: &ServicePayload) -> Result<(), Invalid> {
    payload.check().map_err(|unfit| Invalid::edit(unfit.reason(), unfit.to_string()))
}
