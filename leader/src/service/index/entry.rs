//! What the leader knows about one Service name: each member's record, and the ResourceImports as they stand.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    ServiceName, name,
    resource_export::EndpointsPayload,
    resource_import::{ResourceImport, ResourceImportSpec},
    view::{Lenient, ours},
};
use kit::{
    index::{Entry, Part, Readers},
    queue::Party,
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
pub(crate) use rules::merge::Offer;
use serde::{Deserialize, Serialize};

/// The controller that reads entries: `merge`.
pub(crate) const MERGE: Readers = Readers::one(0);

/// All endpoints of a cluster's Service, in one record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Endpoints {
    /// Of the record.
    pub(crate) metadata: ObjectMeta,
    /// None if they are withdrawn.
    pub(crate) payload: EndpointsPayload,
}

impl Endpoints {
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let version = |e: &Self| (e.metadata.uid.clone(), e.metadata.deletion_timestamp.clone());
        version(self) == version(other) && self.payload == other.payload
    }
}

/// A ResourceImport of kind `ServiceImport` or `Endpoints` as we own it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ResourceImport)]
pub(crate) struct Import {
    #[serde(deserialize_with = "ours")]
    pub(crate) metadata: ObjectMeta,
    /// Tuple, merged Service and exporters; or all endpoints.
    #[serde(default)]
    pub(crate) spec: Lenient<ResourceImportSpec>,
}

/// Everything about one Service name. Its parts are shared with those who hold an earlier state of it, so that a
/// change of one record does not copy all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServiceEntry {
    /// By cluster ID.
    pub(crate) offers: BTreeMap<String, Arc<Offer>>,
    /// Clusters whose record is there but refused, and its name: their part of the import stays as it is.
    pub(crate) refused: BTreeMap<String, String>,
    /// Of these, those because of which an API server refused the import.
    pub(crate) left_out: BTreeSet<String>,
    pub(crate) import: Option<Arc<Import>>,
    /// By cluster ID: of all clusters that have such a record, while a member runs Antrea's controllers.
    pub(crate) endpoints: BTreeMap<String, Arc<Endpoints>>,
    /// The ResourceImport of all endpoints, which such members read.
    pub(crate) endpoints_import: Option<Arc<Import>>,
    /// Clusters that have no part in the import any more: they withdrew the record before it went, or it vanished, the cluster
    /// vouched for that, and a read confirmed it.
    pub(crate) confirmed_gone: BTreeSet<String>,
}

impl ServiceEntry {
    /// Whether this cluster has a record, refused or not.
    pub(crate) fn has_record(&self, cluster: &str) -> bool {
        self.offers.contains_key(cluster) || self.refused.contains_key(cluster)
    }
}

impl Entry for ServiceEntry {
    fn is_empty(&self) -> bool {
        self.offers.is_empty()
            && self.refused.is_empty()
            && self.import.is_none()
            && self.endpoints.is_empty()
            && self.endpoints_import.is_none()
    }

    /// Those who have a record; once they are gone, those whom the import names.
    fn party(&self) -> Party {
        let records: BTreeSet<_> = self.offers.keys().chain(self.refused.keys()).collect();
        if !records.is_empty() {
            return Party::of(records);
        }
        let spec = self.import.as_ref().and_then(|import| import.spec.0.as_ref().ok());
        let named = spec.and_then(|spec| spec.exporters.as_ref()).into_iter().flatten();
        Party::of(named.map(|exporter| &exporter.cluster_id).collect::<BTreeSet<_>>())
    }
}

/// Its name says what it is of, and cannot be changed: whatever somebody makes of the rest is put right.
impl Part<ServiceName, ServiceEntry> for Import {
    fn key(&self) -> Option<ServiceName> {
        let name = self.name_any();
        name::of_service_import(&name).or_else(|| name::of_endpoints_import(&name))
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let is_of_endpoints = name::of_endpoints_import(&self.name_any()).is_some();
        let place = if is_of_endpoints { &mut entry.endpoints_import } else { &mut entry.import };
        let owned = |import: &Self| {
            let metadata = import.metadata.clone();
            (metadata.uid, metadata.finalizers, metadata.owner_references, metadata.deletion_timestamp)
        };
        let is_same = |had: &Self| owned(had) == owned(&self) && had.spec == self.spec;
        let changed = !place.as_deref().is_some_and(is_same);
        *place = Some(Arc::new(self));
        MERGE.when(changed)
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        for place in [&mut entry.import, &mut entry.endpoints_import] {
            place.take_if(|import| import.metadata.name.as_deref() == Some(name));
        }
        MERGE
    }
}
