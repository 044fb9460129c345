//! What a member knows about one Service name, from its own cluster and from the Common Area.

mod parts;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, antrea::namesakes, resource_export::ServicePayload, resource_import::ResourceImportSpec,
    slice::SlicePayload,
};
use kit::index::{Entry, Index};

use super::{
    antrea::{Peer, leader},
    export::EndpointIp,
    view::{Export, Import, OwnRecord, Service, Slice},
};

/// What holds for this cluster as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Local {
    /// IP families that its Services can have, the preferred one first; none while they are not known.
    pub families: Vec<String>,
    /// What of a Service is exported.
    pub endpoint_ip: EndpointIp,
}

/// Everything a member knows.
#[derive(Default)]
pub struct Known {
    /// By Service name.
    pub services: Index<ServiceName, ServiceEntry>,
    /// By Namespace.
    pub namespaces: Index<String, NamespaceEntry>,
    /// Our cluster ID, where the leader is Antrea's.
    pub under_antrea: Option<String>,
    /// This cluster.
    pub local: Local,
}

impl Known {
    /// The Service names of these Namespaces.
    pub fn within(&self, namespaces: &BTreeSet<String>) -> Vec<ServiceName> {
        self.services.keys().filter(|service| namespaces.contains(&service.namespace)).cloned().collect()
    }

    /// Everything about one Service name, as a controller looks at it: with what its Namespace says.
    pub fn entry(&self, service: &ServiceName) -> Option<ServiceEntry> {
        let entry = self.with_namespace(service)?;
        let Some(us) = &self.under_antrea else { return Some(entry) };
        let rival = leader::rival(us, service, &entry, |other| self.with_namespace(other));
        Some(leader::as_told(us, service, entry, rival))
    }

    fn with_namespace(&self, service: &ServiceName) -> Option<ServiceEntry> {
        let is_excluded = self.namespaces.get(&service.namespace).is_some_and(|entry| entry.excluded);
        let (local, antrea_leads) = (self.local.clone(), self.under_antrea.is_some());
        let entry = self.services.get(service)?.clone();
        Some(ServiceEntry { is_excluded, local, antrea_leads, ..entry })
    }

    /// These, and those that what is said of them concerns too: under a leader of Antrea's those that want the same names.
    pub fn concerned(&self, services: Vec<ServiceName>) -> Vec<ServiceName> {
        if self.under_antrea.is_none() {
            return services;
        }
        let others: Vec<_> = services.iter().flat_map(namesakes).collect();
        let known = others.into_iter().filter(|other| self.services.get(other).is_some());
        services.iter().cloned().chain(known).collect()
    }

    /// Whether the Namespace is there and not going.
    pub fn is_active(&self, namespace: &str) -> bool {
        self.namespaces.get(&namespace.to_owned()).is_some_and(|entry| entry.active)
    }
}

/// Everything about one Service name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceEntry {
    /// The user's ServiceExport.
    pub export: Option<Export>,
    /// Whether the administrator excluded the Namespace from exporting; known only in what [`Known::entry`] gives.
    pub is_excluded: bool,
    /// This cluster; known only in what [`Known::entry`] gives.
    pub local: Local,
    /// The leader is Antrea's; known only in what [`Known::entry`] gives.
    pub antrea_leads: bool,
    /// Another Service of ours that has the names our records need under such a leader; known only there.
    pub rival: Option<ServiceName>,
    /// The Service of that name.
    pub service: Option<Service>,
    /// Its EndpointSlices, by name.
    pub slices: BTreeMap<String, Slice>,

    /// Our Service record in the Common Area.
    pub own_service: Option<OwnRecord>,
    /// Our slice records, by name.
    pub own_slices: BTreeMap<String, OwnRecord>,
    /// What the leader merged.
    pub hub_import: Option<HubRecord>,
    /// Other clusters' slices: by cluster ID, then by the record's name.
    pub peers: BTreeMap<String, BTreeMap<String, SlicePayload>>,

    /// Our record with all endpoints, for members that run Antrea's controllers.
    pub own_endpoints: Option<OwnRecord>,
    /// What such members say, by cluster ID; [`ServiceEntry::peers`] has the slices that come of it.
    pub antrea: BTreeMap<String, Peer>,

    /// The Service named like an imported one, whoever made it.
    pub derived: Option<Service>,
    /// The ServiceImport, whoever made it.
    pub import: Option<Import>,
    /// EndpointSlices we imported, by name.
    pub imported_slices: BTreeMap<String, Slice>,

    /// What we last told the leader of our export, also when the record of it has vanished since.
    pub said: Option<ServicePayload>,
    /// Why the ServiceExport is not there, once that was looked into.
    pub unexported: Option<Unexported>,
    /// uid of the ResourceImport that was measured against what is here and is believed since.
    pub accepted: Option<String>,
    /// Clusters of which it is known that they take no part any more, though the import does not say it.
    pub parts_gone: BTreeSet<String>,
    /// The leader vouches that it imports this no more, and a read confirmed it.
    pub import_gone: bool,
    /// Imported slices whose records are gone: their writers vouch for it, and a read confirmed it.
    pub slices_gone: BTreeSet<String>,
}

impl ServiceEntry {
    /// Whether there is a record of all endpoints of that cluster.
    pub fn has_endpoints(&self, cluster: &str) -> bool {
        self.antrea.get(cluster).is_some_and(Peer::has_endpoints)
    }

    /// Whether the slices of that cluster are all there are, by its own word: others did not just vanish.
    pub fn says_all(&self, cluster: &str) -> bool {
        self.antrea.get(cluster).is_some_and(Peer::says_all)
    }
}

impl Entry for ServiceEntry {
    fn is_empty(&self) -> bool {
        let learned = Self {
            said: self.said.clone(),
            unexported: self.unexported,
            accepted: self.accepted.clone(),
            parts_gone: self.parts_gone.clone(),
            import_gone: self.import_gone,
            slices_gone: self.slices_gone.clone(),
            ..Self::default()
        };
        *self == learned
    }
}

/// A ResourceImport.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HubRecord {
    /// Its uid.
    pub uid: String,
    /// What it says.
    pub spec: ResourceImportSpec,
}

/// Why a ServiceExport is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexported {
    /// Somebody deleted it.
    Decided,
    /// Its CRD was deleted, and it along with it.
    Vanished,
}

/// What is known of a Namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NamespaceEntry {
    there: bool,
    active: bool,
    excluded: bool,
}

impl Entry for NamespaceEntry {
    fn is_empty(&self) -> bool {
        !self.there
    }
}
