//! Members that write as Antrea's controllers do: their records, as the slices that ours write.
//!
//! The leader's finalizer keeps a record that is being deleted until the leader has seen that: so it says that it is taken back, as
//! an emptied one of ours does.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, antrea,
    endpoints::payload,
    family, label,
    resource_export::{ENDPOINTS, EndpointsPayload, ResourceExport, ResourceExportSpec, SERVICE},
    slice::SlicePayload,
    view::{Measured, sourced},
};
use kit::index::{Part, Readers};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use crate::service::index::{IMPORT, entry::ServiceEntry, peer::Peer};

/// A record of such a member.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct PeerRecord {
    #[serde(deserialize_with = "sourced")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Measured<ResourceExportSpec>,
}

impl PeerRecord {
    /// The cluster whose record it is, and the Service, if its name and labels agree.
    fn tuple(&self) -> Option<(String, ServiceName)> {
        let spec = self.spec.content.as_ref().ok()?;
        let cluster = spec.cluster_id.clone()?;
        let service = ServiceName::new(spec.namespace.clone()?, spec.name.clone()?);
        let named = match spec.kind.as_deref()? {
            SERVICE => antrea::service_export(&cluster, &service),
            ENDPOINTS => antrea::endpoints_export(&cluster, &service),
            _ => return None,
        };
        let labelled = self.labels().get(label::SOURCE_CLUSTER_ID) == Some(&cluster);
        (labelled && self.name_any() == named).then_some((cluster, service))
    }
}

impl Part<ServiceName, ServiceEntry> for PeerRecord {
    fn key(&self) -> Option<ServiceName> {
        self.tuple().map(|(_, service)| service)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let (Some((cluster, _)), name) = (self.tuple(), self.name_any()) else { return Readers::NONE };
        let is_going = self.metadata.deletion_timestamp.is_some();
        let Ok(spec) = self.spec.content else { return Readers::NONE };
        // A record that is being deleted says that the cluster takes no part; one that is there again says that it does.
        let turned = match is_going {
            true => entry.parts_gone.insert(cluster.clone()),
            false => entry.parts_gone.remove(&cluster),
        };
        let peer = entry.antrea.entry(cluster.clone()).or_default();
        let had_endpoints = peer.has_endpoints();
        if spec.kind.as_deref() == Some(SERVICE) {
            peer.service = spec.service.map(|service| (name, service.service_spec.ports.unwrap_or_default()));
        } else {
            let payload = if is_going { Some(EndpointsPayload::default()) } else { spec.endpoints };
            peer.endpoints = payload.map(|payload| (name, payload));
        }
        let begins = peer.has_endpoints() != had_endpoints;
        IMPORT.when(update_slices(entry, &cluster) || turned || begins)
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        for cluster in entry.antrea.keys().cloned().collect::<Vec<_>>() {
            let Some(peer) = entry.antrea.get_mut(&cluster) else { continue };
            peer.service.take_if(|(record, _)| record == name);
            if let Some((_, payload)) = peer.endpoints.take_if(|(record, _)| record == name)
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
