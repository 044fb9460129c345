//! Heartbeats of members that run Antrea's controllers: such a member has no Lease; it writes the time into its
//! MemberClusterAnnounce every ten seconds. Here that is told as the Lease it stands for, so that nobody else has to know.
//!
//! The Lease it stands for says that its holder has nothing left to write, although Antrea's member never says so and does not
//! put back a record that vanished. A vanished record is believed to be gone on its word all the same, because its finalizer
//! keeps it until the leader has seen that it is being deleted. One that is gone without that was released by somebody by
//! hand. After a backup was restored, records and imports are of the same moment. What remains is that nobody answers
//! for a member that does not live: so its heartbeat is waited for, as another's renewal is.
//!
//! A leader of Antrea's says nothing at all. There our own heartbeat stands for the leader's Lease too: that it went through and came
//! back to us by the watch means that the API server serves the Common Area, and that it is the one which has our announce.

use std::collections::BTreeMap;

use api::{
    announce::MemberClusterAnnounce,
    antrea::{Members, TOUCHED},
    label,
    lease::LeaseView,
    name,
    view::{Lenient, annotated},
};
use jiff::Timestamp;
use kit::objects::Change;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

/// A MemberClusterAnnounce as it is watched.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = MemberClusterAnnounce)]
pub struct Announce {
    #[serde(deserialize_with = "annotated")]
    metadata: ObjectMeta,
    #[serde(rename = "clusterID", default)]
    cluster_id: Lenient<Option<String>>,
}

impl Announce {
    /// Who is announced, if its name agrees.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster_id
            .0
            .as_ref()
            .ok()?
            .as_deref()
            .filter(|cluster| self.name_any() == name::announce(cluster))
    }

    /// The Lease that it stands for, if one of these members wrote it.
    fn lease(&self, members: &Members) -> Option<LeaseView> {
        let cluster = self.cluster().filter(|cluster| members.contains(cluster))?;
        Some(self.stands_for(name::member_lease(cluster), self.uid()))
    }

    fn stands_for(&self, lease: String, uid: Option<String>) -> LeaseView {
        let resource_version = self.resource_version();
        let metadata = ObjectMeta { name: Some(lease), uid, resource_version, ..ObjectMeta::default() };
        LeaseView::stand_in(metadata, self.touched())
    }

    fn touched(&self) -> Option<Timestamp> {
        self.annotations().get(TOUCHED)?.parse().ok()
    }
}

/// The Leases that heartbeats stand for, by name.
#[derive(Default)]
pub struct Heartbeats {
    members: Members,
    /// Our cluster ID, where the leader is Antrea's.
    us: Option<String>,
    leases: BTreeMap<String, LeaseView>,
}

impl Heartbeats {
    /// Of these members.
    pub fn new(members: Members) -> Self {
        Self { members, us: None, leases: BTreeMap::new() }
    }

    /// Of everyone, under a leader of Antrea's; that of `us` stands for the leader's too.
    pub fn under_antrea(us: String) -> Self {
        Self { us: Some(us), ..Self::new(Members::everyone()) }
    }

    /// The Leases that an announce stands for.
    fn stands_for(&self, announce: &Announce) -> Vec<LeaseView> {
        let own = announce.lease(&self.members);
        let leads = own.is_some() && announce.cluster() == self.us.as_deref();
        let hub = announce.uid().map(|uid| format!("{}{uid}", label::HUB_OF_ANTREA));
        let leader = leads.then(|| announce.stands_for(name::LEADER_LEASE.into(), hub));
        own.into_iter().chain(leader).collect()
    }

    /// Takes in what a watch of announces told; what a watch of Leases would have told.
    pub(crate) fn change(&mut self, change: Change<Announce>) -> Vec<Change<LeaseView>> {
        let (heard, lost) = match change {
            Change::Apply(announce) => (self.stands_for(&announce), vec![]),
            Change::Remove(announce) => (vec![], self.stands_for(&announce)),
            Change::Reset(announces) => {
                let heard: Vec<_> = announces.iter().flat_map(|announce| self.stands_for(announce)).collect();
                let is_there = |name: &String| heard.iter().any(|lease| lease.name_any() == *name);
                let lost = self.leases.iter().filter(|(name, _)| !is_there(name));
                let lost = lost.map(|(_, lease)| lease.clone()).collect();
                (heard, lost)
            }
        };
        self.leases.retain(|name, _| !lost.iter().any(|lease: &LeaseView| lease.name_any() == *name));
        self.leases.extend(heard.iter().map(|lease| (lease.name_any(), lease.clone())));
        lost.into_iter().map(Change::Remove).chain(heard.into_iter().map(Change::Apply)).collect()
    }

