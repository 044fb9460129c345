use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    lease::Settled,
    unwritten::{SERVICES, Unwritten},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn lease(cluster: &str, second: i64, settled: &Settled) -> LeaseView {
    let renewed = at(second);
    serde_json::from_value(json!({
        "metadata": {"name": name::member_lease(cluster), "uid": format!("of-{cluster}"), "resourceVersion": "7", "annotations": {
            label::SETTLED: settled.word(), label::UNWRITTEN: settled.unwritten(renewed), label::WIRE: "1", label::LEFT: "false",
        }},
        "spec": {"holderIdentity": "u1/a", "leaseDurationSeconds": 30, "renewTime": MicroTime(renewed)},
    }))
    .unwrap()
}

fn leaders(second: i64, annotation: &str) -> LeaseView {
    serde_json::from_value(json!({
        "metadata": {"name": name::LEADER_LEASE, "annotations": {label::MEMBERS: annotation}},
        "spec": {"renewTime": MicroTime(at(second))},
    }))
    .unwrap()
}

fn told(lease: &LeaseView) -> Vec<LeaseView> {
    match lease.told() {
        Told::Leases(leases) => leases,
        other => panic!("{other:?}"),
    }
}

fn says(lease: &LeaseView) -> String {
    let (name, holder, renewed) = (lease.name_any(), lease.holder(), lease.renew_time());
    let (uid, version) = (lease.uid(), lease.resource_version());
    format!(
        "{name} {uid:?} {version:?} {holder:?} {renewed:?} {:?} {:?} {}",
        lease.settled(),
        lease.wire(),
        lease.has_left()
    )
}

#[test]
fn a_lease_is_told_as_it_is() {
    let mut digest = Digest::default();
    let writing = Settled::Writing(Unwritten::of(SERVICES, ["shop/web".into()]));
    let leases =
        [lease("east", 3, &writing), lease("north.eu", 4, &Settled::No), lease("west", 5, &Settled::Yes)];
    for lease in &leases {
        assert!(digest.apply(lease), "it is new");
    }
    digest.apply(&leaders(6, ""));
    let told = told(&leaders(10, &digest.annotation(at(10))));
    assert_eq!(told.iter().map(says).collect::<Vec<_>>(), leases.iter().map(says).collect::<Vec<_>>());
    assert_eq!(told[0].stale().as_secs(), 30);
}

#[test]
fn what_is_not_of_this_renewal_tells_nothing() {
    let said = Digest::default().annotation(at(10));
    assert!(matches!(leaders(10, &said).told(), Told::Leases(none) if none.is_empty()));
    assert!(matches!(leaders(20, &said).told(), Told::Nothing), "an older leader took over");
    assert!(matches!(leaders(20, &not_yet(at(20))).told(), Told::NotYet));
    for odd in ["", "x", &format!("{} [1]", not_yet(at(10)))] {
        assert!(matches!(leaders(10, odd).told(), Told::Nothing), "{odd:?}");
    }
}

#[test]
fn a_mere_renewal_can_wait_for_the_leaders_own() {
    let mut digest = Digest::default();
    digest.apply(&lease("east", 0, &Settled::Yes));
    assert!(!digest.apply(&lease("east", 10, &Settled::No)));
    assert!(!digest.apply(&lease("east", 39, &Settled::Yes)));
    assert!(digest.apply(&lease("east", 69, &Settled::Yes)), "it was silent");
    let mut left = lease("east", 70, &Settled::Yes);
    left.annotations_mut().insert(label::LEFT.into(), label::TRUE.into());
    assert!(digest.apply(&left));
    assert!(digest.remove(&left) && !digest.remove(&left));
    assert!(digest.reset(&[lease("west", 0, &Settled::Yes)]), "it is new");
    assert!(!digest.reset(&[lease("west", 10, &Settled::Yes)]));
    assert!(digest.reset(&[]));
}

