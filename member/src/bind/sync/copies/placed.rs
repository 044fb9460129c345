//! A list of what is at the provider, while it is read.

use std::sync::Arc;

use kit::{index::Shared, watch::Gather};

use super::{Copies, Raw};
use crate::bind::contract::Assigned;

/// What is kept of a list while it is read: nothing of what is at nobody's place, of which a provider may have any number.
pub(super) struct Placed {
    pub(super) copies: Copies,
    /// What was assigned when the list began.
    pub(super) assigned: Shared<Arc<Assigned>>,
    pub(super) kept: Vec<Raw>,
}

impl Gather<Raw> for Placed {
    fn begin(&mut self) {
        let now = self.copies.contract.all_assigned();
        self.assigned.with(|assigned| *assigned = now);
        self.kept.clear();
    }

    fn take(&mut self, object: Raw) {
        let assigned = self.assigned.with(|assigned| assigned.clone());
        if self.copies.place(&object, &assigned).is_some() {
            self.kept.push(object.lightened(&self.copies.contract.cluster_namespace.name));
        }
    }

    fn end(&mut self) -> Vec<Raw> {
        std::mem::take(&mut self.kept)
    }
}
