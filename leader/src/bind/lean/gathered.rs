//! What is kept of a list of objects of consumers while it is read: of each consumer's as many as are looked at, and of as many again that
//! they are there. Pure.

use std::collections::BTreeMap;

use kit::{quota::Gathering, watch::Gather};

use super::{Lean, Unread, Unsaid, Written};
use crate::bind::key::Key;

/// What was read so far.
pub(in crate::bind) struct Gathered<K> {
    /// What is looked at however many there are.
    staying: Vec<Lean<K>>,
    /// The others, by cluster namespace.
    others: BTreeMap<String, Gathering<Lean<K>>>,
    unsaid: Unsaid,
}

impl<K> Default for Gathered<K> {
    fn default() -> Self {
        Self { staying: Vec::new(), others: BTreeMap::new(), unsaid: Unsaid::default() }
    }
}

impl<K: Written> Gather<Lean<K>> for Gathered<K> {
    fn begin(&mut self) {
        self.staying.clear();
        self.others.clear();
    }

    fn take(&mut self, object: Lean<K>) {
        match &object.object {
            Err(why @ Unread::Odd(_)) => self.unsaid.say(&Key::of(&object), why),
            Ok(content) if content.stays() => self.staying.push(object),
            _ => {
                let of = Key::of(&object).cluster_namespace;
                self.others.entry(of).or_default().take(object, K::QUOTA);
            }
        }
    }

    fn end(&mut self) -> Vec<Lean<K>> {
        let (staying, others) = (std::mem::take(&mut self.staying), std::mem::take(&mut self.others));
        staying.into_iter().chain(others.into_values().flat_map(Gathering::into_objects)).collect()
    }
}
