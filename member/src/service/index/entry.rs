//! Everything about one Service name, as objects and reads show it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock},
};

use api::{
    ServiceName, label, name, resource_export::ServicePayload, resource_import::ResourceImportSpec,
    slice::SlicePayload,
};
use jiff::Timestamp;
use kit::{
    index::{Entry, Readers},
    queue::Party,
};
use kube::ResourceExt;

use super::{
    EXPORT, IMPORT, READ, STATUS,
    endpoints::CoreEndpoints,
    peer::Peer,
    unread::Unread,
    view::{Export, Import, OwnRecord, Service, Slice, is_made, is_ours},
};

/// Everything about one Service name. Most Services of a cluster are neither exported nor imported: of these it has names and nothing
/// else, so it should take little room then.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServiceEntry {
    /// What is known, which can be read and written as if it were always there; none where it is nothing.
    facts: Option<Box<Facts>>,
    /// Which Service and EndpointSlices of this cluster are there and were not kept, because the name mattered to nobody.
    pub(crate) not_kept: Option<Box<Unread>>,
}

/// What is known of one Service name. The parts are shared with those who hold an earlier state: a change copies one of them and not all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// The user's ServiceExport.
    pub(crate) export: Option<Arc<Export>>,
    /// The Service of that name.
    pub(crate) service: Option<Arc<Service>>,
    /// Its EndpointSlices, by name.
    pub(crate) slices: BTreeMap<String, Arc<Slice>>,

    /// Our Service record in the Common Area.
    pub(crate) own_service: Option<Arc<OwnRecord>>,
    /// Our slice records, by name.
    pub(crate) own_slices: BTreeMap<String, Arc<OwnRecord>>,
    /// Our record with all endpoints, for members that run Antrea's controllers.
    pub(crate) own_endpoints: Option<Arc<OwnRecord>>,
    /// What the leader merged.
    pub(crate) leader_import: Option<Arc<LeaderRecord>>,
    /// Other clusters' slices: by cluster ID, then by the record's name.
    pub(crate) peers: BTreeMap<String, BTreeMap<String, Arc<SlicePayload>>>,
    /// Imported slices whose records are there, but not valid or refused by the leader: they stay as they are.
    pub(crate) slices_refused: BTreeSet<String>,
    /// What members that run Antrea's controllers say, by cluster ID; [`peers`](Self::peers) has the slices that come of it.
    pub(crate) antrea: BTreeMap<String, Peer>,

    /// The Service named like an imported one, whoever made it.
    pub(crate) derived: Option<Arc<Service>>,
    /// The ServiceImport, whoever made it.
    pub(crate) import: Option<Arc<Import>>,
    /// EndpointSlices we imported, by name.
    pub(crate) imported_slices: BTreeMap<String, Arc<Slice>>,
    /// Core Endpoints beside them, where the member writes such.
    pub(crate) imported_endpoints: Option<Arc<CoreEndpoints>>,

    /// What we exported last, also when the record of it has vanished since.
    pub(crate) last_exported: Option<Arc<ServicePayload>>,
    /// What the leader's API server said when it refused a record of ours, until it takes them all.
    pub(crate) refused: Option<String>,
    /// Whether there was a ServiceExport in this session, and it went.
    pub(crate) export_went: bool,
    /// Why the ServiceExport is not there, once that was found out.
    pub(crate) unexported: Option<Unexported>,
    /// uid of the ResourceImport that nothing of what is here was missing in, so that it is believed since.
    pub(crate) accepted: Option<String>,
    /// Clusters that are known to take no part any more, though the import does not say it.
    pub(crate) parts_gone: BTreeSet<String>,
    /// The leader vouches that its import is gone, and a read confirmed it; or it said so before.
    pub(crate) import_gone: bool,
    /// The import named nobody before it went: by the leader's word no cluster takes part any more.
    pub(crate) taken_back: bool,
    /// Imported slices whose records are gone: their writers vouch for it, and a read confirmed it.
    pub(crate) slices_gone: BTreeSet<String>,
}

impl Deref for ServiceEntry {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        static NOTHING: LazyLock<Facts> = LazyLock::new(Facts::default);
        self.facts.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for ServiceEntry {
    fn deref_mut(&mut self) -> &mut Facts {
        self.facts.get_or_insert_default()
    }
}

impl Facts {
    /// What of it was found out, and no watch tells.
    fn learned(&self) -> Self {
        Self {
            last_exported: self.last_exported.clone(),
            refused: self.refused.clone(),
            export_went: self.export_went,
            unexported: self.unexported,
            accepted: self.accepted.clone(),
            parts_gone: self.parts_gone.clone(),
            import_gone: self.import_gone,
            taken_back: self.taken_back,
            slices_gone: self.slices_gone.clone(),
            ..Self::default()
        }
    }
}

impl ServiceEntry {
    /// Whether a Service of this cluster that has this name matters to anybody: it is exported, was exported, or has a part in what is imported here.
    pub(crate) fn is_exported(&self) -> bool {
        self.export.is_some()
            || self.own_service.is_some()
            || self.last_exported.is_some()
            || !self.imported_slices.is_empty()
    }

    /// What has to be read before anything is decided about the export.
    pub(crate) fn unread(&self) -> Option<&Unread> {
        self.not_kept.as_deref().filter(|_| self.is_exported())
    }

    /// Whether there is a record of all endpoints of that cluster.
    pub(crate) fn has_endpoints(&self, cluster: &str) -> bool {
        self.antrea.get(cluster).is_some_and(Peer::has_endpoints)
    }

    /// Whether a record of that cluster, with all endpoints or what it takes to know them, is there and refused.
    pub(crate) fn is_refused(&self, cluster: &str) -> bool {
        self.antrea.get(cluster).is_some_and(Peer::is_refused)
    }

