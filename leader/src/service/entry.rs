//! What the leader knows about one Service name: each member's record, and the ResourceImport as it stands.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, name,
    resource_export::{ENDPOINTS, ResourceExport, ResourceExportSpec, ResourceExportStatus, ServicePayload},
    resource_import::{ResourceImport, ResourceImportSpec, SERVICE_IMPORT},
    view::{Lenient, lean},
};
use kit::index::{Entry, Part, Readers};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Serialize};

use super::{
    antrea::AllEndpoints,
    judge::{Judged, Judgement},
};

/// The controller that merges.
pub const MERGE: Readers = Readers::one(0);

/// A ResourceExport as it is watched: whatever is in it, the watch goes on.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub struct Record {
    /// Name, labels, uid, generation.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// What the member says, if it decodes.
    #[serde(default)]
    pub spec: Lenient<ResourceExportSpec>,
    /// What we said about it.
    #[serde(default)]
    pub status: Lenient<ResourceExportStatus>,
}

/// A ResourceImport of kind `ServiceImport` or `Endpoints` as we own it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ResourceImport)]
pub struct Import {
    /// Name and version.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Tuple, merged Service and exporters; or all endpoints.
    #[serde(default)]
    pub spec: Lenient<ResourceImportSpec>,
}

/// A member's Service, as far as it can be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The record's metadata: identifies what a verdict is about.
    pub metadata: ObjectMeta,
    /// The Service.
    pub payload: ServicePayload,
}

/// Everything about one Service name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceEntry {
    /// Each member's offer, by cluster ID.
    pub offers: BTreeMap<String, Offer>,
    /// Clusters whose record is there but cannot be judged: their part stays as it is.
    pub unjudged: BTreeMap<String, String>,
    /// The ResourceImport, if there is one.
    pub import: Option<Import>,
    /// Each member's endpoints in one record, by cluster ID, while members that run Antrea's controllers take part.
    pub endpoints: BTreeMap<String, AllEndpoints>,
    /// The ResourceImport of all endpoints, if there is one.
    pub endpoints_import: Option<Import>,
    /// Clusters whose record is known to be gone: it vanished unsaid, its writer vouched, a read confirmed.
    pub confirmed_gone: BTreeSet<String>,
}

impl Entry for ServiceEntry {
    fn is_empty(&self) -> bool {
        self.offers.is_empty()
            && self.unjudged.is_empty()
            && self.import.is_none()
            && self.endpoints.is_empty()
            && self.endpoints_import.is_none()
    }
}

impl Part<ServiceName, ServiceEntry> for Judged {
    fn key(&self) -> Option<ServiceName> {
        match &self.judgement {
            Judgement::Service { service, .. }
            | Judgement::Endpoints { service, .. }
            | Judgement::Refused { of: Some((_, service)), .. } => Some(service.clone()),
            _ => None,
        }
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let record = self.name_any();
        let changed = match self.judgement {
            Judgement::Service { cluster, payload, .. } => {
                entry.confirmed_gone.remove(&cluster);
                let was_unjudged = entry.unjudged.remove(&cluster).is_some();
                let says = |offer: &Offer| {
                    (offer.metadata.uid.clone(), offer.metadata.generation, offer.payload.clone())
                };
                let offer = Offer { metadata: self.metadata, payload: *payload };
                let new = says(&offer);
                entry.offers.insert(cluster, offer).as_ref().map(says) != Some(new) || was_unjudged
            }
            Judgement::Endpoints { cluster, payload, .. } => {
                let new = AllEndpoints { metadata: self.metadata, payload };
                let says = |all: &AllEndpoints| {
                    (all.metadata.uid.clone(), all.metadata.deletion_timestamp.clone(), all.payload.clone())
                };
                let said = says(&new);
                entry.endpoints.insert(cluster, new).as_ref().map(says) != Some(said)
            }
            Judgement::Refused { of: Some((cluster, _)), .. } => {
                entry.confirmed_gone.remove(&cluster);
                let was_offer = entry.offers.remove(&cluster).is_some();
                entry.unjudged.insert(cluster, record).is_none() || was_offer
            }
            _ => false,
        };
        MERGE.when(changed)
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        // A record that was withdrawn before it went did not just vanish.
        let said = entry.offers.extract_if(.., |_, offer| offer.metadata.name.as_deref() == Some(name));
        let said: Vec<_> =
            said.filter(|(_, offer)| offer.payload.withdrawn).map(|(cluster, _)| cluster).collect();
        entry.confirmed_gone.extend(said);
        entry.unjudged.retain(|_, record| record != name);
        entry.endpoints.retain(|_, all| all.metadata.name.as_deref() != Some(name));
        MERGE
    }
}

impl Part<ServiceName, ServiceEntry> for Import {
    fn key(&self) -> Option<ServiceName> {
        let spec = self.spec.0.as_ref().ok()?;
        let service = ServiceName::new(spec.namespace.clone()?, spec.name.clone()?);
        let named = match spec.kind.as_deref() {
            Some(SERVICE_IMPORT) => name::service_import(&service),
            Some(ENDPOINTS) => name::endpoints_import(&service),
            _ => return None,
        };
        (self.name_any() == named).then_some(service)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let says = |import: &Import| (import.metadata.uid.clone(), import.spec.clone());
        let new = says(&self);
        let is_of_endpoints = self.spec.0.as_ref().is_ok_and(|spec| spec.kind.as_deref() == Some(ENDPOINTS));
        let place = if is_of_endpoints { &mut entry.endpoints_import } else { &mut entry.import };
        MERGE.when(place.replace(self).as_ref().map(says) != Some(new))
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        for place in [&mut entry.import, &mut entry.endpoints_import] {
            place.take_if(|import| import.metadata.name.as_deref() == Some(name));
        }
        MERGE
    }
}
