//! When an absence may be believed.
//!
//! What is said is believed at once; what merely vanishes is not: the CRDs, the Common Area or the whole hub may have been
//! deleted or restored. A record that is missing is gone only when its writer vouches for that: its Lease renewed after we
//! noticed, saying that its watches are open and it has nothing left to write; then a consistent read has to confirm it.
//! A live writer puts a vanished record back long before.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
};

use api::lease::Settled;
use kit::index::Shared;

use crate::leases::{Leases, News, RENEWALS};

/// What a writer's Lease says of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterState {
    /// There is no Lease.
    Unknown,
    /// It belongs to the set; whether it is alive is another matter.
    Belongs,
    /// It was removed from the set for good: nobody waits for its word.
    Left,
}

/// What one feature doubts, and the Leases of those who can vouch for it. Writers are named by their Leases. Cloning shares it.
pub struct Vouching<K> {
    leases: Shared<Leases>,
    doubts: Shared<Doubts<K>>,
}

impl<K> Clone for Vouching<K> {
    fn clone(&self) -> Self {
        Self { leases: self.leases.clone(), doubts: self.doubts.clone() }
    }
}

struct Doubts<K> {
    /// For each key and writer.
    open: HashMap<K, BTreeMap<String, Doubt>>,
    /// Keys that wait for a writer's word on its records of before a restore.
    outdated: HashMap<String, BTreeSet<K>>,
}

struct Doubt {
    /// Number of renewals heard from the writer when the doubt came up.
    since: u64,
    /// What is missing. When more goes missing, the count starts anew.
    missing: BTreeSet<String>,
}

impl<K: Clone + Eq + Hash + Ord> Vouching<K> {
    /// Nothing doubted.
    pub fn new(leases: Shared<Leases>) -> Self {
        Self { leases, doubts: Shared::new(Doubts { open: HashMap::new(), outdated: HashMap::new() }) }
    }

    /// Whether the Common Area was restored from a backup while it was watched.
    pub fn is_restored(&self) -> bool {
        self.leases.with(|leases| leases.is_restored())
    }

    /// Number of keys about which something is doubted.
    pub fn doubted(&self) -> usize {
        self.doubts.with(|doubts| doubts.open.len())
    }

    /// How it stands with a writer.
    pub fn state(&self, writer: &str) -> WriterState {
        self.leases.with(|leases| match leases.heard(writer) {
            Some(heard) if heard.left => WriterState::Left,
            Some(_) if leases.uid(writer).is_some() => WriterState::Belongs,
            _ => WriterState::Unknown,
        })
    }

    /// uid of a writer's Lease.
    pub fn uid(&self, writer: &str) -> Option<String> {
        self.leases.with(|leases| leases.uid(writer))
    }

    /// The Leases changed: the keys to reconcile for that.
    pub fn hear(&self, news: &News) -> BTreeSet<K> {
        let facts = |name: &String| {
            self.leases.with(|leases| {
                (leases.heard(name).map_or(0, |heard| heard.renewals), leases.is_current(name))
            })
        };
        let renewed: Vec<_> =
            news.renewed.iter().map(|(name, settled)| (name, *settled, facts(name))).collect();
        self.doubts.with(|doubts| {
            let renewed = renewed.into_iter().flat_map(|(name, settled, (renewals, is_current))| {
                doubts.renewed(name, settled, renewals, is_current)
            });
            let mut keys: BTreeSet<K> = renewed.collect();
            news.turned.iter().for_each(|name| keys.extend(doubts.concerned(name)));
            keys
        })
    }

    /// Whether what `writer` says about `key` is true now. When the Common Area was restored, not before the writer has vouched
    /// for it; then `key` is told.
    pub fn is_current(&self, key: &K, writer: &str) -> bool {
        let is_current = self.leases.with(|leases| leases.is_current(writer));
        if !is_current {
            self.doubts.with(|doubts| {
                doubts.outdated.entry(writer.to_owned()).or_default().insert(key.clone());
            });
        }
        // A renewal that came meanwhile did not know of the key.
        is_current || self.leases.with(|leases| leases.is_current(writer))
    }

    /// What `writer` should have written about `key` is `missing` (names). Whether the writer has vouched for that since this
    /// was first said, or has left.
    pub fn doubt(&self, key: &K, writer: &str, missing: &BTreeSet<String>) -> bool {
        let (renewals, left) = self.renewals(writer);
        let since = self.doubts.with(|doubts| doubts.doubt(key, writer, missing, renewals));
        left || since + RENEWALS <= renewals
    }

    /// What is missing turned out to be there, or about to be: it has to be vouched for anew.
    pub fn doubt_again(&self, key: &K, writer: &str) {
        let (renewals, _) = self.renewals(writer);
        self.doubts.with(|doubts| {
            if let Some(doubt) = doubts.open.get_mut(key).and_then(|writers| writers.get_mut(writer)) {
                doubt.since = renewals;
            }
        });
    }

    /// Only these writers' word on `key` is still doubted.
    pub fn keep(&self, key: &K, writers: &BTreeSet<String>) {
        self.doubts.with(|doubts| {
            if let Some(open) = doubts.open.get_mut(key) {
                open.retain(|writer, _| writers.contains(writer));
                if open.is_empty() {
                    doubts.open.remove(key);
                }
            }
        });
    }

    fn renewals(&self, writer: &str) -> (u64, bool) {
        self.leases
            .with(|leases| leases.heard(writer).map_or((0, false), |heard| (heard.renewals, heard.left)))
    }
}

impl<K: Clone + Eq + Hash + Ord> Doubts<K> {
    /// A writer has renewed its Lease. An unsettled renewal starts the count anew: its writer may still be about to put records
    /// back.
    fn renewed(&mut self, lease: &str, settled: Settled, renewals: u64, is_current: bool) -> BTreeSet<K> {
        let mut vouched = BTreeSet::new();
        for (key, writers) in &mut self.open {
            let Some(doubt) = writers.get_mut(lease) else { continue };
            if settled != Settled::Yes {
                doubt.since = renewals;
            } else if doubt.since + RENEWALS <= renewals {
                vouched.insert(key.clone());
            }
        }
        if is_current {
            vouched.extend(self.outdated.remove(lease).unwrap_or_default());
        }
        vouched
    }

    /// Keys about which the writer's word is doubted.
    fn concerned(&self, lease: &str) -> BTreeSet<K> {
        let doubted = self.open.iter().filter(|(_, writers)| writers.contains_key(lease));
        let outdated = self.outdated.get(lease).into_iter().flatten().cloned();
        doubted.map(|(key, _)| key.clone()).chain(outdated).collect()
    }

    /// The number of renewals when this was first doubted.
    fn doubt(&mut self, key: &K, writer: &str, missing: &BTreeSet<String>, renewals: u64) -> u64 {
        let writers = self.open.entry(key.clone()).or_default();
        let doubt = writers
            .entry(writer.to_owned())
            .or_insert_with(|| Doubt { since: renewals, missing: missing.clone() });
        if !missing.is_subset(&doubt.missing) {
            doubt.since = renewals;
        }
        doubt.missing.clone_from(missing);
        doubt.since
    }
}

#[cfg(test)]
mod tests;
