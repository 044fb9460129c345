//! What was exported last: pure. The record of it says so.

use api::{
    mcs::{ServiceImportSpec, ServiceImportType},
    resource_export::{HEADLESS, ServicePayload},
};
use k8s_openapi::api::core::v1 as core;
use rules::offer::{self, exported_port};

use crate::service::index::{
    entry::{ServiceEntry, Unexported},
    known::Known,
};

/// What we exported last under that name, if its ServiceExport is gone and it is not known that somebody decided that.
pub(crate) fn still_exported(us: &str, entry: &ServiceEntry) -> Option<ServicePayload> {
    let is_undecided = entry.export.is_none() && entry.unexported != Some(Unexported::Decided);
    is_undecided.then(|| last_exported(us, entry)).flatten()
}

/// What we exported last under that name because of the ServiceExport there is, if any: its deletion was an end, also where nobody
/// looked between that and the next one.
pub(super) fn last_valid(known: &Known) -> Option<ServicePayload> {
    let entry = &known.entry;
    let record = entry.own_service.as_deref();
    // To Antrea's leader a record is taken back by deleting it.
    if known.antrea_leads() && record.is_some_and(|record| record.metadata.deletion_timestamp.is_some()) {
        return None;
    }
    let payload = last_exported(known.us(), entry)?;
    let created = entry.export.as_deref().and_then(|export| export.metadata.creation_timestamp.as_ref());
    offer::last_valid(payload, created)
}

/// What was exported last, unless that was withdrawn.
///
/// The record may have vanished, where this cluster leads and all CRDs were deleted, or is not known before the leader is there. Then our
/// own part in what is imported here shows that there was one: it is no younger than the export.
fn last_exported(us: &str, entry: &ServiceEntry) -> Option<ServicePayload> {
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
            let import = entry.own_import().and_then(|import| import.spec.0.as_ref().ok());
            let service_spec = import.map(as_exported).unwrap_or_default();
            Some(ServicePayload { exported_at: Some(age), service_spec, ..ServicePayload::default() })
        }
    }
}

/// What an exporter says so that this is imported.
fn as_exported(import: &ServiceImportSpec) -> core::ServiceSpec {
    core::ServiceSpec {
        ports: Some(import.ports.iter().map(exported_port).collect()),
        cluster_ip: (import.type_ == ServiceImportType::Headless).then(|| HEADLESS.to_owned()),
        ip_families: Some(import.ip_families.clone()),
        ..core::ServiceSpec::default()
    }
}
