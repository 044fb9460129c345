//! When an absence may be believed.
//!
//! What is said is believed at once; what merely vanishes is not: the CRDs, the Common Area or the whole hub may have been
//! deleted or restored. A record that is missing is gone only when its writer vouches for that: its Lease renewed after we
//! noticed, saying that its watches are open and it has nothing left to write of what has this key; then a consistent read has to
//! confirm it. A live writer puts a vanished record back long before.
//!
//! Watches deliver events independently: after a link was cut, the watch of Leases may deliver old renewals after the watch of records has
//! delivered newer deletions. So a renewal is ignored unless its resourceVersion is later than everything that the watches of records had
//! observed when the absence was noticed. If Leases have an etcd of their own, versions cannot be compared, and an absence may never be confirmed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Display,
    hash::Hash,
};

use api::unwritten::named;
use kit::{index::Shared, planted::Defect, watch::Latest};

use crate::{
    leases::{Heard, Leases, News},
    standing::Standing,
};

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
    feature: &'static str,
    leases: Shared<Leases>,
    latest: Latest,
    doubts: Shared<Doubts<K>>,
}

impl<K> Clone for Vouching<K> {
    fn clone(&self) -> Self {
        Self {
            feature: self.feature,
            leases: self.leases.clone(),
            latest: self.latest.clone(),
            doubts: self.doubts.clone(),
        }
    }
}

struct Doubts<K> {
    /// For each key and writer.
    open: HashMap<K, BTreeMap<String, Doubt>>,
    /// Keys that wait for a writer's word: for its first, or for that on its records of before a restore.
    waiting: HashMap<String, BTreeSet<K>>,
}

struct Doubt {
    since: Since,
    /// What is missing. When more goes missing, the count starts anew.
    missing: BTreeSet<String>,
}

/// State when a doubt was opened.
#[derive(Clone, Copy)]
struct Since {
    /// Number of renewals observed of the writer.
    renewals: u64,
    /// Latest version that the watches of records had observed; 0 if unknown.
    version: u64,
}

