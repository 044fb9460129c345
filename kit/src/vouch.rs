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
    /// For each key and writer.
    doubts: HashMap<K, BTreeMap<String, Doubt>>,
}

struct Doubt {
    /// Number of renewals heard from the writer when the doubt came up.
    since: u64,
    /// What is missing. When more goes missing, the count starts anew.
    missing: BTreeSet<String>,
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
            let Some(doubt) = writers.get_mut(lease) else { continue };
            if !settled {
                doubt.since = renewals;
            } else if doubt.since + RENEWALS <= renewals {
                vouched.insert(key.clone());
            }
        }
        vouched
    }

    /// What `writer` should have written about `key` is `missing` (names). Whether the writer has vouched for that since this
    /// was first said.
    pub fn doubt(&mut self, key: &K, writer: &str, missing: &BTreeSet<String>) -> bool {
        let renewals = self.leases.get(writer).map_or(0, |heard| heard.renewals);
        let doubts = self.doubts.entry(key.clone()).or_default();
        let doubt = doubts
            .entry(writer.to_owned())
            .or_insert_with(|| Doubt { since: renewals, missing: missing.clone() });
        if !missing.is_subset(&doubt.missing) {
            doubt.since = renewals;
        }
        doubt.missing.clone_from(missing);
        doubt.since + RENEWALS <= renewals
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

    /// Doubts east's word on these slices of web.
    fn doubt(vouching: &mut Vouching<&'static str>, missing: &[&str]) -> bool {
        vouching.doubt(&"web", "east", &missing.iter().map(|name| (*name).to_owned()).collect())
    }

    fn at(second: u32) -> Option<String> {
        Some(format!("2026-01-01T00:00:{second:02}Z"))
    }

    #[test]
    fn two_settled_renewals_after_the_doubt_vouch() {
        let mut v = Vouching::default();
        v.hear("east", at(0), true);
        v.hear("east", at(10), true);
        assert!(!doubt(&mut v, &["web-1"]));
        assert!(v.hear("east", at(10), true).is_empty(), "the same renewal told twice");
        assert!(v.hear("east", at(20), true).is_empty());
        assert!(!doubt(&mut v, &["web-1"]), "one is not enough");
        assert_eq!(v.hear("east", at(30), true), ["web"].into());
        assert!(doubt(&mut v, &["web-1"]));
        assert!(!doubt(&mut v, &["web-1", "web-2"]), "more is missing: it starts anew");
        v.hear("east", at(40), true);
        v.hear("east", at(50), true);
        assert!(doubt(&mut v, &["web-2"]), "less is missing");
        v.keep(&"web", &BTreeSet::new());
        assert!(!doubt(&mut v, &["web-1"]), "a new doubt starts anew");
    }

    #[test]
    fn a_silent_or_unsettled_writer_vouches_for_nothing() {
        let mut v = Vouching::default();
        assert!(!doubt(&mut v, &["web-1"]));
        assert!(v.hear("east", at(0), true).is_empty(), "the Lease as we found it is no renewal");
        v.hear("east", at(10), true);
        v.hear("east", at(20), false);
        v.hear("east", at(30), true);
        assert!(!doubt(&mut v, &["web-1"]), "unsettled in between");
        v.hear("west", at(40), true);
        v.hear("west", at(50), true);
        v.hear("west", at(55), true);
        assert!(!doubt(&mut v, &["web-1"]), "another's word");
        assert!(v.hear("east", at(40), true).contains("web"));
    }
}
