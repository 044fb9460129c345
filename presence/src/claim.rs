//! Which cluster an announce belongs to under a leader of Antrea's, where there are no Leases. Pure.
//!
//! An announce notes the uid of its cluster. A cluster that was rebuilt finds the announce of its predecessor, which nobody renews any more;
//! where two clusters use one ID, the other one renews it.

use std::time::{Duration, Instant};

use api::{antrea::TOUCHED, label::CLUSTER_UID, lease::STALE};
use kube::ResourceExt;

use crate::heartbeat::Announce;

/// Time between two looks at an announce that another cluster may renew.
pub const LOOK: Duration = Duration::from_secs(5);

/// What this cluster may do with an announce under its ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It notes this cluster or none, or a cluster that has not renewed it for [`STALE`].
    Ours,
    /// It notes another cluster, and was not observed for long enough to know whether that one runs.
    Unknown,
    /// The cluster with this uid renews it.
    Taken(String),
}

/// The other cluster that an announce notes, as far as it was observed.
#[derive(Debug, Default)]
pub struct Claim {
    rival: Option<Rival>,
}

#[derive(Debug)]
struct Rival {
    uid: String,
    /// The time in the announce, as it was written.
    touched: Option<String>,
    /// When the announce was first read with this time in it.
    since: Instant,
    has_renewed: bool,
}

impl Claim {
    /// Takes in what was read of the announce at `now`; `us` is the uid of this cluster.
    pub fn standing(&mut self, announce: &Announce, us: &str, now: Instant) -> Standing {
        let Some(uid) = noted_other(announce, us) else {
            self.rival = None;
            return Standing::Ours;
        };
        let touched = announce.annotations().get(TOUCHED).cloned();
        let before = self.rival.take().filter(|rival| rival.uid == uid);
        let rival = match before {
            Some(rival) if rival.touched == touched => rival,
            before => Rival { uid: uid.to_owned(), touched, since: now, has_renewed: before.is_some() },
        };
        let rival = self.rival.insert(rival);
        match now.saturating_duration_since(rival.since) {
            silent if silent >= STALE => Standing::Ours,
            _ if rival.has_renewed => Standing::Taken(rival.uid.clone()),
            _ => Standing::Unknown,
        }
    }
}

/// Returns the uid of the cluster that the announce notes, if that is another one than `us`.
pub fn noted_other<'a>(announce: &'a Announce, us: &str) -> Option<&'a str> {
    let uid = announce.annotations().get(CLUSTER_UID)?.as_str();
    (!uid.is_empty() && uid != us).then_some(uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn announce(uid: Option<&str>, touched: &str) -> Announce {
        let metadata =
            json!({"name": "a", "annotations": {CLUSTER_UID: uid.unwrap_or_default(), TOUCHED: touched}});
        serde_json::from_value(json!({"metadata": metadata, "clusterID": "east"})).unwrap()
    }

    fn standings(looks: &[(u64, Option<&str>, &str)]) -> Vec<Standing> {
        let (mut claim, start) = (Claim::default(), Instant::now());
        let look = |(at, uid, touched): &(u64, Option<&str>, &str)| {
            claim.standing(&announce(*uid, touched), "us", start + Duration::from_secs(*at))
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn an_announce_of_this_cluster_or_of_nobody_is_ours_at_once() {
        assert_eq!(standings(&[(0, Some("us"), "1")]), [Standing::Ours]);
        assert_eq!(standings(&[(0, None, "1")]), [Standing::Ours], "of an older member, or of Antrea's");
    }

    #[test]
    fn the_announce_of_a_cluster_that_was_rebuilt_is_ours_when_it_is_stale() {
        let looks = [0, 10, 20, 29, 30, 40].map(|at| (at, Some("them"), "1"));
        let seen = standings(&looks);
        let (early, late) = seen.split_at(4);
        assert!(early.iter().all(|standing| *standing == Standing::Unknown), "{early:?}");
        assert_eq!(late, [Standing::Ours, Standing::Ours]);
    }

    #[test]
    fn an_announce_that_another_cluster_renews_stays_its_own() {
        let taken = || Standing::Taken("them".into());
        let looks = [(0, "1"), (10, "2"), (20, "3"), (49, "3"), (50, "3")];
        let seen = standings(&looks.map(|(at, touched)| (at, Some("them"), touched)));
        assert_eq!(seen, [Standing::Unknown, taken(), taken(), taken(), Standing::Ours], "until it stops");
        let third = [(0, Some("them"), "1"), (20, Some("third"), "2"), (40, Some("third"), "2")];
        assert_eq!(standings(&third)[1..], [Standing::Unknown, Standing::Unknown], "each has its own time");
    }
}