    /// Whether a heartbeat stands for this Lease.
    pub(crate) fn stand_for(&self, lease: &str) -> bool {
        self.leases.contains_key(lease)
    }

    /// What a watch of Leases told, together with those that heartbeats stand for: a list of Leases does not name them, and a
    /// Lease that such a member once had says nothing any more.
    pub(crate) fn among(&self, change: Change<LeaseView>) -> Option<Change<LeaseView>> {
        let is_another = |lease: &LeaseView| !self.stand_for(&lease.name_any());
        match change {
            Change::Reset(leases) => {
                let others = leases.into_iter().filter(is_another);
                Some(Change::Reset(others.chain(self.leases.values().cloned()).collect()))
            }
            Change::Apply(lease) => is_another(&lease).then_some(Change::Apply(lease)),
            Change::Remove(lease) => is_another(&lease).then_some(Change::Remove(lease)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use api::lease::Settled;

    fn announce(cluster: &str, touched: &str) -> Announce {
        serde_json::from_value(json!({
            "metadata": {"name": name::announce(cluster), "uid": "u", "annotations": {TOUCHED: touched}},
            "clusterID": cluster, "clusterSetID": "demo", "leaderClusterID": "leader",
        }))
        .unwrap()
    }

    fn told(changes: Vec<Change<LeaseView>>) -> Vec<(&'static str, String)> {
        let one = |change: Change<LeaseView>| match change {
            Change::Apply(lease) => ("apply", lease.name_any()),
            Change::Remove(lease) => ("remove", lease.name_any()),
            Change::Reset(_) => ("reset", String::new()),
        };
        changes.into_iter().map(one).collect()
    }

    proptest! {
        #[test]
        fn a1_no_announce_stops_a_list(id in odd::anything(&["clusterID"]), all in odd::anything(&["a"])) {
            let odd = json!({"clusterID": id, "clusterSetID": all, "leaderClusterID": all});
            for announce in odd::list::<Announce>(&odd).unwrap() {
                let _ = (announce.cluster(), announce.touched());
            }
        }
    }

    #[test]
    fn a_heartbeat_is_a_renewal() {
        let mut heartbeats = Heartbeats::new(Members::named("north"));
        let changes = heartbeats.change(Change::Apply(announce("north", "2026-11-01T12:00:00Z")));
        let [Change::Apply(lease)] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((lease.name_any().as_str(), lease.settled()), ("freeport-member-north", Settled::Yes));
        assert_eq!(lease.renew_time(), Some("2026-11-01T12:00:00Z".parse().unwrap()));
        let unmarked = heartbeats.change(Change::Apply(announce("east", "2026-11-01T12:00:00Z")));
        assert!(unmarked.is_empty(), "its Lease tells");
    }

    #[test]
    fn under_an_antrea_leader_ours_stands_for_the_leader() {
        let mut heartbeats = Heartbeats::under_antrea("east".into());
        let t = "2026-11-01T12:00:00Z";
        let changes = heartbeats.change(Change::Reset(vec![announce("north", t), announce("east", t)]));
        let hub = changes.iter().find_map(|change| match change {
            Change::Apply(lease) if lease.name_any() == name::LEADER_LEASE => lease.uid(),
            _ => None,
        });
        assert_eq!(hub.as_deref(), Some("antrea/u"), "another announce is another hub");
        assert_eq!(told(changes).len(), 3);
        let changes = told(heartbeats.change(Change::Remove(announce("north", t))));
        assert_eq!(changes, [("remove", "freeport-member-north".to_owned())]);
    }

    #[test]
    fn a_list_of_either_loses_nothing_of_the_other() {
        let mut heartbeats = Heartbeats::new(Members::named("north,south"));
        let t = "2026-11-01T12:00:00Z";
        let changes = heartbeats.change(Change::Reset(vec![announce("north", t), announce("south", t)]));
        assert_eq!(changes.len(), 2);
        let lease = |name: &str| {
            LeaseView::stand_in(ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }, None)
        };
        let listed = vec![lease("freeport-leader"), lease("freeport-member-north")];
        let Some(Change::Reset(leases)) = heartbeats.among(Change::Reset(listed)) else { panic!() };
        let names: Vec<_> = leases.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["freeport-leader", "freeport-member-north", "freeport-member-south"]);
        assert!(heartbeats.among(Change::Remove(lease("freeport-member-north"))).is_none());

        let changes = heartbeats.change(Change::Reset(vec![announce("south", t)]));
        let want = [("remove", "freeport-member-north"), ("apply", "freeport-member-south")];
        assert_eq!(told(changes), want.map(|(what, name)| (what, name.to_owned())));
    }
}