    /// Whether the slices that are known of that cluster are all it has, which its one record shows: others did not just vanish.
    pub(crate) fn is_complete(&self, cluster: &str) -> bool {
        self.antrea.get(cluster).is_some_and(Peer::is_complete)
    }

    /// Whether something that we imported is here. What only has our labels and our name is somebody's copy.
    pub(crate) fn is_imported(&self) -> bool {
        self.own_import().is_some_and(is_made)
            || self.own_derived().is_some_and(is_made)
            || self.imported_endpoints.as_deref().is_some_and(is_made)
            || self.imported_slices.values().any(|slice| is_made(&**slice))
    }

    /// The ServiceImport, if we made it.
    pub(crate) fn own_import(&self) -> Option<&Import> {
        self.import.as_deref().filter(|import| is_ours(&import.metadata))
    }

    /// Whether somebody else made the ServiceImport.
    pub(crate) fn is_anothers(&self) -> bool {
        self.import.is_some() && self.own_import().is_none()
    }

    /// The Service that stands for the import, if we made it.
    pub(crate) fn own_derived(&self) -> Option<&Service> {
        self.derived.as_deref().filter(|derived| is_ours(&derived.metadata))
    }

    /// Names of the slices we imported from `cluster`.
    pub(crate) fn imported_from<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a String> {
        let slices = self.imported_slices.iter();
        slices
            .filter(move |(_, slice)| source_cluster(slice).is_some_and(|from| from == cluster))
            .map(|(name, _)| name)
    }

    /// Names that the slices which `cluster` has now are imported under.
    pub(crate) fn to_import_from<'a>(
        &'a self,
        service: &'a ServiceName,
        cluster: &str,
    ) -> impl Iterator<Item = String> + 'a {
        let records = self.peers.get(cluster).into_iter().flat_map(BTreeMap::keys);
        records.map(|record| name::imported_slice(&service.name, record))
    }

    /// Clusters that have a part in what is imported here.
    pub(crate) fn parts(&self) -> BTreeSet<String> {
        let status = self.own_import().and_then(|import| import.status.0.as_ref().ok());
        let of_status =
            status.into_iter().flat_map(|status| status.clusters.iter().map(|of| of.cluster.clone()));
        of_status
            .chain(self.imported_slices.values().filter_map(|slice| source_cluster(slice)).cloned())
            .collect()
    }

    /// Whether the import is the one that what is here was measured by, by this very process: while it was away the Common Area
    /// may have been restored from a backup, and no watch shows that.
    pub(crate) fn is_measured(&self, import: &LeaderRecord) -> bool {
        self.accepted.as_ref() == Some(&import.uid)
    }
}

/// The cluster that an imported slice comes from.
pub(crate) fn source_cluster(slice: &Slice) -> Option<&String> {
    slice.labels().get(label::MCS_SOURCE_CLUSTER)
}

impl Entry for ServiceEntry {
    fn is_empty(&self) -> bool {
        self.not_kept.is_none() && self.facts.as_ref().is_none_or(|facts| **facts == facts.learned())
    }

    /// Whether more is known of the name than that there is a Service of it in this cluster.
    fn matters(&self) -> bool {
        self.is_exported()
            || self.imported_endpoints.is_some()
            || !self.imported_slices.is_empty()
            || self.own_endpoints.is_some()
            || !self.own_slices.is_empty()
            || self.leader_import.is_some()
            || !self.peers.is_empty()
            || !self.antrea.is_empty()
            || !self.slices_refused.is_empty()
            || self.derived.is_some()
            || self.import.is_some()
    }

    fn settle(&mut self, readers: Readers) -> Readers {
        let was_unread = self.unread().is_some();
        let mut not_kept = self.not_kept.take().unwrap_or_default();
        match self.matters() {
            true => not_kept.take_out(self.service.as_ref(), &self.slices),
            false => self.facts.iter_mut().for_each(|of| not_kept.add(&mut of.service, &mut of.slices)),
        }
        self.facts.take_if(|facts| **facts == Facts::default());
        self.not_kept = Some(not_kept).filter(|not_kept| !not_kept.is_empty());
        match self.unread() {
            // The others would do nothing, and have to wait for their next turn then.
            Some(_) => READ,
            None if was_unread => readers.and(EXPORT).and(IMPORT).and(STATUS),
            None => readers,
        }
    }

    /// Those who export it, by what the leader merged, their slices and what is here of it.
    fn party(&self) -> Party {
        let named = self.leader_import.iter().flat_map(|import| import.spec.exporters.iter().flatten());
        let named = named.map(|exporter| exporter.cluster_id.as_str());
        let all: BTreeSet<_> = named.chain(self.peers.keys().map(String::as_str)).collect();
        Party::of([(all, self.export.is_some() || self.own_service.is_some())])
    }
}

/// A ResourceImport.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LeaderRecord {
    /// Its uid.
    pub(crate) uid: String,
    /// When the leader's API server created it.
    pub(crate) created: Option<Timestamp>,
    /// Its spec.
    pub(crate) spec: ResourceImportSpec,
}

/// Why a ServiceExport is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unexported {
    /// Somebody deleted it.
    Decided,
    /// Its CRD was deleted, and it along with it; or this cluster was restored from a backup that does not have it.
    Vanished,
    /// As `Vanished`, and the Service is missing for the same reason: what was exported last stays.
    Lost,
}

/// What is known of a Namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NamespaceEntry {
    /// It exists.
    pub(crate) exists: bool,
    /// It is not being deleted.
    pub(crate) active: bool,
    /// The administrator excluded it from exporting.
    pub(crate) excluded: bool,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
}

impl Entry for NamespaceEntry {
    fn is_empty(&self) -> bool {
        !self.exists
    }
}
