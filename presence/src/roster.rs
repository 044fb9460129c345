//! Who takes part in a Common Area, by the table of Leases.

use std::collections::{BTreeMap, BTreeSet};

use api::name;
use jiff::Timestamp;

use crate::{leases::Leases, standing::Standing};

impl Leases {
    /// The members that have not left, by cluster ID.
    pub fn members(&self) -> BTreeMap<String, Standing> {
        let members = self.standings().filter(|(_, heard)| !heard.left);
        members
            .filter_map(|(name, heard)| {
                Some((name::member_of_lease(name)?.to_owned(), heard.standing.clone()?))
            })
            .collect()
    }

    /// Members that do not renew their Leases any more and have not left, and when each last did, by its own clock; and those of which that is
    /// not known yet.
    pub fn silent(&self) -> (BTreeMap<String, Option<Timestamp>>, BTreeSet<String>) {
        let (mut silent, mut unheard) = (BTreeMap::new(), BTreeSet::new());
        for (name, heard) in self.standings().filter(|(_, heard)| !heard.left) {
            let Some(cluster) = name::member_of_lease(name) else { continue };
            match heard.standing {
                Some(Standing::Silent { since }) => drop(silent.insert(cluster.to_owned(), since)),
                Some(Standing::Unheard) => drop(unheard.insert(cluster.to_owned())),
                Some(Standing::Present) | None => {}
            }
        }
        (silent, unheard)
    }

    /// How it stands with a member that has not left; none without a Lease.
    pub fn member(&self, cluster: &str) -> Option<Standing> {
        let heard = self.heard(&name::member_lease(cluster)).filter(|heard| !heard.left);
        heard?.standing.clone().filter(|_| name::check_cluster_id(cluster).is_ok())
    }

    /// Whether there is a leader that has stopped renewing its Lease. A leader that is not Freeport's may have no Lease.
    pub fn leader_is_silent(&self) -> bool {
        let mut leader = self.standings().filter(|(name, _)| *name == name::LEADER_LEASE);
        leader.any(|(_, heard)| matches!(heard.standing, Some(Standing::Silent { .. })))
    }
}
