use std::time::Duration;

use api::{label, name};
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
