//! Shows each write to the monitor of invariants.

use std::sync::Arc;

use super::{
    State,
    store::{GroupResource, Key, Object},
};
use crate::invariant::{Author, Monitor, Write};

/// The monitor of a cluster's writes.
pub(super) struct Witness {
    pub(super) cluster: String,
    pub(super) monitor: Arc<Monitor>,
}

impl State {
    /// Shows that an object was written: none before it was created, none after it was deleted.
    pub(super) fn witness(
        &self,
        plural: &str,
        key: &Key,
        before: Option<&Arc<Object>>,
        after: Option<&Arc<Object>>,
        author: &Author,
    ) {
        let Some(Witness { cluster, monitor }) = &self.witness else { return };
        monitor.see(&Write {
            at: monitor.now(),
            cluster,
            kind: plural,
            namespace: &key.0,
            name: &key.1,
            before: before.map(|object| &object.value),
            after: after.map(|object| &object.value),
            author,
        });
    }

    /// Stores what another server does, and shows what differs.
    pub(super) fn become_another(&mut self, other: Self) {
        let witness = self.witness.take();
        let old = std::mem::replace(self, other);
        self.witness = witness;
        for (resource, key, before) in old.everything() {
            let after = self.get(&resource.0, &resource.1, key);
            if after.is_none_or(|after| !Arc::ptr_eq(after, before)) {
                self.witness(&resource.1, key, Some(before), after, &Author::Restore);
            }
        }
        for (resource, key, after) in self.everything() {
            if old.get(&resource.0, &resource.1, key).is_none() {
                self.witness(&resource.1, key, None, Some(after), &Author::Restore);
            }
        }
    }

    fn everything(&self) -> impl Iterator<Item = (&GroupResource, &Key, &Arc<Object>)> {
        self.collections
            .iter()
            .flat_map(|(resource, all)| all.objects.iter().map(move |(key, object)| (resource, key, object)))
    }
}
