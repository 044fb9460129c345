//! What a member knows about one Service name, from its own cluster and from the Common Area.

mod parts;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, resource_export::ServicePayload, resource_import::ResourceImportSpec, slice::SlicePayload,
};
use kit::index::{Entry, Readers};

use super::{
    antrea::Peer,
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

/// The controller of exports, as a reader of entries.
pub const EXPORT: Readers = Readers::one(0);
/// The controller of imports.
pub const IMPORT: Readers = Readers::one(1);
/// The controller of the ServiceExports' status.
pub const STATUS: Readers = Readers::one(2);

/// Everything about one Service name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceEntry {
    /// The user's ServiceExport.
    pub export: Option<Export>,
    /// Whether the administrator excluded the Namespace from exporting; known only in what `Knowledge::entry` gives.
    pub is_excluded: bool,
    /// This cluster; known only in what `Knowledge::entry` gives.
    pub local: Local,
    /// The leader is Antrea's; known only in what `Knowledge::entry` gives.
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
    /// Whether a Service of this cluster that has this name matters to anybody: it is exported, was exported, or is said to be.
    fn is_exported(&self) -> bool {
        self.export.is_some()
            || self.own_service.is_some()
            || self.said.is_some()
            || !self.imported_slices.is_empty()
    }

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
    /// It is not being deleted.
    pub active: bool,
    /// The administrator excluded it from exporting.
    pub excluded: bool,
}

impl Entry for NamespaceEntry {
    fn is_empty(&self) -> bool {
        !self.there
    }
}
