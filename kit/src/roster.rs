//! Who is there: the members and the leader of a Common Area, by what is heard of their Leases. Pure: our own clock comes in as an argument.
//!
//! Silence counts only as long as something is heard: our own Lease, renewed every ten seconds, comes by the same watch. A watch
//! that is deaf makes nobody absent, and when it hears again everybody gets the time anew. So a look at the roster is due
//! whenever a Lease is heard, and at no other time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::{
    cluster_set::READY,
    condition::{Status, Verdict},
    name,
};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    index::Change,
    lease::{LeaseView, STALE},
};

/// What the Leases of a Common Area say about who is there.
#[derive(Default)]
pub struct Roster {
    /// By the names of their Leases: the members, and the leader.
    holders: BTreeMap<String, Heard>,
    /// When any Lease was heard last.
    last: Option<Instant>,
}

struct Heard {
    renewed: Option<Timestamp>,
    left: bool,
    /// Since when we have not heard it.
    since: Instant,
    standing: Standing,
}

/// How it stands with one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its Lease was there when we came, and nothing was heard of it yet: what was known before stands.
    Unheard,
    /// It renews its Lease.
    Present,
    /// It does not.
    Silent {
        /// When it last did, as it wrote it.
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

impl Roster {
    /// Takes in what a watch of Leases told.
    pub fn change(&mut self, change: &Change<LeaseView>, now: Instant) {
        match change {
            Change::Apply(lease) => self.hear(lease, now, Standing::Present),
            Change::Remove(lease) => {
                self.time(now);
                self.holders.remove(&lease.name_any());
            }
            Change::Reset(leases) => {
                let there: BTreeSet<_> = leases.iter().map(ResourceExt::name_any).collect();
                self.holders.retain(|name, _| there.contains(name));
                leases.iter().for_each(|lease| self.hear(lease, now, Standing::Unheard));
            }
        }
    }

    /// A Lease of which nothing was known is `new`.
    fn hear(&mut self, lease: &LeaseView, now: Instant, new: Standing) {
        self.time(now);
        let (name, renewed, left) = (lease.name_any(), lease.renew_time(), lease.has_left());
        match self.holders.get_mut(&name) {
            Some(heard) if heard.renewed == renewed => heard.left = left,
            Some(heard) => *heard = Heard { renewed, left, since: now, standing: Standing::Present },
            None => drop(self.holders.insert(name, Heard { renewed, left, since: now, standing: new })),
        }
    }

    /// It is `now`, and something was heard.
    fn time(&mut self, now: Instant) {
        let passed = |since: Instant| now.saturating_duration_since(since) >= STALE;
        let was_deaf = self.last.replace(now).is_some_and(passed);
        for heard in self.holders.values_mut() {
            if was_deaf {
                heard.since = now;
            } else if passed(heard.since) {
                heard.standing = Standing::Silent { since: heard.renewed };
            }
        }
    }

    /// The members that have not left, by cluster ID.
    pub fn members(&self) -> BTreeMap<String, Standing> {
        let there = self.holders.iter().filter(|(_, heard)| !heard.left);
        there.filter_map(|(name, heard)| Some((member(name)?.to_owned(), heard.standing.clone()))).collect()
    }

    /// Whether a leader is there that has stopped renewing its Lease. Another's leader may have none.
    pub fn leader_is_silent(&self) -> bool {
        let leader = self.holders.get(name::LEADER_LEASE);
        leader.is_some_and(|heard| matches!(heard.standing, Standing::Silent { .. }))
    }
}

/// ID of the member whose Lease has this name.
fn member(lease: &str) -> Option<&str> {
    let cluster = lease.strip_prefix(name::member_lease("").as_str())?;
    name::check_cluster_id(cluster).is_ok().then_some(cluster)
}

/// How far the leader's clock is from ours, as far as it matters.
#[derive(Default)]
pub struct Skew {
    last: Option<(Instant, i64)>,
    /// Seconds the leader's clock is ahead.
    said: Option<i64>,
}

/// Certificates, tokens and the order of exports by age tolerate less than this.
const TOLERATED: i64 = 30;
/// A difference changes what is said only if it is larger.
const NOTABLE: i64 = 10;

impl Skew {
    /// The leader's Lease was renewed at `renewed` by its own clock, and we heard of it `live`, not in a list. Seconds by which
    /// its clock is ahead of ours, if that is too much.
    ///
    /// A renewal that comes late, as after a pause of the watch, looks like skew: only two apart that agree are believed.
    pub fn hear(&mut self, renewed: Timestamp, live: bool, now: Instant, clock: Timestamp) -> Option<i64> {
        if !live {
            self.last = None;
            return self.said;
        }
        let ahead = renewed.as_second() - clock.as_second();
        let apart = |at: Instant| now.saturating_duration_since(at) >= Duration::from_secs(5);
        if let Some((_, before)) = self.last.filter(|(at, _)| apart(*at))
            && (ahead - before).abs() < NOTABLE
        {
            let differs = self.said.is_none_or(|said| (said - ahead).abs() >= NOTABLE);
            self.said = if ahead.abs() <= TOLERATED {
                None
            } else if differs {
                Some(ahead)
            } else {
                self.said
            };
        }
        self.last = Some((now, ahead));
        self.said
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(cluster: &str, second: u32) -> LeaseView {
        serde_json::from_value(json!({
            "metadata": {"name": name::member_lease(cluster)},
            "spec": {"renewTime": format!("2026-01-01T00:00:{second:02}.000000Z")},
        }))
        .unwrap()
    }

    fn of(roster: &Roster, cluster: &str) -> Standing {
        roster.members()[cluster].clone()
    }

    #[test]
    fn who_is_silent_while_others_are_heard_is_gone() {
        let (mut roster, t) = (Roster::default(), Instant::now());
        let at = |seconds| t + Duration::from_secs(seconds);
        roster.change(&Change::Reset(vec![lease("east", 0), lease("west", 0)]), t);
        assert_eq!(of(&roster, "east"), Standing::Unheard, "the Lease as we found it is no renewal");
        for second in [10, 20, 30] {
            roster.change(&Change::Apply(lease("east", second)), at(u64::from(second)));
        }
        assert_eq!(of(&roster, "east"), Standing::Present);
        let since = Some("2026-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(of(&roster, "west"), Standing::Silent { since });
        roster.change(&Change::Apply(lease("west", 35)), at(35));
        assert_eq!(of(&roster, "west"), Standing::Present);
        roster.change(&Change::Apply(lease("north", 36)), at(36));
        assert_eq!(of(&roster, "north"), Standing::Present, "it has just come");
        roster.change(&Change::Remove(lease("north", 36)), at(37));
        assert!(!roster.members().contains_key("north"));
    }

    #[test]
    fn a_leader_that_stops_renewing_is_silent_and_one_without_a_lease_is_not() {
        let (mut roster, t) = (Roster::default(), Instant::now());
        let leader = |second: u32| {
            let time = format!("2026-01-01T00:00:{second:02}.000000Z");
            let lease = json!({"metadata": {"name": name::LEADER_LEASE}, "spec": {"renewTime": time}});
            Change::Apply(serde_json::from_value::<LeaseView>(lease).unwrap())
        };
        for second in [0, 10, 20, 30] {
            roster.change(&Change::Apply(lease("east", second)), t + Duration::from_secs(second.into()));
        }
        assert!(!roster.leader_is_silent() && roster.members().len() == 1);
        roster.change(&leader(0), t + Duration::from_secs(31));
        roster.change(&Change::Apply(lease("east", 40)), t + Duration::from_secs(40));
        assert!(!roster.leader_is_silent());
        roster.change(&Change::Apply(lease("east", 50)), t + Duration::from_secs(62));
        assert!(roster.leader_is_silent());
        roster.change(&leader(50), t + Duration::from_secs(63));
        assert!(!roster.leader_is_silent());
    }

    #[test]
    fn a_deaf_watch_makes_nobody_absent() {
        let (mut roster, t) = (Roster::default(), Instant::now());
        let at = |seconds| t + Duration::from_secs(seconds);
        roster.change(&Change::Reset(vec![lease("east", 0), lease("west", 0)]), t);
        roster.change(&Change::Apply(lease("east", 1)), at(1));
        roster.change(&Change::Apply(lease("west", 1)), at(1));
        roster.change(&Change::Apply(lease("east", 40)), at(600));
        assert_eq!(of(&roster, "west"), Standing::Present);
        roster.change(&Change::Apply(lease("east", 50)), at(629));
        assert_eq!(of(&roster, "west"), Standing::Present);
        roster.change(&Change::Reset(vec![lease("east", 55), lease("west", 1)]), at(630));
        assert!(matches!(of(&roster, "west"), Standing::Silent { .. }));
    }

    #[test]
    fn who_left_and_who_is_no_member_does_not_count() {
        let (mut roster, t) = (Roster::default(), Instant::now());
        let mut left = lease("east", 0);
        left.annotations_mut().insert(api::label::LEFT.into(), api::label::TRUE.into());
        let other = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        roster.change(&Change::Reset(vec![left, other("freeport-leader"), other("freeport-member-")]), t);
        assert!(roster.members().is_empty());
    }

    #[test]
    fn skew_is_believed_when_two_live_renewals_agree() {
        let (mut skew, t) = (Skew::default(), Instant::now());
        let clock = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let mut hear = |second: u64, ahead: i64, live: bool| {
            let ours = clock(i64::try_from(second).unwrap());
            skew.hear(
                clock(i64::try_from(second).unwrap() + ahead),
                live,
                t + Duration::from_secs(second),
                ours,
            )
        };
        assert_eq!(hear(0, -300, false), None, "in the first list: an old renewal");
        assert_eq!(hear(10, 45, true), None);
        assert_eq!(hear(20, 46, true), Some(46));
        assert_eq!(hear(30, 44, true), Some(46), "much the same");
        assert_eq!(hear(40, -60, true), Some(46), "one that came late");
        assert_eq!(hear(50, 2, true), Some(46));
        assert_eq!(hear(60, 2, true), None);
    }
}
