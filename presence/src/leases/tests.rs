use std::time::Duration;

use api::{
    label,
    lease::digest::{self, Digest},
    name,
};
use serde_json::json;

use super::*;

fn leases() -> Leases {
    Leases::new(Pace::default(), Heartbeats::default(), false)
}

fn hear(leases: &mut Leases, change: Change<LeaseView>, now: Instant) -> News {
    leases.change(change, now, Timestamp::UNIX_EPOCH)
}

fn lease(cluster: &str, second: u32) -> LeaseView {
    serde_json::from_value(json!({
        "metadata": {"name": name::member_lease(cluster)},
        "spec": {"renewTime": format!("2026-01-01T00:00:{second:02}.000000Z")},
    }))
    .unwrap()
}

fn of(leases: &Leases, cluster: &str) -> Standing {
    leases.members()[cluster].clone()
}

#[test]
fn who_is_silent_while_others_are_heard_is_gone() {
    let (mut leases, t) = (leases(), Instant::now());
    let at = |seconds| t + Duration::from_secs(seconds);
    hear(&mut leases, Change::Reset(vec![lease("east", 0), lease("west", 0)]), t);
    assert_eq!(of(&leases, "east"), Standing::Unheard, "the Lease as we found it is no renewal");
    for second in [10, 20, 30] {
        hear(&mut leases, Change::Apply(lease("east", second)), at(u64::from(second)));
    }
    assert_eq!(of(&leases, "east"), Standing::Present);
    let since = Some("2026-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(of(&leases, "west"), Standing::Silent { since });
    hear(&mut leases, Change::Apply(lease("west", 35)), at(35));
    assert_eq!(of(&leases, "west"), Standing::Present);
    hear(&mut leases, Change::Apply(lease("north", 36)), at(36));
    assert_eq!(of(&leases, "north"), Standing::Present, "it has just come");
    hear(&mut leases, Change::Remove(lease("north", 36)), at(37));
    assert!(!leases.members().contains_key("north"));
}

#[test]
fn who_is_silent_but_answers_another_member_is_known_by_the_word_of_one_that_is_not() {
    let (mut leases, t) = (leases(), Instant::now());
    let says = |cluster: &str, second: u32, answering: &[&str], said: u32| {
        let mut view = lease(cluster, second);
        let at = lease(cluster, said).renew_time().unwrap();
        let said = api::lease::answering(answering.iter().map(|of| (*of).to_owned()), at);
        view.annotations_mut().insert(label::ANSWERING.to_owned(), said);
        view
    };
    let answering = |leases: &Leases| {
        let (now, perhaps) = leases.answering();
        (Vec::from_iter(now).join(" "), Vec::from_iter(perhaps).join(" "))
    };
    let both = &["west", "south"];
    let reset = vec![says("east", 0, both, 0), says("north", 0, &[], 0), says("west", 0, &["north"], 0)];
    hear(&mut leases, Change::Reset(reset), t);
    assert_eq!(answering(&leases), (String::new(), "north south west".to_owned()), "as they were found");
    for second in [10, 20, 30] {
        hear(&mut leases, Change::Apply(lease("north", second)), t + Duration::from_secs(second.into()));
    }
    assert_eq!(answering(&leases), Default::default(), "these are silent, too");
    let mut renewed = |second, these: &[&str], said| {
        let at = t + Duration::from_secs(u64::from(second));
        hear(&mut leases, Change::Apply(says("east", second, these, said)), at);
        answering(&leases).0
    };
    assert_eq!(renewed(31, both, 31), "south west");
    assert_eq!(renewed(41, both, 31), "", "an older daemon renewed it");
    assert_eq!(renewed(42, both, 42), "south west");
    assert_eq!(renewed(52, &[], 52), "");
}

#[test]
fn a_lease_is_missing_since_it_went_or_since_others_are_heard() {
    let (mut leases, t) = (leases(), Instant::now());
    let at = |seconds| t + Duration::from_secs(seconds);
    let missing = |leases: &Leases, cluster: &str, second: u64| {
        leases.missing_for(&name::member_lease(cluster), at(second)).map(|missing| missing.as_secs())
    };
    assert_eq!(missing(&leases, "north", 0), None, "nothing is heard");
    hear(&mut leases, Change::Reset(vec![lease("east", 0), lease("west", 0)]), t);
    assert_eq!((missing(&leases, "north", 5), missing(&leases, "west", 5)), (Some(5), None));
    hear(&mut leases, Change::Remove(lease("west", 0)), at(10));
    assert_eq!((missing(&leases, "north", 12), missing(&leases, "west", 12)), (Some(12), Some(2)));
    assert_eq!(missing(&leases, "west", 500), None, "we are deaf");
    hear(&mut leases, Change::Apply(lease("east", 20)), at(600));
    assert_eq!(missing(&leases, "west", 605), Some(5), "we were deaf");
    hear(&mut leases, Change::Apply(lease("west", 21)), at(606));
    assert_eq!(missing(&leases, "west", 607), None);
}

#[test]
fn a_leader_that_stops_renewing_is_silent_and_one_without_a_lease_is_not() {
    let (mut leases, t) = (leases(), Instant::now());
    let leader = |second: u32| {
        let time = format!("2026-01-01T00:00:{second:02}.000000Z");
        let lease = json!({"metadata": {"name": name::LEADER_LEASE}, "spec": {"renewTime": time}});
        Change::Apply(serde_json::from_value::<LeaseView>(lease).unwrap())
    };
    for second in [0, 10, 20, 30] {
        hear(&mut leases, Change::Apply(lease("east", second)), t + Duration::from_secs(second.into()));
    }
    assert!(!leases.leader_is_silent() && leases.members().len() == 1);
    hear(&mut leases, leader(0), t + Duration::from_secs(31));
    hear(&mut leases, Change::Apply(lease("east", 40)), t + Duration::from_secs(40));
    assert!(!leases.leader_is_silent());
    hear(&mut leases, Change::Apply(lease("east", 50)), t + Duration::from_secs(62));
    assert!(leases.leader_is_silent());
    hear(&mut leases, leader(50), t + Duration::from_secs(63));
    assert!(!leases.leader_is_silent());
}

#[test]
fn a_deaf_watch_makes_nobody_absent() {
    let (mut leases, t) = (leases(), Instant::now());
    let at = |seconds| t + Duration::from_secs(seconds);
    hear(&mut leases, Change::Reset(vec![lease("east", 0), lease("west", 0)]), t);
    hear(&mut leases, Change::Apply(lease("east", 1)), at(1));
    hear(&mut leases, Change::Apply(lease("west", 1)), at(1));
    hear(&mut leases, Change::Apply(lease("east", 40)), at(600));
    assert_eq!(of(&leases, "west"), Standing::Present);
    hear(&mut leases, Change::Apply(lease("east", 50)), at(629));
    assert_eq!(of(&leases, "west"), Standing::Present);
    hear(&mut leases, Change::Reset(vec![lease("east", 55), lease("west", 1)]), at(630));
    assert!(matches!(of(&leases, "west"), Standing::Silent { .. }));
}

#[test]
fn who_left_and_who_is_no_member_does_not_count() {
    let (mut leases, t) = (leases(), Instant::now());
    let mut left = lease("east", 0);
    left.annotations_mut().insert(api::label::LEFT.into(), api::label::TRUE.into());
    let other = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    hear(&mut leases, Change::Reset(vec![left, other("freeport-leader"), other("freeport-member-")]), t);
    assert!(leases.members().is_empty());
}

#[test]
fn a_lease_says_itself_when_it_is_stale() {
    let (mut leases, t) = (leases(), Instant::now());
    let brief = |second: u32| -> LeaseView {
        serde_json::from_value(json!({
            "metadata": {"name": name::member_lease("west")},
            "spec": {"renewTime": format!("2026-01-01T00:00:{second:02}Z"), "leaseDurationSeconds": 6},
        }))
        .unwrap()
    };
    hear(&mut leases, Change::Reset(vec![lease("east", 0), brief(0)]), t);
    hear(&mut leases, Change::Apply(lease("east", 5)), t + Duration::from_secs(5));
    assert_eq!(of(&leases, "west"), Standing::Unheard);
    hear(&mut leases, Change::Apply(lease("east", 6)), t + Duration::from_secs(6));
    assert!(matches!(of(&leases, "west"), Standing::Silent { .. }));
    assert_eq!(of(&leases, "east"), Standing::Present, "its own is three times as long");
}

#[test]
fn a9_who_speaks_another_version_is_named_until_it_leaves() {
    let (mut leases, t) = (leases(), Instant::now());
    let mut speaks = |cluster: &str, second: u32, said: &[(&str, &str)]| {
        let mut lease = lease(cluster, second);
        let said = said.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
        lease.annotations_mut().extend(said);
        hear(&mut leases, Change::Apply(lease), t);
        leases.foreign().into_iter().collect::<Vec<_>>()
    };
    let (new, same) = ((api::label::WIRE, "2"), (api::label::WIRE, api::label::WIRE_VERSION));
    assert!(speaks("west", 0, &[same]).is_empty() && speaks("north", 0, &[]).is_empty());
    let east = name::member_lease("east");
    assert_eq!(speaks("east", 0, &[new]), [(east, "2".to_owned())]);
    assert!(speaks("east", 1, &[new, (api::label::LEFT, api::label::TRUE)]).is_empty());
}

#[test]
fn records_are_read_again_when_the_leader_says_other_crds_than_it_said_first() {
    let leader = |schemas: Option<&str>| {
        let annotations = json!({label::SCHEMAS: schemas});
        let metadata = json!({"name": name::LEADER_LEASE, "annotations": annotations});
        let mut lease = json!({"metadata": metadata});
        if schemas.is_none() {
            lease["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        serde_json::from_value::<LeaseView>(lease).unwrap()
    };
    let mut all = leases();
    let mut told = |change| hear(&mut all, change, Instant::now()).schemas;
    assert!(
        !told(Change::Reset(vec![leader(Some("u.1")), lease("east", 0)])),
        "it was said before we listed"
    );
    assert!(!told(Change::Apply(leader(Some("u.1")))));
    assert!(told(Change::Apply(leader(Some("u.2")))));
    assert!(!told(Change::Apply(leader(None))), "it does not know yet");
    assert!(!told(Change::Apply(leader(Some("u.2")))));
    assert!(!told(Change::Remove(leader(Some("u.2")))));
    assert!(told(Change::Reset(vec![leader(Some("v.1"))])), "the watch missed it");

    let mut all = leases();
    let mut told = |change| hear(&mut all, change, Instant::now()).schemas;
    assert!(!told(Change::Apply(leader(None))));
    assert!(told(Change::Apply(leader(Some("u.1")))), "what was listed may be older");
}

/// What the leader's Lease tells at that second: of these, each renewed then.
fn told(second: u32, others: &[(&str, u32)]) -> LeaseView {
    let mut digest = Digest::default();
    for (cluster, second) in others {
        let mut lease = lease(cluster, *second);
        lease.annotations_mut().insert(label::SETTLED.into(), label::TRUE.into());
        digest.apply(&lease);
    }
    let time: Timestamp = format!("2026-01-01T00:00:{second:02}Z").parse().unwrap();
    serde_json::from_value(json!({
        "metadata": {"name": name::LEADER_LEASE, "annotations": {
            label::SETTLED: label::TRUE, label::MEMBERS: digest.annotation(time, Pace::default().stale()),
        }},
        "spec": {"renewTime": format!("2026-01-01T00:00:{second:02}.000000Z")},
    }))
    .unwrap()
}

/// Leases that the leader tells of, but for that of "west".
struct ByLeader {
    leases: Leases,
    began: Instant,
}

impl ByLeader {
    fn new() -> Self {
        Self { leases: leases().told_by_leader("west"), began: Instant::now() }
    }

    fn hear(&mut self, lease: &str, change: Change<LeaseView>, second: u64) -> News {
        self.leases.change_of(lease, change, self.began + Duration::from_secs(second), Timestamp::UNIX_EPOCH)
    }

    fn leader(&mut self, second: u32, others: &[(&str, u32)]) -> News {
        self.hear(name::LEADER_LEASE, Change::Apply(told(second, others)), second.into())
    }

    fn own(&mut self, second: u32, at: u64) {
        self.hear(&name::member_lease("west"), Change::Apply(lease("west", second)), at);
    }
}

#[test]
fn whom_the_leader_tells_of_is_silent_by_the_leaders_word_alone() {
    let mut west = ByLeader::new();
    west.hear(name::LEADER_LEASE, Change::Reset(vec![told(0, &[("east", 0), ("north", 0), ("west", 0)])]), 0);
    west.own(1, 1);
    assert_eq!((of(&west.leases, "east"), of(&west.leases, "west")), (Standing::Unheard, Standing::Present));
    west.leader(10, &[("east", 9), ("north", 0), ("south", 9)]);
    assert_eq!((of(&west.leases, "east"), of(&west.leases, "south")), (Standing::Present, Standing::Present));
    west.own(20, 20);
    west.leader(30, &[("east", 29), ("north", 0)]);
    assert_eq!(of(&west.leases, "east"), Standing::Present);
    assert!(
        matches!(of(&west.leases, "north"), Standing::Silent { .. }),
        "the leader did not hear it either"
    );
    assert!(!west.leases.members().contains_key("south"), "its Lease is gone");
    assert_eq!(of(&west.leases, "west"), Standing::Present, "ours is watched");
    for nth in 1..=5 {
        west.own(20 + nth, 30 + 10 * u64::from(nth));
    }
    let again = Change::Reset(vec![told(30, &[("east", 29), ("north", 0)])]);
    west.hear(name::LEADER_LEASE, again, 90);
    assert!(west.leases.leader_is_silent());
    assert_eq!(of(&west.leases, "east"), Standing::Present, "nobody tells of it: it stays as it was");
    let heard = |second| west.leases.is_heard(west.began + Duration::from_secs(second));
    assert!(heard(59) && !heard(61));
    west.leader(31, &[("east", 30), ("north", 30)]);
    west.hear(name::LEADER_LEASE, Change::Apply(told(41, &[("east", 30), ("north", 40)])), 100);
    assert_eq!((of(&west.leases, "east"), of(&west.leases, "north")), (Standing::Present, Standing::Present));
}

#[test]
fn it_is_known_whether_the_leader_tells_of_others() {
    let of_leader = |annotation: &str| {
        let metadata = json!({"name": name::LEADER_LEASE, "annotations": {label::MEMBERS: annotation}});
        serde_json::from_value::<LeaseView>(
            json!({"metadata": metadata, "spec": {"renewTime": "2026-01-01T00:00:07Z"}}),
        )
        .unwrap()
    };
    let not_yet = digest::not_yet("2026-01-01T00:00:07Z".parse().unwrap());
    for (change, tells) in [
        (Change::Apply(told(7, &[])), Some(true)),
        (Change::Apply(of_leader(&not_yet)), None),
        (Change::Apply(of_leader("an older time")), Some(false)),
        (Change::Reset(vec![]), Some(false)),
    ] {
        let by_name = ByLeader::new().hear(name::LEADER_LEASE, change.clone(), 7).tells;
        let among_all = hear(&mut leases(), change, Instant::now()).tells;
        assert_eq!((by_name, among_all), (tells, tells));
    }
    let gone = Change::Remove(told(7, &[]));
    assert_eq!(ByLeader::new().hear(name::LEADER_LEASE, gone, 7).tells, None, "it may come back in a moment");
    let west = name::member_lease("west");
    assert_eq!(
        ByLeader::new().hear(&west, Change::Reset(vec![]), 7).tells,
        None,
        "ours tells nothing of that"
    );
}

#[test]
fn a_renewal_that_the_leader_tells_of_is_older_so_that_it_takes_three() {
    let mut west = ByLeader::new();
    let east = name::member_lease("east");
    let counted = |west: &ByLeader, lease: &str| {
        let heard = west.leases.heard(lease).unwrap();
        (heard.renewals, heard.needed())
    };
    west.hear(name::LEADER_LEASE, Change::Reset(vec![told(0, &[("east", 0)])]), 0);
    assert_eq!(counted(&west, &east), (0, 3));
    let news = west.leader(10, &[("east", 9)]);
    assert!(news.renewed.iter().any(|(lease, _)| *lease == east));
    let news = west.leader(20, &[("east", 9)]);
    assert!(!news.renewed.iter().any(|(lease, _)| *lease == east), "the same one");
    assert_eq!((counted(&west, &east), counted(&west, name::LEADER_LEASE)), ((1, 3), (2, 2)));
}

/// As a leader of the version before tells it: more exactly, and of all in the same form.
fn told_before(second: u32, cluster: &str, renewed: &str) -> LeaseView {
    let entry = json!({"uid": "u", "version": "7", "holder": "u1/a", "renewed": renewed, "seconds": 30, "settled": "true", "wire": "1"});
    let time = format!("2026-01-01T00:00:{second:02}.000000Z");
    let members = format!("{time} {}", json!({cluster: entry}));
    serde_json::from_value(json!({
        "metadata": {"name": name::LEADER_LEASE, "annotations": {label::SETTLED: label::TRUE, label::MEMBERS: members}},
        "spec": {"renewTime": time},
    }))
    .unwrap()
}

#[test]
fn a_leader_of_another_version_tells_the_same() {
    let (mut west, east) = (ByLeader::new(), name::member_lease("east"));
    let renewed = "2026-01-01T00:00:09.123456Z";
    let mut digest = Digest::default();
    let mut lease = lease("east", 9);
    lease.annotations_mut().insert(label::SETTLED.into(), label::TRUE.into());
    lease = serde_json::from_value(json!({
        "metadata": {"name": east, "resourceVersion": "7", "annotations": lease.annotations()},
        "spec": {"renewTime": renewed},
    }))
    .unwrap();
    digest.apply(&lease);
    let by_new = |second: u32| {
        let mut told = told(second, &[]);
        let at = told.renew_time().unwrap();
        told.annotations_mut().insert(label::MEMBERS.into(), digest.annotation(at, Pace::default().stale()));
        told
    };
    west.hear(name::LEADER_LEASE, Change::Reset(vec![told_before(10, "east", renewed)]), 10);
    for (second, told) in [(11, by_new(11)), (12, told_before(12, "east", renewed)), (13, by_new(13))] {
        let news = west.hear(name::LEADER_LEASE, Change::Apply(told), second);
        assert_eq!(news.tells, Some(true));
        assert!(!news.renewed.iter().any(|(lease, _)| *lease == east), "at {second}: the same renewal");
    }
    assert_eq!(of(&west.leases, "east"), Standing::Unheard);
    west.hear(name::LEADER_LEASE, Change::Apply(told_before(20, "east", "2026-01-01T00:00:19.123456Z")), 20);
    assert_eq!(west.leases.heard(&east).unwrap().renewals, 1);
    assert_eq!(west.leases.heard(&east).unwrap().version, 7);
}

#[test]
fn a_leader_that_renews_before_it_is_time_vouches_no_sooner() {
    let mut west = ByLeader::new();
    west.hear(name::LEADER_LEASE, Change::Reset(vec![told(0, &[])]), 0);
    for second in 1..=15 {
        west.leader(second, &[]);
    }
    assert_eq!(west.leases.heard(name::LEADER_LEASE).unwrap().renewals, 1, "at 8; the next one at 16");
    west.leader(16, &[]);
    assert_eq!(west.leases.heard(name::LEADER_LEASE).unwrap().renewals, 2);
}
