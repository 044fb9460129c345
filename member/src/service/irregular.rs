//! Services about which somebody has to decide though nothing fails.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    condition::{Status, Verdict},
};

use super::copies::Copies;

/// Why an import is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotReady {
    /// One CamelCase word.
    pub(crate) reason: String,
    /// A sentence.
    pub(crate) message: String,
}

impl NotReady {
    /// Puts the parts together.
    pub(crate) fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }

    /// What condition `Ready` of the ServiceImport says; none if it is ready.
    pub(crate) fn of(ready: &Verdict) -> Option<Self> {
        (ready.status != Status::True).then(|| Self::new(&ready.reason, &ready.message))
    }
}

/// Which they are.
#[derive(Debug, Default)]
pub(crate) struct Irregular {
    /// Imported, but somebody else made the ServiceImport.
    pub(crate) not_ours: BTreeSet<ServiceName>,
    /// Imported, but not ready here: what it consists of is refused, or its name is taken, or it has no address family of this cluster.
    pub(crate) not_ready: BTreeMap<ServiceName, NotReady>,
    /// Exported, though the ServiceExport is gone and nobody deleted it.
    pub(crate) vanished: BTreeSet<ServiceName>,
    /// Imported without some addresses, which endpoints of that cluster must not have here; how many.
    pub(crate) left_out: BTreeMap<ServiceName, BTreeMap<String, usize>>,
    /// Copies of what imports consist of.
    pub(crate) copies: Copies,
}

impl Irregular {
    /// Takes in what is left out of an import; whether that is news.
    pub(crate) fn leave_out(&mut self, service: &ServiceName, now: BTreeMap<String, usize>) -> bool {
        if self.left_out.get(service).map_or(now.is_empty(), |before| *before == now) {
            return false;
        }
        self.left_out.remove(service);
        if !now.is_empty() {
            self.left_out.insert(service.clone(), now);
        }
        true
    }

    /// How many addresses are left out.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out.values().flat_map(BTreeMap::values).sum()
    }
}

/// Takes in why the import of the Service is not ready; none if it is, or if there is none.
pub(crate) fn note_why(
    these: &mut BTreeMap<ServiceName, NotReady>,
    service: &ServiceName,
    why: Option<NotReady>,
) {
    match why {
        Some(why) => drop(these.insert(service.clone(), why)),
        None => drop(these.remove(service)),
    }
}

/// Takes in whether the Service is one of these.
pub(crate) fn note(these: &mut BTreeSet<ServiceName>, service: &ServiceName, is_one: bool) {
    if !is_one {
        these.remove(service);
    } else if !these.contains(service) {
        these.insert(service.clone());
    }
}
