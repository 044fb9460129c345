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

/// What members read of it.
fn says(lease: &LeaseView) -> String {
    let (name, version, renewed) = (lease.name_any(), lease.resource_version(), lease.renew_time());
    let wire = lease.wire().filter(|wire| *wire != label::WIRE_VERSION);
    let (stale, settled, has_left) = (lease.stale(), lease.settled(), lease.has_left());
    format!("{name} {version:?} {renewed:?} {stale:?} {settled:?} {wire:?} {has_left}")
}

const STALE: Duration = super::super::STALE;

/// Leases, each with an oddity, or none.
fn odd_ones() -> Vec<LeaseView> {
    let writing = Settled::Writing(Unwritten::of(SERVICES, ["shop/web".into()]));
    let unknown = Settled::Writing(Unwritten::unknown());
    let annotated = |cluster: &str, key: &str, value: &str| {
        let mut lease = lease(cluster, 5, &Settled::Yes);
        lease.annotations_mut().insert(key.into(), value.into());
        lease
    };
    let mut versions =
        [("early", "3"), ("late", "18446744073709551615"), ("odd", "x")].map(|(cluster, version)| {
            let mut lease = lease(cluster, -86_400, &Settled::Yes);
            lease.metadata.resource_version = Some(version.into());
            lease
        });
    versions[0].spec = Lenient(Ok(Spec::default()));
    let mut leases = vec![
        lease("east", 3, &writing),
        lease("east-1", 4, &Settled::No),
        lease("east-10", 5, &Settled::Yes),
        lease("east-2", 20, &unknown),
        annotated("left", label::LEFT, label::TRUE),
        annotated("newer", label::WIRE, "2"),
        annotated("north.eu", "other", "x"),
    ];
    leases.extend(versions);
    leases.sort_by_key(ResourceExt::name_any);
    leases
}

#[test]
fn a_lease_is_told_as_it_is() {
    let (mut digest, leases) = (Digest::default(), odd_ones());
    for lease in &leases {
        assert!(digest.apply(lease), "it is new");
    }
    digest.apply(&leaders(6, ""));
    let said = leases.iter().map(says).collect::<Vec<_>>();
    for stale in [STALE, STALE / 3] {
        let told = told(&leaders(10, &digest.annotation(at(10), stale)));
        assert_eq!(told.iter().map(says).collect::<Vec<_>>(), said, "{stale:?}");
    }
}

#[test]
fn a_member_that_only_renewed_its_lease_is_a_word() {
    let mut digest = Digest::default();
    for lease in odd_ones() {
        digest.apply(&lease);
    }
    let said = digest.annotation(at(10), STALE);
    let (words, others) = said.split_once('{').unwrap();
    let others = format!("{{{others}");
    let words: Vec<_> = words.split_whitespace().skip(3).collect();
    let late = "0late:d2f64:0";
    let behind = format!("{:x}", u64::MAX - 7);
    let want =
        [format!("0east-1:3c:{behind}:false"), format!("60:32:{behind}"), format!("52:-64:{behind}:writing")];
    assert_eq!(words, [&want[..], &[late.into(), format!("0north.eu:32:{behind}")]].concat());
    let others: BTreeMap<String, serde_json::Value> = serde_json::from_str(&others).unwrap();
    assert_eq!(others.keys().collect::<Vec<_>>(), ["early", "east", "left", "newer", "odd"]);
}

/// What a leader of an older version wrote, and what a member of that version cannot read.
#[test]
fn older_leaders_are_read_and_older_members_find_nothing() {
    let entry = |second: i64, settled: &str| {
        let (renewed, unwritten) =
            (not_yet(at(second)), format!("{} Services/shop/web", not_yet(at(second))));
        json!({
            "uid": "u", "version": "7", "holder": "u1/a", "renewed": renewed, "seconds": 30, "settled": settled, "wire": "1",
            "unwritten": if settled == label::WRITING { unwritten.as_str() } else { "" },
        })
    };
    let old = json!({"east": entry(3, label::WRITING), "west": entry(4, label::TRUE)});
    let old = told(&leaders(10, &format!("{} {old}", not_yet(at(10)))));
    let mut digest = Digest::default();
    let writing = Settled::Writing(Unwritten::of(SERVICES, ["shop/web".into()]));
    digest.apply(&lease("east", 3, &writing));
    digest.apply(&lease("west", 4, &Settled::Yes));
    let new = digest.annotation(at(10), STALE);
    let says = |leases: &[LeaseView]| leases.iter().map(says).collect::<Vec<_>>();
    assert_eq!(says(&old), says(&told(&leaders(10, &new))));

    for said in [new, Digest::default().annotation(at(10), STALE)] {
        let (_, leases) = said.split_once(' ').unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(leases).is_err(), "{leases}");
    }
}

