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

use kube::ResourceExt;

use crate::{index::Change, lease::LeaseView};

/// Renewals to wait for. The first may have been on its way when the record vanished; before the second a live writer has
/// had a whole period to notice and put the record back.
const RENEWALS: u64 = 2;

/// What is doubted, and what the writers' Leases have said since. Writers are named by their Leases.
pub struct Vouching<K> {
    leases: HashMap<String, Heard>,
    /// For each key and writer: number of renewals heard from the writer when the doubt came up.
    doubts: HashMap<K, BTreeMap<String, u64>>,
}

#[derive(Default)]
struct Heard {
    renewed_at: Option<String>,
    renewals: u64,
}

impl<K> Default for Vouching<K> {
    fn default() -> Self {
        Self { leases: HashMap::new(), doubts: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Ord> Vouching<K> {
    /// Takes in what a watch of Leases told; the keys whose doubts are now worth a look.
    pub fn change(&mut self, change: Change<LeaseView>) -> BTreeSet<K> {
        let leases = match change {
            Change::Apply(lease) => vec![lease],
            Change::Remove(_) => vec![],
            Change::Reset(leases) => leases,
        };
        leases.iter().flat_map(|l| self.hear(&l.name_any(), l.renewed_at(), l.is_settled())).collect()
    }

    /// A writer's Lease says `renewed_at`, and whether it is settled. The keys whose doubts are now worth a look.
    ///
    /// An unsettled renewal starts the count anew: its writer may still be about to put records back.
    fn hear(&mut self, lease: &str, renewed_at: Option<String>, settled: bool) -> BTreeSet<K> {
        let heard = self.leases.entry(lease.to_owned()).or_default();
        let first = heard.renewed_at.is_none();
        if heard.renewed_at == renewed_at {
            return BTreeSet::new();
        }
        heard.renewed_at = renewed_at;
        if settled && !first {
            heard.renewals += 1;
        }
        let renewals = heard.renewals;
        let mut vouched = BTreeSet::new();
        for (key, writers) in &mut self.doubts {
            let Some(since) = writers.get_mut(lease) else {
                continue;
            };
            if !settled {
                *since = renewals;
            } else if *since + RENEWALS <= renewals {
                vouched.insert(key.clone());
            }
        }
        vouched
    }

    /// Something `writer` should have written about `key` is missing. Whether the writer has vouched for that since this
    /// was first said.
    pub fn doubt(&mut self, key: &K, writer: &str) -> bool {
        let renewals = self.leases.get(writer).map_or(0, |heard| heard.renewals);
        let doubts = self.doubts.entry(key.clone()).or_default();
        let since = doubts.entry(writer.to_owned()).or_insert(renewals);
        *since + RENEWALS <= renewals
    }

    /// Only these writers' word on `key` is still doubted.
    pub fn keep(&mut self, key: &K, writers: &BTreeSet<String>) {
        if let Some(doubts) = self.doubts.get_mut(key) {
            doubts.retain(|writer, _| writers.contains(writer));
            if doubts.is_empty() {
                self.doubts.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u32) -> Option<String> {
        Some(format!("2026-01-01T00:00:{second:02}Z"))
    }

    #[test]
    fn two_settled_renewals_after_the_doubt_vouch() {
        let mut v = Vouching::default();
        v.hear("east", at(0), true);
        v.hear("east", at(10), true);
        assert!(!v.doubt(&"web", "east"));
        assert!(v.hear("east", at(10), true).is_empty(), "the same renewal told twice");
        assert!(v.hear("east", at(20), true).is_empty());
        assert!(!v.doubt(&"web", "east"), "one is not enough");
        assert_eq!(v.hear("east", at(30), true), ["web"].into());
        assert!(v.doubt(&"web", "east"));
        v.keep(&"web", &BTreeSet::new());
        assert!(!v.doubt(&"web", "east"), "a new doubt starts anew");
    }

    #[test]
    fn a_silent_or_unsettled_writer_vouches_for_nothing() {
        let mut v = Vouching::default();
        assert!(!v.doubt(&"web", "east"));
        assert!(v.hear("east", at(0), true).is_empty(), "the Lease as we found it is no renewal");
        v.hear("east", at(10), true);
        v.hear("east", at(20), false);
        v.hear("east", at(30), true);
        assert!(!v.doubt(&"web", "east"), "unsettled in between");
        v.hear("west", at(40), true);
        v.hear("west", at(50), true);
        v.hear("west", at(55), true);
        assert!(!v.doubt(&"web", "east"), "another's word");
        assert!(v.hear("east", at(40), true).contains("web"));
    }
}
