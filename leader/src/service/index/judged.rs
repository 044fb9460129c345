//! A record and what it is worth, and how it lies in an entry.

use std::sync::Arc;

use api::{
    ServiceName,
    condition::AntreaCondition,
    resource_export::{EndpointsPayload, ResourceExport, ServicePayload},
    resource_import::Objection,
};
use kit::index::{Part, Readers};
use kube::{Resource, ResourceExt, api::ObjectMeta};

use super::{
    entry::{Endpoints, MERGE, Offer, ServiceEntry},
    record::is_held,
};

/// What a record is worth by itself; other records do not matter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Judgement {
    /// A cluster's Service.
    Service { cluster: String, service: ServiceName, payload: Box<ServicePayload> },
    /// All endpoints of a cluster's Service, which matter while members that run Antrea's controllers take part.
    Endpoints { cluster: String, service: ServiceName, payload: EndpointsPayload },
    /// A valid slice: nothing for the leader to do.
    Passed,
    /// A kind that is none of our business.
    Foreign,
    /// Not valid, or too much.
    Refused {
        objection: Objection,
        /// The cluster and the Service whose record it is, as far as that is known: the cluster keeps the part it had.
        of: Option<(String, ServiceName)>,
    },
    /// Refused before for what others say, and not any more: has to be read again, since its content was not kept.
    Unread { of: Option<(String, ServiceName)> },
}

impl Judgement {
    pub(crate) fn refused(objection: Objection, of: Option<(String, ServiceName)>) -> Self {
        Self::Refused { objection, of }
    }

    /// The cluster and the Service, of a record of kind `Service`.
    pub(crate) fn of(&self) -> Option<(String, ServiceName)> {
        match self {
            Self::Service { cluster, service, .. } => Some((cluster.clone(), service.clone())),
            Self::Refused { of, .. } | Self::Unread { of } => of.clone(),
            Self::Endpoints { .. } | Self::Passed | Self::Foreign => None,
        }
    }

    /// Whether it counts in what its member has. A withdrawal does not: it has to get through, and then its record is deleted.
    pub(crate) fn counts(&self) -> bool {
        match self {
            Self::Service { payload, .. } => !payload.withdrawn,
            Self::Foreign => false,
            _ => true,
        }
    }
}

/// A record and its judgement.
#[derive(Resource, Clone, Debug)]
#[resource(inherit = ResourceExport)]
pub(crate) struct Judged {
    /// Without labels.
    pub(crate) metadata: ObjectMeta,
    /// ID of the cluster that it counts for; empty if it cannot be known.
    pub(crate) cluster: String,
    /// Its size as JSON, but for what is not kept of it.
    pub(crate) bytes: usize,
    pub(crate) judgement: Judgement,
    /// What is wrong with it though it takes part.
    pub(crate) remark: Option<Objection>,
    /// What its status says.
    pub(crate) conditions: Vec<AntreaCondition>,
}

impl Judged {
    /// Stands for the record in a request that reads nothing but its metadata.
    pub(crate) fn named(metadata: ObjectMeta) -> Self {
        let (cluster, judgement) = (String::new(), Judgement::Passed);
        Self { metadata, cluster, bytes: 0, judgement, remark: None, conditions: vec![] }
    }

    /// Whether it is being deleted, waits for us to take the finalizer off, and no import has to be written before.
    pub(crate) fn is_to_release(&self) -> bool {
        is_held(&self.metadata)
            && !matches!(self.judgement, Judgement::Service { .. } | Judgement::Endpoints { .. })
    }
}

impl Part<ServiceName, ServiceEntry> for Judged {
    fn key(&self) -> Option<ServiceName> {
        match &self.judgement {
            Judgement::Service { service, .. }
            | Judgement::Endpoints { service, .. }
            | Judgement::Refused { of: Some((_, service)), .. }
            | Judgement::Unread { of: Some((_, service)) } => Some(service.clone()),
            _ => None,
        }
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let record = self.name_any();
        let changed = match self.judgement {
            Judgement::Service { cluster, payload, .. } => {
                entry.confirmed_gone.remove(&cluster);
                let was_refused = entry.refused.remove(&cluster).is_some();
                entry.left_out.remove(&cluster);
                let offer = Offer { metadata: self.metadata, payload: *payload };
                let is_same = entry.offers.get(&cluster).is_some_and(|had| had.says_the_same(&offer));
                entry.offers.insert(cluster, Arc::new(offer));
                !is_same || was_refused
            }
            Judgement::Endpoints { cluster, payload, .. } => {
                let endpoints = Endpoints { metadata: self.metadata, payload };
                let is_same = entry.endpoints.get(&cluster).is_some_and(|had| had.says_the_same(&endpoints));
                entry.endpoints.insert(cluster, Arc::new(endpoints));
                !is_same
            }
            Judgement::Refused { of: Some((cluster, _)), .. }
            | Judgement::Unread { of: Some((cluster, _)) } => {
                entry.confirmed_gone.remove(&cluster);
                let was_offer = entry.offers.remove(&cluster).is_some();
                entry.refused.insert(cluster, record).is_none() || was_offer
            }
            _ => false,
        };
        MERGE.when(changed)
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        // A record that was withdrawn before it went did not just vanish.
        let gone = entry.offers.extract_if(.., |_, offer| offer.metadata.name.as_deref() == Some(name));
        let withdrawn: Vec<_> =
            gone.filter(|(_, offer)| offer.payload.withdrawn).map(|(cluster, _)| cluster).collect();
        entry.confirmed_gone.extend(withdrawn);
        entry.refused.retain(|_, record| record != name);
        entry.endpoints.retain(|_, endpoints| endpoints.metadata.name.as_deref() != Some(name));
        MERGE
    }
}
