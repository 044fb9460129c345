//! Members that write as Antrea's controllers do: their records, as the slices that ours write.
//!
//! The leader's finalizer keeps a record that is being deleted until the leader has seen that: so it says that it is taken back, as
//! an emptied one of ours does.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, antrea,
    endpoints::payload,
    family, label,
    resource_export::{
        ENDPOINTS, EndpointsPayload, OVER_QUOTA, ResourceExport, ResourceExportSpec, ResourceExportStatus,
        SERVICE, ServicePayload,
    },
    slice::SlicePayload,
    view::{Lenient, Measured, sourced},
};
use k8s_openapi::api::core::v1::ServicePort;
use kit::{
    index::{Part, Readers},
    quota::Counted,
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use crate::service::index::{IMPORT, entry::ServiceEntry, peer::Peer};

/// A record of such a member. What is refused is let go while a record is decoded, so that a long list costs what is kept of it.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
#[serde(from = "Record")]
pub(crate) struct PeerRecord {
    metadata: ObjectMeta,
    /// The cluster whose record it is, and the Service, if its name and labels agree.
    of: Option<(String, ServiceName)>,
    /// What it says; nothing if that is not valid, or the leader refuses it as too much.
    content: Option<Content>,
    /// Its size as JSON, or in memory if that is more; 0 without content.
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Content {
    Service(Vec<ServicePort>),
    Endpoints(EndpointsPayload),
}

#[derive(Deserialize)]
struct Record {
    #[serde(deserialize_with = "sourced")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Measured<ResourceExportSpec>,
    #[serde(default)]
    status: Lenient<ResourceExportStatus>,
}

impl From<Record> for PeerRecord {
    fn from(record: Record) -> Self {
        let Record { mut metadata, spec, status } = record;
        let of = source(&metadata, spec.content.as_ref().ok());
        let is_endpoints = kind(&metadata) == Some(ENDPOINTS);
        metadata.labels.get_or_insert_default().retain(|key, _| key == label::SOURCE_KIND);
        metadata.finalizers = None;
        let conditions = status.0.map(|status| status.conditions).unwrap_or_default();
        let is_too_much = conditions.iter().any(|c| c.reason.as_deref() == Some(OVER_QUOTA));
        let is_going = metadata.deletion_timestamp.is_some();
        let length = spec.bytes;
        let spec = spec.content.ok().filter(|_| !is_too_much && of.is_some());
        let (content, weight) = match is_endpoints {
            true if is_going => (Some(Content::Endpoints(EndpointsPayload::default())), None),
            true => endpoints(spec.and_then(|spec| spec.endpoints)),
            false => ports(spec.and_then(|spec| spec.service)),
        };
        let bytes = weight.map_or(0, |weight| length.max(weight));
        Self { metadata, of, content, bytes }
    }
}

/// What of the endpoints is used, and how much memory it takes.
fn endpoints(payload: Option<EndpointsPayload>) -> (Option<Content>, Option<usize>) {
    let Some(mut payload) = payload else { return (None, None) };
    for subset in &mut payload.subsets {
        for address in subset.addresses.iter_mut().chain(&mut subset.not_ready_addresses).flatten() {
            (address.node_name, address.target_ref) = (None, None);
        }
    }
    let weight = payload.weight();
    (Some(Content::Endpoints(payload)), Some(weight))
}

/// The same of a Service.
fn ports(payload: Option<ServicePayload>) -> (Option<Content>, Option<usize>) {
    let weight = payload.as_ref().map(ServicePayload::weight);
    (payload.map(|payload| Content::Service(payload.service_spec.ports.unwrap_or_default())), weight)
}

fn kind(metadata: &ObjectMeta) -> Option<&str> {
    metadata.labels.as_ref()?.get(label::SOURCE_KIND).map(String::as_str)
}

/// Whose record it is: its labels say it where its spec does not decode.
fn source(metadata: &ObjectMeta, spec: Option<&ResourceExportSpec>) -> Option<(String, ServiceName)> {
    let label = |key: &str| metadata.labels.as_ref()?.get(key).cloned();
    let (cluster, kind) = (label(label::SOURCE_CLUSTER_ID)?, kind(metadata)?);
    let service = match spec {
        Some(spec) => {
            let is_its = spec.cluster_id.as_ref() == Some(&cluster) && spec.kind.as_deref() == Some(kind);
            is_its.then_some(ServiceName::new(spec.namespace.clone()?, spec.name.clone()?))?
        }
        None => ServiceName::new(label(label::SOURCE_NAMESPACE)?, label(label::SOURCE_NAME)?),
    };
    let named = match kind {
        SERVICE => antrea::service_export(&cluster, &service),
        ENDPOINTS => antrea::endpoints_export(&cluster, &service),
        _ => return None,
    };
    (metadata.name.as_ref() == Some(&named)).then_some((cluster, service))
}

impl Counted for PeerRecord {
    fn writer(&self) -> Option<String> {
        self.of.as_ref().map(|(cluster, _)| cluster.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn without_content(self) -> Self {
        // That it is taken back takes no room.
        let content = self.content.filter(|_| self.bytes == 0);
        Self { content, bytes: 0, ..self }
    }
}

impl Part<ServiceName, ServiceEntry> for PeerRecord {
    fn key(&self) -> Option<ServiceName> {
        self.of.as_ref().map(|(_, service)| service.clone())
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let name = self.name_any();
        let is_endpoints = kind(&self.metadata) == Some(ENDPOINTS);
        let Some((cluster, _)) = self.of else { return Readers::NONE };
        // A record that is being deleted says that the cluster takes no part; one that is there again says that it does.
        let turned = match self.metadata.deletion_timestamp.is_some() {
            true => entry.parts_gone.insert(cluster.clone()),
            false => entry.parts_gone.remove(&cluster),
        };
        let peer = entry.antrea.entry(cluster.clone()).or_default();
        let before = (peer.has_endpoints(), peer.is_refused());
        match self.content {
            Some(Content::Service(ports)) => peer.service = Some((name, Some(ports))),
            Some(Content::Endpoints(payload)) => peer.endpoints = Some((name, Some(payload))),
            None if is_endpoints => peer.endpoints = Some((name, None)),
            None => peer.service = Some((name, None)),
        }
        let begins = (peer.has_endpoints(), peer.is_refused()) != before;
        IMPORT.when(update_slices(entry, &cluster) || turned || begins)
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        for cluster in entry.antrea.keys().cloned().collect::<Vec<_>>() {
            let Some(peer) = entry.antrea.get_mut(&cluster) else { continue };
            peer.service.take_if(|(record, _)| record == name);
            if let Some((_, Some(payload))) = peer.endpoints.take_if(|(record, _)| record == name)
                && payload.subsets.is_empty()
            {
                // Emptied before it went, however quickly it went.
                let gone: Vec<_> = entry.imported_from(&cluster).cloned().collect();
                entry.slices_gone.extend(gone);
            }
            update_slices(entry, &cluster);
        }
        entry.antrea.retain(|_, peer| *peer != Peer::default());
        IMPORT
    }
}

/// Derives the slices of the cluster from its records; whether that is something else than before.
fn update_slices(entry: &mut ServiceEntry, cluster: &str) -> bool {
    let slices = entry.antrea.get(cluster).and_then(Peer::slices);
    let is_complete = slices.is_some();
    let slices = slices.unwrap_or_default();
    let before = match slices.is_empty() {
        true => entry.peers.remove(cluster),
        false => entry.peers.insert(cluster.to_owned(), slices.clone()),
    };
    if is_complete {
        let imported: BTreeSet<_> = entry.imported_from(cluster).cloned().collect();
        entry.slices_gone.retain(|slice| !imported.contains(slice));
    }
    // That it has none is news too, if it was not known before.
    slices.is_empty() || before.as_ref() != Some(&slices)
}

/// All endpoints of an export in one, for importers that know nothing else, nor IPv6.
pub(crate) fn all_endpoints(slices: &BTreeMap<String, SlicePayload>) -> EndpointsPayload {
    let known = slices.values().filter(|slice| slice.address_type == family::IPV4);
    payload(known, |port| Some(port.name.clone()))
}

#[cfg(test)]
mod tests;
