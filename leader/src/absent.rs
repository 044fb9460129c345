//! Clusters that have left and leave records behind: when a cluster counts as such a one, and how a record is deleted.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use kit::{
    drive::before,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};
use presence::standing::Standing;
use tokio_util::sync::CancellationToken;

use crate::feature::Access;

/// How long the leader waits between two looks, in lives of a Lease.
const EVERY: u32 = 2;
/// How long a cluster must have no Lease, in lives of one. In a Common Area that was emptied a member has a Lease again in less; the Lease of
/// a member that is merely silent stays.
const PATIENCE: u32 = 4;

/// Clusters that have records and no Lease.
pub(crate) struct Absent {
    /// Life of a Lease.
    lease: Duration,
    /// By ID, when the Lease was first missing.
    since: BTreeMap<String, Instant>,
}

impl Absent {
    /// Takes the life of a Lease.
    pub(crate) fn new(lease: Duration) -> Self {
        Self { lease, since: BTreeMap::new() }
    }

    /// Waits for the next look; returns the members that have a Lease then, or nothing if `stop` came first. A time in which Leases are not
    /// observed proves nothing: what was noticed before it is forgotten.
    pub(crate) async fn next_look(
        &mut self,
        access: &Access,
        stop: &CancellationToken,
    ) -> Option<BTreeMap<String, Standing>> {
        while before(stop, tokio::time::sleep(self.lease * EVERY)).await {
            let now = Instant::now();
            let members = access.leases.with(|leases| leases.is_heard(now).then(|| leases.members()));
            if members.is_some() {
                return members;
            }
            self.since.clear();
        }
        None
    }

    /// Notes the clusters that have no Lease now, and no others.
    pub(crate) fn look<'a>(&mut self, absent: impl Iterator<Item = &'a str>, now: Instant) {
        let absent: BTreeSet<_> = absent.map(str::to_owned).collect();
        self.since.retain(|id, _| absent.contains(id));
        for id in absent {
            self.since.entry(id).or_insert(now);
        }
    }

    /// Reports whether the cluster has had no Lease for long.
    pub(crate) fn has_left(&self, id: &str, now: Instant) -> bool {
        let patience = self.lease * PATIENCE;
        self.since.get(id).is_some_and(|since| now.saturating_duration_since(*since) >= patience)
    }
}

/// Deletes a record of a cluster that has left, as it was read. If somebody wrote it since, the next look decides.
///
/// # Errors
/// Of the API server.
pub(crate) async fn end<K: Resource<DynamicType = ()>>(writer: &Writer, record: &K) -> Result<(), Error> {
    match writer.delete(record, true).await {
        Ok(()) => {
            let (kind, record) = (K::kind(&()), record.name_any());
            tracing::info!(%kind, record, "the cluster of this record has left: deleted");
            Ok(())
        }
        Err(Error::Stale | Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_left_when_it_had_no_lease_for_long_without_interruption() {
        let (mut absent, start) = (Absent::new(Duration::from_secs(75)), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        absent.look(["west"].into_iter(), at(0));
        absent.look(["west", "east"].into_iter(), at(200));
        assert!(!absent.has_left("west", at(299)) && absent.has_left("west", at(300)));
        assert!(!absent.has_left("east", at(300)));
        absent.look(["east"].into_iter(), at(310));
        absent.look(["west", "east"].into_iter(), at(320));
        assert!(!absent.has_left("west", at(600)), "it had a Lease meanwhile");
        assert!(absent.has_left("east", at(600)));
    }
}
