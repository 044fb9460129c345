//! Being there: this member's announce in the Common Area, and what its Leases say of the others.

pub mod heartbeat;

use std::time::Instant;

use api::{
    announce::{MemberClusterAnnounce, MemberClusterAnnounceFields},
    name,
};
use jiff::Timestamp;
use kit::{
    index::Change,
    lease::LeaseView,
    roster::{Roster, Skew},
    write::{Error, Writer},
};
use kube::{Api, Client, ResourceExt};

use crate::service::export::Identity;

/// What is heard of others by their Leases.
#[derive(Default)]
pub struct Heard {
    /// Which members are there.
    pub roster: Roster,
    /// Seconds by which the leader's clock is ahead of ours, if that is too much.
    pub skew: Option<i64>,
    leader: Skew,
}

impl Heard {
    /// Takes in what the watch of Leases told at `now`, `clock` by the wall.
    pub fn change(&mut self, change: &Change<LeaseView>, now: Instant, clock: Timestamp) {
        let (leases, live) = match change {
            Change::Apply(lease) => (std::slice::from_ref(lease), true),
            Change::Reset(leases) => (leases.as_slice(), false),
            Change::Remove(_) => (&[][..], true),
        };
        let leader = leases.iter().find(|lease| lease.name_any() == name::LEADER_LEASE);
        if let Some(renewed) = leader.and_then(LeaseView::renew_time) {
            self.skew = self.leader.hear(renewed, live, now, clock);
        }
        self.roster.change(change, now);
    }
}

/// Introduces this member in the Common Area, if it has not been introduced like this before.
pub async fn announce(
    us: &Identity,
    cluster_set: &str,
    leader: Option<&str>,
    client: &Client,
    writer: &Writer,
) -> Result<(), Error> {
    let announces = Api::<MemberClusterAnnounce>::namespaced(client.clone(), &us.common_area);
    let have = announces.get_opt(&name::announce(&us.cluster)).await;
    let have = have.map_err(|error| Error::Unreachable(Box::new(error)))?;
    // A note does not say who leads; what is announced already stands then.
    let said = have.as_ref().and_then(|announce| announce.spec.leader_cluster_id.clone());
    let fields = MemberClusterAnnounceFields {
        cluster_id: Some(us.cluster.clone()),
        cluster_set_id: Some(cluster_set.to_owned()),
        leader_cluster_id: leader.map(str::to_owned).or(said),
    };
    let mut want = MemberClusterAnnounce::new(&name::announce(&us.cluster), fields);
    want.metadata.namespace = Some(us.common_area.clone());
    writer.put(have.as_ref(), &want).await.map(drop)
}