/// A time is told less exactly than it is: the same time in every form.
#[test]
fn the_form_makes_no_renewal() {
    let exact = at(5) + Duration::from_micros(1_234_567);
    let mut lease = lease("east", 5, &Settled::Yes);
    lease.spec = Lenient(Ok(Spec { renew_time: Lenient(Ok(Some(MicroTime(exact)))), ..Spec::default() }));
    let writing = Unwritten::of(SERVICES, ["shop/web".into()]);
    let mut times = BTreeSet::new();
    for (settled, left) in
        [(Settled::Yes, "false"), (Settled::Writing(writing), "false"), (Settled::Yes, "true")]
    {
        let said = [
            (label::SETTLED, settled.word()),
            (label::UNWRITTEN, &settled.unwritten(exact)),
            (label::LEFT, left),
        ];
        let said = said.map(|(key, value)| (key.to_owned(), value.to_owned()));
        lease.annotations_mut().extend(said);
        let mut digest = Digest::default();
        digest.apply(&lease);
        for leaders_at in [6, 7] {
            let told = told(&leaders(leaders_at, &digest.annotation(at(leaders_at), STALE)));
            assert_eq!(told[0].settled(), settled);
            times.insert(told[0].renew_time());
        }
    }
    assert_eq!(times, [Some(at(5) + Duration::from_millis(1_200))].into());
}

#[test]
fn what_is_not_of_this_renewal_tells_nothing() {
    let said = Digest::default().annotation(at(10), STALE);
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
    let said = digest.annotation(at(2), STALE);
    assert!(said.len() < BYTES);
    let told = told(&leaders(2, &said));
    assert_eq!(told.len(), 100);
    assert!(told.iter().all(|lease| !lease.settled().is_known()), "it may be writing anything");
    for n in 0..2_000 {
        let mut newer = lease(&format!("member-{n}"), 1, &Settled::Yes);
        newer.annotations_mut().insert(label::WIRE.into(), "2".into());
        digest.apply(&newer);
    }
    assert!(matches!(leaders(2, &digest.annotation(at(2), STALE)).told(), Told::Nothing));
}

#[test]
fn each_of_many_members_takes_a_few_bytes() {
    let mut digest = Digest::default();
    for n in 0..5_000_u16 {
        let mut one = lease(&format!("prod-eu-west-{n:04}"), i64::from(n % 10), &Settled::Yes);
        one.metadata.resource_version = Some((1_000_000 + u32::from(n)).to_string());
        digest.apply(&one);
    }
    let said = digest.annotation(at(10), STALE);
    assert_eq!(told(&leaders(10, &said)).len(), 5_000);
    assert!(said.len() < 5_000 * 12, "{} bytes", said.len());
}

proptest! {
    #[test]
    fn a1_no_member_can_make_what_is_told_unreadable(spec in odd::anything(&["holderIdentity", "renewTime"])) {
        for lease in odd::everywhere::<LeaseView>(&spec).unwrap() {
            let mut lease = lease;
            lease.metadata.name = Some(name::member_lease("east"));
            let mut digest = Digest::default();
            digest.apply(&lease);
            told(&leaders(1, &digest.annotation(at(1), STALE)));
        }
    }

    #[test]
    fn a1_no_leader_can_stop_the_reading(said in odd::anything(&["uid", "holder", "renewed", "seconds"])) {
        leaders(1, &format!("{} {said}", not_yet(at(1)))).told();
    }

    #[test]
    fn a1_no_word_stops_the_reading(words in "[0-9a-f:é -]{0,40}") {
        leaders(1, &format!("{} {words} {{}}", not_yet(at(1)))).told();
        leaders(1, &format!("{} 9 30 {words} {{}}", not_yet(at(1)))).told();
    }
}