impl<K: Clone + Display + Eq + Hash + Ord> Vouching<K> {
    /// Nothing doubted, by the feature of this name: writers name what they have left to write by feature and key. `latest` is that of
    /// the watches of their records.
    pub fn new(feature: &'static str, leases: Shared<Leases>, latest: Latest) -> Self {
        let doubts = Doubts { open: HashMap::new(), waiting: HashMap::new() };
        Self { feature, leases, latest, doubts: Shared::new(doubts) }
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
            Some(heard) if heard.standing.is_some() => WriterState::Belongs,
            _ => WriterState::Unknown,
        })
    }

    /// Whether a writer renews its Lease.
    pub fn lives(&self, writer: &str) -> bool {
        self.leases.with(|leases| {
            leases.heard(writer).is_some_and(|heard| heard.standing == Some(Standing::Present))
        })
    }

    /// uid of a writer's Lease. While there is none, `key` is told when one comes.
    pub fn uid(&self, key: &K, writer: &str) -> Option<String> {
        let uid = || self.leases.with(|leases| leases.uid(writer));
        uid().or_else(|| {
            self.doubts.with(|doubts| doubts.wait_for(writer, key));
            // One that came meanwhile did not know of the key.
            uid()
        })
    }

    /// The Leases changed: the keys to reconcile for that.
    pub fn hear(&self, news: &News) -> BTreeSet<K> {
        self.doubts.with(|doubts| {
            let mut keys = BTreeSet::new();
            for (writer, settled) in &news.renewed {
                let is_settled = |key: &K| settled.is_about(&named(self.feature, key));
                keys.extend(doubts.renewed(writer, is_settled, &self.renewals(writer)));
                keys.extend(doubts.current(writer, |key| self.has_vouched(key, writer)));
            }
            news.turned.iter().for_each(|name| keys.extend(doubts.concerned(name)));
            keys
        })
    }

    /// Whether what `writer` says about `key` is true now. When the Common Area was restored, not before the writer has vouched
    /// for it; then `key` is told.
    pub fn is_current(&self, key: &K, writer: &str) -> bool {
        let is_current = self.has_vouched(key, writer);
        if !is_current {
            self.doubts.with(|doubts| doubts.wait_for(writer, key));
        }
        // A renewal that came meanwhile did not know of the key.
        is_current || self.has_vouched(key, writer)
    }

    fn has_vouched(&self, key: &K, writer: &str) -> bool {
        self.leases.with(|leases| leases.is_current(writer, &named(self.feature, key)))
    }

    /// What `writer` should have written about `key` is `missing` (names). Whether the writer has vouched for that since this
    /// was first said, or has left.
    pub fn doubt(&self, key: &K, writer: &str, missing: &BTreeSet<String>) -> bool {
        let heard = self.renewals(writer);
        let now = Since { renewals: heard.count, version: self.latest.version() };
        let since = self.doubts.with(|doubts| doubts.doubt(key, writer, missing, now));
        Defect::SkippedVouch.is_planted() || heard.left || heard.vouch_since(since)
    }

    /// What is missing turned out to be there, or about to be: it has to be vouched for anew.
    pub fn doubt_again(&self, key: &K, writer: &str) {
        let now = Since { renewals: self.renewals(writer).count, version: self.latest.version() };
        self.doubts.with(|doubts| {
            if let Some(doubt) = doubts.open.get_mut(key).and_then(|writers| writers.get_mut(writer)) {
                doubt.since = now;
            }
        });
    }

    /// `writer`'s word on `key` is not doubted any more.
    pub fn dispel(&self, key: &K, writer: &str) {
        self.doubts.with(|doubts| {
            if let Some(open) = doubts.open.get_mut(key) {
                open.remove(writer);
                if open.is_empty() {
                    doubts.open.remove(key);
                }
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

    fn renewals(&self, writer: &str) -> Renewals {
        let of = |heard: &Heard| Renewals {
            count: heard.renewals,
            version: heard.version,
            needed: heard.needed(),
            left: heard.left,
        };
        self.leases.with(|leases| leases.heard(writer).map(of).unwrap_or_default())
    }
}

/// What was heard of a writer.
#[derive(Default)]
struct Renewals {
    count: u64,
    /// resourceVersion of the last one.
    version: u64,
    /// So many vouch.
    needed: u64,
    left: bool,
}

impl Renewals {
    /// Whether it has vouched since so many were heard.
    fn vouch_since(&self, since: Since) -> bool {
        self.needed > 0 && since.renewals + self.needed <= self.count
    }

    /// Reports whether the last renewal may have been written before the doubt was opened.
    fn may_be_older(&self, since: Since) -> bool {
        since.version > 0 && self.version <= since.version
    }
}

impl<K: Clone + Eq + Hash + Ord> Doubts<K> {
    /// A writer has renewed its Lease. For what it has left to write the count starts anew: it may still be about to put records back.
    fn renewed(&mut self, lease: &str, is_settled: impl Fn(&K) -> bool, heard: &Renewals) -> BTreeSet<K> {
        let mut vouched = BTreeSet::new();
        for (key, writers) in &mut self.open {
            let Some(doubt) = writers.get_mut(lease) else { continue };
            if !is_settled(key) || heard.may_be_older(doubt.since) {
                doubt.since.renewals = heard.count;
            } else if heard.vouch_since(doubt.since) {
                vouched.insert(key.clone());
            }
        }
        vouched
    }

    fn wait_for(&mut self, lease: &str, key: &K) {
        self.waiting.entry(lease.to_owned()).or_default().insert(key.clone());
    }

    /// Keys that need not wait any more for the writer's word.
    fn current(&mut self, lease: &str, is_current: impl Fn(&K) -> bool) -> BTreeSet<K> {
        let Some(waiting) = self.waiting.get_mut(lease) else { return BTreeSet::new() };
        let current: BTreeSet<_> = waiting.extract_if(.., |key| is_current(key)).collect();
        if waiting.is_empty() {
            self.waiting.remove(lease);
        }
        current
    }

    /// Keys about which the writer's word is doubted.
    fn concerned(&self, lease: &str) -> BTreeSet<K> {
        let doubted = self.open.iter().filter(|(_, writers)| writers.contains_key(lease));
        let waiting = self.waiting.get(lease).into_iter().flatten().cloned();
        doubted.map(|(key, _)| key.clone()).chain(waiting).collect()
    }

    /// Opens a doubt, or keeps the one that is open; returns the state when it was opened. `now` is the present state.
    fn doubt(&mut self, key: &K, writer: &str, missing: &BTreeSet<String>, now: Since) -> Since {
        let writers = self.open.entry(key.clone()).or_default();
        let doubt = writers
            .entry(writer.to_owned())
            .or_insert_with(|| Doubt { since: now, missing: missing.clone() });
        if !missing.is_subset(&doubt.missing) {
            doubt.since = now;
        }
        doubt.missing.clone_from(missing);
        doubt.since
    }
}

#[cfg(test)]
mod tests;
