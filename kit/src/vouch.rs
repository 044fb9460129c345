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

use crate::{
    index::Change,
    lease::{LeaseView, Settled},
};

/// Renewals to wait for. The first may have been on its way when the record vanished; before the second a live writer has
/// had a whole period to notice and put the record back.
const RENEWALS: u64 = 2;

/// After a restore, a writer that has seen everything for so many renewals has put right what it can, though it goes on
/// writing: a single record that is refused again and again must not keep all its others out of date.
const LONG_ENOUGH: u64 = 6;

/// What is doubted, and what the writers' Leases have said since. Writers are named by their Leases.
pub struct Vouching<K> {
    leases: HashMap<String, Heard>,
    /// For each key and writer.
    doubts: HashMap<K, BTreeMap<String, Doubt>>,
    /// The Common Area was restored from a backup: what a writer says there is of then, until it has vouched for it.
    restored: bool,
    /// Keys that wait for a writer's word on its records of before the restore.
    outdated: HashMap<String, BTreeSet<K>>,
}

struct Doubt {
    /// Number of renewals heard from the writer when the doubt came up.
    since: u64,
    /// What is missing. When more goes missing, the count starts anew.
    missing: BTreeSet<String>,
}

#[derive(Default)]
struct Heard {
    uid: Option<String>,
    renewed_at: Option<String>,
    /// Settled ones.
    renewals: u64,
    /// Those of a writer that sees everything.
    seeing: u64,
    left: bool,
}

impl Heard {
    /// Whether what the writer says is of now, if it was out of date when it was first heard.
    fn is_current(&self) -> bool {
        self.left || self.renewals >= RENEWALS || self.seeing >= LONG_ENOUGH
    }
}

/// What a writer's Lease says of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no Lease.
    Unknown,
    /// It belongs to the set; whether it is alive is another matter.
    Belongs,
    /// It was removed from the set for good: nobody waits for its word.
    Left,
}

impl<K> Default for Vouching<K> {
    fn default() -> Self {
        Self::new(false)
    }
}

impl<K> Vouching<K> {
    /// Nothing doubted, nothing heard. `restored`: the Common Area was just restored from a backup.
    pub fn new(restored: bool) -> Self {
        Self { leases: HashMap::new(), doubts: HashMap::new(), restored, outdated: HashMap::new() }
    }

    /// Whether the Common Area was restored from a backup while it was watched.
    pub fn is_restored(&self) -> bool {
        self.restored
    }

    /// Number of keys about which something is doubted.
    pub fn doubted(&self) -> usize {
        self.doubts.len()
    }

    /// How it stands with a writer.
    pub fn standing(&self, writer: &str) -> Standing {
        match self.leases.get(writer) {
            Some(heard) if heard.left => Standing::Left,
            Some(heard) if heard.uid.is_some() => Standing::Belongs,
            _ => Standing::Unknown,
        }
    }

    /// uid of a writer's Lease.
    pub fn uid(&self, writer: &str) -> Option<String> {
        self.leases.get(writer)?.uid.clone()
    }
}

impl<K: Clone + Eq + Hash + Ord> Vouching<K> {
    /// Takes in what a watch of Leases told; the keys that are now worth a look.
    pub fn change(&mut self, change: Change<LeaseView>) -> BTreeSet<K> {
        match change {
            Change::Apply(lease) => self.see(&lease),
            Change::Remove(lease) => self.lose(&lease.name_any()),
            Change::Reset(leases) => {
                let there: BTreeSet<_> = leases.iter().map(ResourceExt::name_any).collect();
                let lost: Vec<_> =
                    self.leases.keys().filter(|name| !there.contains(*name)).cloned().collect();
                let lost: Vec<_> = lost.iter().flat_map(|name| self.lose(name)).collect();
                leases.iter().flat_map(|lease| self.see(lease)).chain(lost).collect()
            }
        }
    }

    fn see(&mut self, lease: &LeaseView) -> BTreeSet<K> {
        let name = lease.name_any();
        let heard = self.leases.entry(name.clone()).or_default();
        heard.uid = lease.uid();
        let left = lease.has_left();
        let news = std::mem::replace(&mut heard.left, left) != left;
        let mut keys = self.hear(&name, lease.renewed_at(), lease.settled());
        if news {
            keys.extend(self.concerned(&name));
        }
        keys
    }

    fn lose(&mut self, lease: &str) -> BTreeSet<K> {
        let was_there = self.leases.get_mut(lease).is_some_and(|heard| heard.uid.take().is_some());
        if was_there { self.concerned(lease) } else { BTreeSet::new() }
    }

    /// Keys about which the writer's word is doubted.
    fn concerned(&self, lease: &str) -> BTreeSet<K> {
        let doubted = self.doubts.iter().filter(|(_, writers)| writers.contains_key(lease));
        doubted
            .map(|(key, _)| key.clone())
            .chain(self.outdated.get(lease).into_iter().flatten().cloned())
            .collect()
    }

    /// A writer's Lease says `renewed_at`, and how settled it is. The keys whose doubts are now worth a look.
    ///
    /// An unsettled renewal starts the count anew: its writer may still be about to put records back.
    fn hear(&mut self, lease: &str, renewed_at: Option<String>, settled: Settled) -> BTreeSet<K> {
        let heard = self.leases.entry(lease.to_owned()).or_default();
        let first = heard.renewed_at.is_none();
        if heard.renewed_at == renewed_at {
            return BTreeSet::new();
        }
        heard.renewed_at = renewed_at;
        heard.seeing += u64::from(!first && settled != Settled::No);
        heard.renewals += u64::from(!first && settled == Settled::Yes);
        let (renewals, is_current) = (heard.renewals, heard.is_current());
        let mut vouched = BTreeSet::new();
        for (key, writers) in &mut self.doubts {
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

    /// Whether what `writer` says about `key` is of now. Not before it has vouched for it, when the Common Area was restored:
    /// a live writer has had the time then to put its records right.
    pub fn is_current(&mut self, key: &K, writer: &str) -> bool {
        if !self.restored || self.leases.get(writer).is_some_and(Heard::is_current) {
            return true;
        }
        self.outdated.entry(writer.to_owned()).or_default().insert(key.clone());
        false
    }

    /// What `writer` should have written about `key` is `missing` (names). Whether the writer has vouched for that since this
    /// was first said, or has left.
    pub fn doubt(&mut self, key: &K, writer: &str, missing: &BTreeSet<String>) -> bool {
        let heard = self.leases.get(writer);
        let (renewals, left) = heard.map_or((0, false), |heard| (heard.renewals, heard.left));
        let doubts = self.doubts.entry(key.clone()).or_default();
        let doubt = doubts
            .entry(writer.to_owned())
            .or_insert_with(|| Doubt { since: renewals, missing: missing.clone() });
        if !missing.is_subset(&doubt.missing) {
            doubt.since = renewals;
        }
        doubt.missing.clone_from(missing);
        left || doubt.since + RENEWALS <= renewals
    }

    /// What is missing turned out to be there, or about to be: it has to be vouched for anew.
    pub fn doubt_again(&mut self, key: &K, writer: &str) {
        let renewals = self.leases.get(writer).map_or(0, |heard| heard.renewals);
        if let Some(doubt) = self.doubts.get_mut(key).and_then(|doubts| doubts.get_mut(writer)) {
            doubt.since = renewals;
        }
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
mod tests;
