//! Clusters that have left and leave something behind: pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// How often it is looked for what is left behind, in times of a Lease.
pub(crate) const EVERY: u32 = 2;
/// For how many times of a Lease a cluster has to have none.
pub(crate) const PATIENCE: u32 = 4;

/// Clusters that records are of and that have no Lease.
pub(crate) struct Absent {
    /// For so long they have to have none. In a Common Area that was emptied a cluster has one again in less; one that is merely silent
    /// keeps its own.
    patience: Duration,
    /// By ID, when that was noticed.
    since: BTreeMap<String, Instant>,
}

impl Absent {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, since: BTreeMap::new() }
    }

    /// These clusters have no Lease now, and no others.
    pub(crate) fn look<'a>(&mut self, absent: impl Iterator<Item = &'a str>, now: Instant) {
        let absent: BTreeSet<_> = absent.map(str::to_owned).collect();
        self.since.retain(|id, _| absent.contains(id));
        for id in absent {
            self.since.entry(id).or_insert(now);
        }
    }

    /// It is not known who has a Lease: what was noticed means nothing.
    pub(crate) fn forget(&mut self) {
        self.since.clear();
    }

    /// Whether the cluster has had no Lease for long.
    pub(crate) fn has_left(&self, id: &str, now: Instant) -> bool {
        self.since.get(id).is_some_and(|since| now.saturating_duration_since(*since) >= self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_left_when_it_had_no_lease_for_long_and_nobody_looked_away() {
        let (mut absent, start) = (Absent::new(Duration::from_secs(300)), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        absent.look(["west"].into_iter(), at(0));
        absent.look(["west", "east"].into_iter(), at(200));
        assert!(!absent.has_left("west", at(299)) && absent.has_left("west", at(300)));
        assert!(!absent.has_left("east", at(300)));
        absent.look(["east"].into_iter(), at(310));
        absent.look(["west", "east"].into_iter(), at(320));
        assert!(!absent.has_left("west", at(600)), "it was back meanwhile");
        assert!(absent.has_left("east", at(600)));
        absent.forget();
        assert!(!absent.has_left("east", at(900)));
    }
}
