//! Services about which somebody has to decide though nothing fails.

use std::collections::BTreeSet;

use api::ServiceName;

/// Which they are.
#[derive(Debug, Default)]
pub(crate) struct Irregular {
    /// Imported, but somebody else made the ServiceImport.
    pub(crate) not_ours: BTreeSet<ServiceName>,
    /// Exported, though the ServiceExport is gone and nobody deleted it.
    pub(crate) vanished: BTreeSet<ServiceName>,
}

/// Takes in whether the Service is one of these.
pub(crate) fn note(these: &mut BTreeSet<ServiceName>, service: &ServiceName, is_one: bool) {
    if !is_one {
        these.remove(service);
    } else if !these.contains(service) {
        these.insert(service.clone());
    }
}
