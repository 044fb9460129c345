//! What is kept of a list of objects of consumers while it is read: of each consumer's as many as are looked at, and of as many again that
//! they are there. Pure.

use std::collections::BTreeMap;

use kit::{quota::Gathering, watch::Gather};

use super::{Lean, Unread, Written};
use crate::bind::key::Key;

/// What was read so far.
pub(in crate::bind) struct Gathered<K> {
    /// What is looked at however many there are.
    staying: Vec<Lean<K>>,
    /// The others, by cluster namespace.
    others: BTreeMap<String, Gathering<Lean<K>>>,
    /// Those that cannot be read, by cluster namespace.
    odd: BTreeMap<String, Vec<Lean<K>>>,
}

impl<K> Default for Gathered<K> {
    fn default() -> Self {
        Self { staying: Vec::new(), others: BTreeMap::new(), odd: BTreeMap::new() }
    }
}

impl<K: Written> Gather<Lean<K>> for Gathered<K> {
    fn begin(&mut self) {
        self.staying.clear();
        self.others.clear();
        self.odd.clear();
    }

    fn take(&mut self, object: Lean<K>) {
        let of = Key::of(&object).cluster_namespace;
        match &object.object {
            Ok(content) if content.stays() => self.staying.push(object),
            Err(Unread::Odd(_)) => {
                let odd = self.odd.entry(of).or_default();
                // One more than are remembered, so that it is known that there are more.
                if odd.len() <= K::QUOTA.records {
                    odd.push(object);
                }
            }
            _ => self.others.entry(of).or_default().take(object, K::QUOTA),
        }
    }

    fn end(&mut self) -> Vec<Lean<K>> {
        let Self { staying, others, odd } = std::mem::take(self);
        let others = others.into_values().flat_map(Gathering::into_objects);
        staying.into_iter().chain(others).chain(odd.into_values().flatten()).collect()
    }
}
