//! Members that write as Antrea's controllers do: what they say in their records, as the slices that ours write; and
//! [a leader of Antrea's](leader). Pure.
//!
//! Such a member has one record with its Service and one with all its endpoints, and takes either back by deleting it; the
//! leader's finalizer keeps it until the leader has seen that, so a record that is being deleted is a word, as an emptied one is.
//! What the one record says is all there is: no slice can be missing beside it.

pub mod leader;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, antrea,
    endpoints::{payload, slices},
    family, label,
    resource_export::{ENDPOINTS, EndpointsPayload, ResourceExport, ResourceExportSpec, SERVICE},
    slice::SlicePayload,
    view::{Lenient, lean},
};
use k8s_openapi::api::core::v1::ServicePort;
use kit::index::{Part, Readers};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use super::{
    entry::{IMPORT, ServiceEntry},
    import::plan::imported_from,
};

/// A record of such a member.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub struct PeerRecord {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<ResourceExportSpec>,
}

/// What such a member says about one Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peer {
    /// Name of the record with its Service, and the ports that has.
    service: Option<(String, Vec<ServicePort>)>,
    /// Name of the record with all endpoints, and these; none if they are taken back.
    endpoints: Option<(String, EndpointsPayload)>,
}

impl Peer {
    /// Its slices, by what a record of each would be called; `None` if it has not said all that it takes to know them.
    fn slices(&self) -> Option<BTreeMap<String, SlicePayload>> {
        let (record, payload) = self.endpoints.as_ref()?;
        let ports = match &self.service {
            Some((_, ports)) => ports.as_slice(),
            None if payload.subsets.is_empty() => &[],
            None => return None,
        };
        let named = |(number, slice)| match number {
            0 => (record.clone(), slice),
            _ => (format!("{record}#{number}"), slice),
        };
        Some(slices(payload, ports).ok()?.into_iter().enumerate().map(named).collect())
    }

    /// Whether there is a record of its endpoints.
    pub fn has_endpoints(&self) -> bool {
        self.endpoints.is_some()
    }

    /// Whether it is known what slices it has, be it none.
    pub fn says_all(&self) -> bool {
        self.slices().is_some()
    }
}

impl PeerRecord {
    /// Who says it about which Service, if its name and labels agree.
    fn tuple(&self) -> Option<(String, ServiceName)> {
        let spec = self.spec.0.as_ref().ok()?;
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
        let Ok(spec) = self.spec.0 else { return Readers::NONE };
        // A record that is being deleted is a word, whatever becomes of it; so is one that is there again.
        let news = match is_going {
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
        IMPORT.when(tell(entry, &cluster) || news || begins)
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        for cluster in entry.antrea.keys().cloned().collect::<Vec<_>>() {
            let Some(peer) = entry.antrea.get_mut(&cluster) else { continue };
            peer.service.take_if(|(record, _)| record == name);
            if let Some((_, said)) = peer.endpoints.take_if(|(record, _)| record == name)
                && said.subsets.is_empty()
            {
                // Said before it went, however quickly it went.
                let gone: Vec<_> = imported_from(entry, &cluster).cloned().collect();
                entry.slices_gone.extend(gone);
            }
            tell(entry, &cluster);
        }
        entry.antrea.retain(|_, peer| *peer != Peer::default());
        IMPORT
    }
}

/// Takes what the cluster says now as its slices; whether that is something else.
fn tell(entry: &mut ServiceEntry, cluster: &str) -> bool {
    let peer = entry.antrea.get(cluster);
    let now = peer.and_then(Peer::slices);
    let says_all = now.is_some();
    let now = now.unwrap_or_default();
    let said = match now.is_empty() {
        true => entry.peers.remove(cluster),
        false => entry.peers.insert(cluster.to_owned(), now.clone()),
    };
    if says_all {
        let imported: BTreeSet<_> = imported_from(entry, cluster).cloned().collect();
        entry.slices_gone.retain(|slice| !imported.contains(slice));
    }
    // That it has none is news too, if it was not known before.
    now.is_empty() || said.as_ref() != Some(&now)
}

/// All endpoints of an export in one, for importers that know nothing else, nor IPv6.
pub fn all_endpoints(slices: &BTreeMap<String, SlicePayload>) -> EndpointsPayload {
    let known = slices.values().filter(|slice| slice.address_type == family::IPV4);
    payload(known, |port| Some(port.name.clone()))
}

#[cfg(test)]
mod tests;
