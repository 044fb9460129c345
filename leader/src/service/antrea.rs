//! Members that run Antrea's controllers: the one import of all endpoints that they read, and the records of endpoints that they
//! take back. Pure.
//!
//! Such a member deletes its record and leaves a finalizer on it: a record that is being deleted is withdrawn, and the
//! finalizer is taken off once the imports say so. If somebody else deletes it, also with its CRD or its Namespace, that looks the
//! same: the leader cannot distinguish it.

use api::{
    ServiceName,
    antrea::Members,
    endpoints::{payload, slices},
    port,
    resource_export::ENDPOINTS,
    resource_import::{MergedService, ResourceImportSpec},
    slice::{SlicePayload, SlicePort},
};
use kube::api::ObjectMeta;

use super::index::{
    entry::{Import, ServiceEntry},
    record::is_held,
};

/// What to do about the import of all endpoints.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing: it is as it has to be, or that is not known.
    Keep,
    /// Write this.
    Put(Box<ResourceImportSpec>),
    /// Delete it.
    Remove(Import),
}

/// What to do about the import of all endpoints, given what the Service's own import has to be. It exists only while members that
/// read it take part.
///
/// An exporter without a record of its endpoints has not said that it has none: until it does, the import stays as it is.
pub(super) fn desired(
    service: &ServiceName,
    entry: &ServiceEntry,
    import: Option<&ResourceImportSpec>,
    members: &Members,
) -> Step {
    let exporters = import.iter().flat_map(|import| import.exporters.iter().flatten());
    let exporters: Vec<_> =
        exporters.filter(|e| e.refused.is_none()).map(|e| e.cluster_id.as_str()).collect();
    let have = entry.endpoints_import.as_deref();
    if members.is_empty() || exporters.is_empty() {
        return have.cloned().map_or(Step::Keep, Step::Remove);
    }
    let known: Vec<_> = exporters.iter().filter_map(|cluster| endpoints_of(cluster, entry)).collect();
    if known.len() < exporters.len() && have.is_some() {
        return Step::Keep;
    }
    let merged = import.and_then(|import| import.service_import.as_ref());
    let spec = ResourceImportSpec {
        name: Some(service.name.clone()),
        namespace: Some(service.namespace.clone()),
        kind: Some(ENDPOINTS.into()),
        endpoints: Some(payload(known.iter().flatten(), |port| merged_name(port, merged))),
        ..ResourceImportSpec::default()
    };
    match have.is_some_and(|have| have.spec.0.as_ref() == Ok(&spec)) {
        true => Step::Keep,
        false => Step::Put(Box::new(spec)),
    }
}

/// The endpoints of a cluster, if it has a record of them and of its Service.
fn endpoints_of(cluster: &str, entry: &ServiceEntry) -> Option<Vec<SlicePayload>> {
    let (offer, endpoints) = (entry.offers.get(cluster)?, entry.endpoints.get(cluster)?);
    let ports = offer.payload.service_spec.ports.as_deref().unwrap_or_default();
    slices(&endpoints.payload, ports).ok()
}

/// The merged Service's name of a port; none if that does not have it (rules ).
fn merged_name(port: &SlicePort, merged: Option<&MergedService>) -> Option<Option<String>> {
    let is_same = |merged: &&api::mcs::ServicePort| {
        port::is_same(merged.port, merged.protocol.as_deref(), port.service_port, Some(&port.protocol))
    };
    merged?.spec.ports.iter().find(is_same).map(|port| port.name.clone())
}

/// Records of endpoints that are withdrawn, and wait for us to take the finalizer off.
pub(super) fn held(entry: &ServiceEntry) -> Vec<ObjectMeta> {
    let all = entry.endpoints.values().map(|endpoints| &endpoints.metadata);
    all.filter(|metadata| is_held(metadata)).cloned().collect()
}

#[cfg(test)]
mod tests;
