//! How it stands with other members, by their Leases.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::name::member_lease;
use kit::objects::Change;
use presence::standing::Standing;

use super::Knowledge;
use crate::offload::{
    index::{ClusterEntry, EXCHANGE, NODE, PEER, STATUS},
    view::PeerMap,
};

/// For how long a member without a Lease is waited for. Where Leases merely vanished, as in a Common Area that was emptied or replaced,
/// members have theirs again in less.
pub(crate) const WITHOUT_LEASE: Duration = Duration::from_secs(60);

impl Knowledge {
    /// How it stands with another member; none of one that does not belong to the set, or if nothing is known of the set.
    /// A home or host of ours without a Lease still belongs to it for [`WITHOUT_LEASE`], as if it were not heard yet.
    pub(crate) fn standing(&self, cluster: &str, now: Instant) -> Option<Standing> {
        let known = self.leases.as_ref()?.with(|leases| leases.member(cluster));
        let is_missed = || {
            let entry = self.clusters.get(&cluster.to_owned())?;
            let missing = self.missing_for(cluster, now)?;
            ((entry.node.is_some() || entry.map.is_some()) && missing < WITHOUT_LEASE)
                .then_some(Standing::Unheard)
        };
        known.or_else(is_missed)
    }

    /// Takes in a change of what others want here: by that one without a Lease is waited for, or not any more.
    pub(crate) fn change_peer_maps(&self, change: Change<PeerMap>, now: Instant) {
        let homes = || {
            let homes = self.all_clusters().into_iter().filter(|(_, entry)| entry.map.is_some());
            homes.map(|(home, _)| home).collect::<Vec<_>>()
        };
        let before = homes();
        self.clusters.change(change);
        if before != homes() {
            self.hear(now);
        }
    }

    /// For how long a member has had no Lease; `None` while it has one, and while that is not known.
    pub(crate) fn missing_for(&self, cluster: &str, now: Instant) -> Option<Duration> {
        self.leases.as_ref()?.with(|leases| leases.missing_for(&member_lease(cluster), now))
    }

    /// Whether a cluster has left: it has said so itself, and has no Lease any more.
    pub(crate) fn has_left(&self, cluster: &str, entry: &ClusterEntry, now: Instant) -> bool {
        entry.has_left() && self.missing_for(cluster, now).is_some()
    }

    /// Whether the Common Area is heard.
    pub(crate) fn is_heard(&self, now: Instant) -> bool {
        self.leases.as_ref().is_some_and(|leases| leases.with(|leases| leases.is_heard(now)))
    }

    /// Leases were renewed or are gone: who depends on how it stands with a member that turned is asked again.
    pub(crate) fn hear(&self, now: Instant) {
        // Of a cluster whose Lease was there before anything else of it, too.
        let members = self.leases.as_ref().map(|leases| leases.with(|leases| leases.members()));
        let ids = members.into_iter().flat_map(BTreeMap::into_keys).chain(self.clusters.keys());
        let ids: BTreeSet<_> = ids.collect();
        let now: BTreeMap<_, _> =
            ids.into_iter().filter_map(|id| self.standing(&id, now).map(|standing| (id, standing))).collect();
        let before = self.standings.with(|before| std::mem::replace(before, now.clone()));
        let all: BTreeSet<_> = before.keys().chain(now.keys()).collect();
        let turned = all.into_iter().filter(|id| before.get(*id) != now.get(*id));
        let turned: Vec<_> = turned.filter(|id| self.clusters.get(id).is_some()).cloned().collect();
        if !turned.is_empty() {
            self.clusters.enqueue(turned.into_iter().map(|id| (id, PEER.and(NODE).and(EXCHANGE))).collect());
            self.enqueue_offloaded(STATUS);
        }
    }
}
