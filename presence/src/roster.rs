//! Who takes part in a Common Area: what a ClusterSet says of its members and its leader, by their Leases.

use std::collections::BTreeMap;

use api::{
    cluster_set::READY,
    condition::{Status, Verdict},
    name,
};
use jiff::Timestamp;

use crate::leases::Leases;

/// How it stands with a member, or with the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its Lease was there when we started, and was not renewed since: what was known before stays.
    Unheard,
    /// It renews its Lease.
    Present,
    /// It does not renew its Lease.
    Silent {
        /// When it last did, by its own clock.
        since: Option<Timestamp>,
    },
}

impl Standing {
    /// What a ClusterSet says about such a member; `None` while nothing is known.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Standing::Unheard => None,
            Standing::Present => Some(Verdict::new(READY, Status::True, "Connected", "Member Connected")),
            Standing::Silent { since } => {
                let since = since.map_or_else(
                    || "it joined".to_owned(),
                    |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                );
                let message = format!("no renewal of its Lease since {since}");
                Some(Verdict::new(READY, Status::False, "Disconnected", message))
            }
        }
    }
}

impl Leases {
    /// The members that have not left, by cluster ID.
    pub fn members(&self) -> BTreeMap<String, Standing> {
        let members = self.standings().filter(|(_, heard)| !heard.left);
        members
            .filter_map(|(name, heard)| Some((member(name)?.to_owned(), heard.standing.clone()?)))
            .collect()
    }

    /// Whether there is a leader that has stopped renewing its Lease. A leader that is not Freeport's may have no Lease.
    pub fn leader_is_silent(&self) -> bool {
        let mut leader = self.standings().filter(|(name, _)| *name == name::LEADER_LEASE);
        leader.any(|(_, heard)| matches!(heard.standing, Some(Standing::Silent { .. })))
    }
}

/// ID of the member whose Lease has this name.
fn member(lease: &str) -> Option<&str> {
    let cluster = lease.strip_prefix(name::member_lease("").as_str())?;
    name::check_cluster_id(cluster).is_ok().then_some(cluster)
}
