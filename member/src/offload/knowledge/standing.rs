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

/// How it stands with another member by its Lease alone: with one that is waited for without a Lease, and with one that is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByLease {
    waited_for: Option<Standing>,
    other: Option<Standing>,
}

impl Knowledge {
    /// How it stands with another member; none of one that does not belong to the set, or if nothing is known of the set.
    /// A home or host of ours without a Lease still belongs to it for [`WITHOUT_LEASE`], as if it were not heard yet.
    pub(crate) fn standing(&self, cluster: &str, now: Instant) -> Option<Standing> {
        self.of(cluster, &self.by_lease(cluster, now))
    }

    fn by_lease(&self, cluster: &str, now: Instant) -> ByLease {
        let known = self.leases.as_ref().and_then(|leases| leases.with(|leases| leases.member(cluster)));
        let missed = || {
            let missing = self.missing_for(cluster, now)?;
            (missing < WITHOUT_LEASE).then_some(Standing::Unheard)
        };
        ByLease { waited_for: known.clone().or_else(missed), other: known }
    }

    /// What that means for this member, as we know it now.
    fn of(&self, cluster: &str, by_lease: &ByLease) -> Option<Standing> {
        let is_waited_for =
            || self.clusters.get(&cluster.to_owned()).is_some_and(|entry| is_waited_for(&entry));
        match by_lease {
            ByLease { waited_for, other } if waited_for == other => other.clone(),
            ByLease { waited_for, .. } if is_waited_for() => waited_for.clone(),
            ByLease { other, .. } => other.clone(),
        }
    }

    /// Takes in a change of what others want here: by that one without a Lease is waited for, or not any more.
    pub(crate) fn change_peer_maps(&self, change: Change<PeerMap>, now: Instant) {
        let waited_for = || {
            let all = self.all_clusters().into_iter().filter(|(_, entry)| is_waited_for(entry));
            all.map(|(cluster, _)| cluster).collect::<BTreeSet<_>>()
        };
        let before = waited_for();
        self.clusters.change(change);
        let matters = |cluster: &&String| {
            let ByLease { waited_for, other } = self.by_lease(cluster, now);
            waited_for != other
        };
        self.have_turned(before.symmetric_difference(&waited_for()).filter(matters));
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

    /// Leases were renewed or are gone: who depends on how it stands with a member that turned is asked again. By what else that can turn,
    /// its Node and its map, they are asked when it changes: so what was there when Leases were heard last does not matter.
    pub(crate) fn hear(&self, now: Instant) {
        // Of a cluster whose Lease was there before anything else of it, too.
        let members = self.leases.as_ref().map(|leases| leases.with(|leases| leases.members()));
        let ids = members.into_iter().flat_map(BTreeMap::into_keys).chain(self.clusters.keys());
        let ids: BTreeSet<_> = ids.collect();
        let now: BTreeMap<_, _> = ids.into_iter().map(|id| (id.clone(), self.by_lease(&id, now))).collect();
        let before = self.standings.with(|before| std::mem::replace(before, now.clone()));
        let all: BTreeSet<_> = before.keys().chain(now.keys()).collect();
        let of = |known: &BTreeMap<String, ByLease>, id: &String| {
            known.get(id).and_then(|by_lease| self.of(id, by_lease))
        };
        self.have_turned(all.into_iter().filter(|&id| of(&before, id) != of(&now, id)));
    }

    /// It stands otherwise with these members.
    fn have_turned<'a>(&self, members: impl Iterator<Item = &'a String>) {
        let known: Vec<_> = members.filter(|id| self.clusters.get(id).is_some()).cloned().collect();
        if !known.is_empty() {
            self.clusters.enqueue(known.into_iter().map(|id| (id, PEER.and(NODE).and(EXCHANGE))).collect());
            self.enqueue_offloaded(STATUS);
        }
    }
}

/// Whether it is a home or host of ours.
fn is_waited_for(entry: &ClusterEntry) -> bool {
    entry.node.is_some() || entry.map.is_some()
}

#[cfg(test)]
mod tests {
    use api::lease::Pace;
    use jiff::Timestamp;
    use kit::{drive::drive, index::Shared, metrics::Metrics, queue::Outcome};
    use presence::{heartbeat::Heartbeats, leases::Leases};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{identity::Identity, offload::view::VirtualNode};

    /// The clusters at whose Nodes somebody has to look.
    async fn to_look_at(known: &Knowledge) -> BTreeSet<String> {
        let (stop, seen) = (CancellationToken::new(), Shared::<BTreeSet<_>>::default());
        let look = |cluster| {
            seen.with(|seen| seen.insert(cluster));
            async { Ok(Outcome::Done) }
        };
        let driven = drive("test", known.clusters.queue(1), Metrics::new().unwrap(), stop.clone(), look);
        let until_idle = async {
            while !known.clusters.busy(NODE).is_empty() {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        };
        tokio::join!(driven, until_idle);
        seen.with(std::mem::take)
    }

    fn read<T: DeserializeOwned>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }

    fn node(version: u64) -> VirtualNode {
        read(
            json!({"metadata": {"name": "freeport-north", "uid": "n", "resourceVersion": version.to_string()}}),
        )
    }

    /// Each of these was found out at the next heartbeat only: it stood as when a Lease was heard last, but not as it was seen since.
    #[tokio::test]
    async fn who_saw_a_host_without_its_node_looks_again_when_it_is_waited_for_or_has_a_lease() {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let (now, north) = (Instant::now(), BTreeSet::from(["north".to_owned()]));
        let leases = Shared::new(Leases::new(Pace::default(), Heartbeats::default(), false));
        let known = Knowledge::new(us, "freeport".into(), Some(leases.clone()));
        let lease = |id: &str| {
            let spec = json!({"renewTime": "2026-01-01T00:00:00.000000Z", "holderIdentity": "u", "leaseDurationSeconds": 30});
            read(json!({"metadata": {"name": member_lease(id), "namespace": "area"}, "spec": spec}))
        };
        let heard = |change| {
            leases.with(|leases| leases.change(change, now, Timestamp::UNIX_EPOCH));
            known.hear(now);
        };
        let peer = json!({"metadata": {"name": "north"}, "spec": {"outgoing": {}}});
        known.change_peers(Change::Apply(read(peer)));
        known.change(Change::Apply(node(1)));
        heard(Change::Apply(lease("east")));
        assert_eq!(known.standing("north", now), Some(Standing::Unheard));
        known.change(Change::Remove(node(2)));
        assert_eq!((to_look_at(&known).await, known.standing("north", now)), (north.clone(), None));
        let spec = json!({"origin": "north", "destination": "west", "desiredMapping": {}});
        let map =
            json!({"metadata": {"name": "1.north.west", "namespace": "area", "uid": "m"}, "spec": spec});
        let map = || read(map.clone());
        known.change_peer_maps(Change::Apply(map()), now);
        let seen = (to_look_at(&known).await, known.standing("north", now));
        assert_eq!(seen, (north.clone(), Some(Standing::Unheard)));
        known.change_peer_maps(Change::Remove(map()), now);
        assert_eq!((to_look_at(&known).await, known.standing("north", now)), (north.clone(), None));

        known.change(Change::Apply(node(3)));
        known.hear(now);
        known.change(Change::Remove(node(4)));
        assert_eq!((to_look_at(&known).await, known.standing("north", now)), (north.clone(), None));
        heard(Change::Reset(vec![lease("east"), lease("north")]));
        let seen = (to_look_at(&known).await, known.standing("north", now));
        assert_eq!(seen, (north, Some(Standing::Unheard)));
    }
}