#[test]
fn what_members_lack_is_told_until_they_say_something_else() {
    let mut digest = Digest::default();
    let mut lacks = |cluster: &str, second: i64, settled: &Settled, namespaces: Option<&[&str]>| {
        let mut lease = lease(cluster, second, settled);
        if let Some(namespaces) = namespaces {
            let names = namespaces.iter().map(|name| (*name).to_owned()).collect();
            lease.annotations_mut().insert(label::LACKS.into(), super::super::lacks(names, at(second)));
        }
        digest.apply(&lease);
        let said = super::super::lacking(&digest.lacking(), at(99));
        let mut leaders = leaders(99, "");
        leaders.annotations_mut().insert(label::LACKING.into(), said);
        leaders.lacking().unwrap().lack("shop").map(ToString::to_string)
    };
    let (yes, no) = (Settled::Yes, Settled::No);
    assert_eq!(lacks("east", 1, &yes, Some(&["shop", "web"])).as_deref(), Some("east"));
    assert_eq!(lacks("west", 1, &yes, Some(&["shop"])).as_deref(), Some("east, west"));
    assert_eq!(lacks("west", 2, &no, None).as_deref(), Some("east, west"), "it starts again");
    assert_eq!(lacks("west", 3, &yes, Some(&[])).as_deref(), Some("east"), "it has the Namespace");
    assert_eq!(lacks("east", 2, &yes, None), None, "an older daemon says nothing");
    let mut stale = leaders(99, "");
    stale.annotations_mut().insert(label::LACKING.into(), super::super::lacking(&Lacking::default(), at(98)));
    assert_eq!(stale.lacking(), None, "nor does an older leader");
}

#[test]
fn too_much_is_left_out_before_it_is_refused() {
    let much = Settled::Writing(Unwritten::of(SERVICES, (0..90).map(|n| format!("{}/{n}", "n".repeat(80)))));
    let mut digest = Digest::default();
    for n in 0..100 {
        digest.apply(&lease(&format!("member-{n}"), 1, &much));
    }
    let said = digest.annotation(at(2));
    assert!(said.len() < BYTES);
    let told = told(&leaders(2, &said));
    assert_eq!(told.len(), 100);
    assert!(told.iter().all(|lease| !lease.settled().is_known()), "it may be writing anything");
    for n in 0..2_000 {
        digest.apply(&lease(&format!("member-{n}"), 1, &Settled::Yes));
    }
    assert!(matches!(leaders(2, &digest.annotation(at(2))).told(), Told::Nothing));
}

#[test]
fn five_hundred_members_are_told() {
    let mut digest = Digest::default();
    for n in 0..500 {
        let mut one = lease(&format!("cluster-{n:03}"), 1, &Settled::Yes);
        one.metadata.uid = Some("01234567-89ab-cdef-0123-456789abcdef".into());
        one.spec = Lenient(Ok(Spec {
            holder_identity: Lenient(Ok(Some(
                "01234567-89ab-cdef-0123-456789abcdef/freeport-member-0123456789-abcde".into(),
            ))),
            lease_duration_seconds: Lenient(Ok(Some(30))),
            renew_time: Lenient(Ok(Some(MicroTime(at(1))))),
        }));
        digest.apply(&one);
    }
    let said = digest.annotation(at(2));
    assert_eq!(told(&leaders(2, &said)).len(), 500, "{} bytes", said.len());
}

proptest! {
    #[test]
    fn a1_no_member_can_make_what_is_told_unreadable(spec in odd::anything(&["holderIdentity", "renewTime"])) {
        for lease in odd::everywhere::<LeaseView>(&spec).unwrap() {
            let mut lease = lease;
            lease.metadata.name = Some(name::member_lease("east"));
            let mut digest = Digest::default();
            digest.apply(&lease);
            told(&leaders(1, &digest.annotation(at(1))));
        }
    }

    #[test]
    fn a1_no_leader_can_stop_the_reading(said in odd::anything(&["uid", "holder", "renewed", "seconds"])) {
        leaders(1, &format!("{} {said}", not_yet(at(1)))).told();
    }
}
