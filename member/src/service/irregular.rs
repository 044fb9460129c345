//! Services about which somebody has to decide though nothing fails.

use std::collections::{BTreeMap, BTreeSet};

use api::ServiceName;

use super::copies::Copies;

/// Which they are.
#[derive(Debug, Default)]
pub(crate) struct Irregular {
    /// Imported, but somebody else made the ServiceImport.
    pub(crate) not_ours: BTreeSet<ServiceName>,
    /// Imported, but not ready here: what it consists of is refused, or its name is taken, or it has no address family of this cluster.
    pub(crate) not_ready: BTreeSet<ServiceName>,
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

/// Takes in whether the Service is one of these.
pub(crate) fn note(these: &mut BTreeSet<ServiceName>, service: &ServiceName, is_one: bool) {
    if !is_one {
        these.remove(service);
    } else if !these.contains(service) {
        these.insert(service.clone());
    }
}
