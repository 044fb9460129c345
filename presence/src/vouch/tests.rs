use std::time::Instant;

use api::{
    label,
    lease::{LeaseView, Pace, Settled},
    unwritten::{SERVICES, Unwritten},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kit::objects::Change;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::heartbeat::Heartbeats;

/// One feature, and the Leases it hears of.
struct Heard {
    leases: Shared<Leases>,
    latest: Latest,
    vouching: Vouching<&'static str>,
}

impl Heard {
    fn new(restored: bool) -> Self {
        let leases = Shared::new(Leases::new(Pace::default(), Heartbeats::default(), restored));
        let latest = Latest::default();
        Self { vouching: Vouching::new(SERVICES, leases.clone(), latest.clone()), latest, leases }
    }

    fn change(&self, change: Change<LeaseView>) -> BTreeSet<&'static str> {
        let news = self.leases.with(|leases| leases.change(change, Instant::now(), Timestamp::UNIX_EPOCH));
        self.vouching.hear(&news)
    }

    /// The Lease is renewed for that time: its holder does it every ten seconds.
    fn hear(&self, lease: &str, nth: u32, settled: &Settled) -> BTreeSet<&'static str> {
        let at = Timestamp::from_second(i64::from(nth) * 10).unwrap();
        let annotations = json!({label::SETTLED: settled.word(), label::UNWRITTEN: settled.unwritten(at)});
        let lease = json!({
            "metadata": {"name": lease, "resourceVersion": nth.to_string(), "annotations": annotations},
            "spec": {"renewTime": MicroTime(at)},
        });
        self.change(Change::Apply(serde_json::from_value(lease).unwrap()))
    }
}

/// Doubts east's word on these slices of web.
fn doubt(heard: &Heard, missing: &[&str]) -> bool {
    heard.vouching.doubt(&"web", "east", &missing.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn two_settled_renewals_after_the_doubt_vouch() {
    let v = Heard::new(false);
    v.hear("east", 0, &Settled::Yes);
    v.hear("east", 10, &Settled::Yes);
    assert!(!doubt(&v, &["web-1"]));
    assert!(v.hear("east", 10, &Settled::Yes).is_empty(), "the same renewal told twice");
    assert!(v.hear("east", 20, &Settled::Yes).is_empty());
    assert!(!doubt(&v, &["web-1"]), "one is not enough");
    assert_eq!(v.hear("east", 30, &Settled::Yes), ["web"].into());
    assert!(doubt(&v, &["web-1"]));
    assert!(!doubt(&v, &["web-1", "web-2"]), "more is missing: it starts anew");
    v.hear("east", 40, &Settled::Yes);
    v.hear("east", 50, &Settled::Yes);
    assert!(doubt(&v, &["web-2"]), "less is missing");
    v.vouching.keep(&"web", &BTreeSet::new());
    assert!(!doubt(&v, &["web-1"]), "a new doubt starts anew");
}

/// After a link was cut, each watch tells what it missed, and none waits for another.
#[test]
fn a_renewal_of_before_what_was_known_is_not_counted() {
    let v = Heard::new(false);
    v.hear("east", 10, &Settled::Yes);
    v.latest.see(30);
    assert!(!doubt(&v, &["web-1"]));
    v.hear("east", 20, &Settled::Yes);
    v.hear("east", 30, &Settled::Yes);
    assert!(!doubt(&v, &["web-1"]), "both may be older than the absence");
    v.latest.see(100);
    v.hear("east", 40, &Settled::Yes);
    assert!(v.hear("east", 50, &Settled::Yes).contains("web"), "what became known later does not matter");
    assert!(doubt(&v, &["web-1"]));
    v.vouching.doubt_again(&"web", "east");
    v.hear("east", 60, &Settled::Yes);
    v.hear("east", 70, &Settled::Yes);
    assert!(!doubt(&v, &["web-1"]), "it starts anew with what is known then");
}

#[test]
fn a_silent_or_unsettled_writer_vouches_for_nothing() {
    let v = Heard::new(false);
    assert!(!doubt(&v, &["web-1"]));
    assert!(v.hear("east", 0, &Settled::Yes).is_empty(), "the Lease as we found it is no renewal");
    v.hear("east", 10, &Settled::Yes);
    v.hear("east", 20, &Settled::Writing(Unwritten::unknown()));
    v.hear("east", 30, &Settled::Yes);
    assert!(!doubt(&v, &["web-1"]), "unsettled in between");
    v.hear("west", 40, &Settled::Yes);
    v.hear("west", 50, &Settled::Yes);
    v.hear("west", 55, &Settled::Yes);
    assert!(!doubt(&v, &["web-1"]), "another's word");
    assert!(v.hear("east", 40, &Settled::Yes).contains("web"));
}

#[test]
fn after_a_restore_nothing_counts_before_its_writer_vouches() {
    let v = Heard::new(true);
    v.hear("east", 0, &Settled::Yes);
    assert!(!v.vouching.is_current(&"web", "east"));
    v.hear("east", 10, &Settled::Yes);
    assert!(!v.vouching.is_current(&"web", "east"));
    assert_eq!(v.hear("east", 20, &Settled::Yes), ["web"].into());
    assert!(v.vouching.is_current(&"web", "east"));
    assert!(!v.vouching.is_current(&"web", "west"), "never heard of");
    for second in 0..=9 {
        v.hear("west", second, &Settled::No);
    }
    assert!(!v.vouching.is_current(&"web", "west"), "it is blind");
    for second in 10..=14 {
        v.hear("west", second, &Settled::Writing(Unwritten::unknown()));
    }
    assert!(!v.vouching.is_current(&"web", "west"));
    assert_eq!(
        v.hear("west", 15, &Settled::Writing(Unwritten::unknown())),
        ["web"].into(),
        "never settled, but there all the time"
    );
    assert!(Heard::new(false).vouching.is_current(&"web", "west"), "nothing was restored");
}

/// East has something left to write, of these keys alone.
fn writing(keys: &[&str]) -> Settled {
    Settled::Writing(Unwritten::of(SERVICES, keys.iter().map(|key| (*key).to_owned())))
}

#[test]
fn a_writer_vouches_for_all_but_what_it_names() {
    let v = Heard::new(false);
    v.hear("east", 0, &Settled::Yes);
    let of = |key: &'static str| v.vouching.doubt(&key, "east", &["a".to_owned()].into());
    assert!(!of("web") && !of("busy"));
    assert!(v.hear("east", 10, &writing(&["busy"])).is_empty());
    assert_eq!(v.hear("east", 20, &writing(&["busy"])), ["web"].into());
    assert!(of("web") && !of("busy"));
    assert!(v.hear("east", 30, &Settled::Yes).contains("web"));
    assert!(!of("busy"), "once is not enough");
    v.hear("east", 40, &writing(&["web"]));
    assert!(of("busy") && !of("web"), "it may be about to put it back");
    let others = Settled::Writing(Unwritten::of("Other", ["busy".to_owned()]));
    v.hear("east", 50, &others);
    assert!(of("busy"), "another feature's");
}

#[test]
fn after_a_restore_what_a_writer_names_waits_and_the_rest_does_not() {
    let v = Heard::new(true);
    v.hear("east", 0, &Settled::Yes);
    let current = |key: &'static str| v.vouching.is_current(&key, "east");
    assert!(!current("web") && !current("busy"));
    v.hear("east", 1, &writing(&["busy"]));
    assert_eq!(v.hear("east", 2, &writing(&["busy"])), ["web"].into());
    assert!(current("web") && !current("busy"));
    for second in 3..=5 {
        assert!(v.hear("east", second, &writing(&["busy"])).is_empty());
    }
    assert_eq!(v.hear("east", 6, &writing(&["busy"])), ["busy"].into(), "refused again and again");
    assert!(current("busy"));
}

fn settled() -> impl Strategy<Value = Settled> {
    let named = prop::collection::btree_set(prop_oneof![Just("web"), Just("busy")], 1..3);
    prop_oneof![
        3 => Just(Settled::Yes),
        3 => named.prop_map(|keys| writing(&keys.into_iter().collect::<Vec<_>>())),
        1 => Just(Settled::Writing(Unwritten::unknown())),
        1 => Just(Settled::No),
    ]
}

proptest! {
    /// What a writer says of other keys changes nothing, and no absence is believed before it was vouched for twice in a row.
    #[test]
    fn two_renewals_in_a_row_that_vouch_for_a_key_are_what_it_takes(
        renewals in prop::collection::vec(settled(), 0..12), from in 0..12usize,
    ) {
        let v = Heard::new(false);
        v.hear("east", 0, &Settled::Yes);
        let (mut in_a_row, mut doubted) = (0, false);
        for (number, settled) in renewals.into_iter().enumerate() {
            if number == from {
                doubt(&v, &["web-1"]);
                doubted = true;
            }
            in_a_row = match settled.is_about("Services/web") {
                true if doubted => in_a_row + 1,
                _ => 0,
            };
            let told = v.hear("east", u32::try_from(number + 1).unwrap(), &settled);
            prop_assert_eq!(told.contains("web"), in_a_row >= 2);
            if doubted {
                prop_assert_eq!(doubt(&v, &["web-1"]), in_a_row >= 2);
            }
        }
    }
}

fn lease(uid: &str, left: bool) -> LeaseView {
    let annotations = json!({"multicluster.freeport.dev/left": left.to_string()});
    let metadata = json!({"name": "east", "uid": uid, "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

#[test]
fn who_asks_for_a_uid_before_there_is_a_lease_is_told_of_it() {
    let v = Heard::new(false);
    assert_eq!(v.vouching.uid(&"web", "east"), None);
    assert!(v.hear("west", 0, &Settled::No).is_empty());
    assert_eq!(v.hear("east", 0, &Settled::No), ["web"].into());
    assert!(v.hear("east", 10, &Settled::No).is_empty(), "told once");
}

#[test]
fn a_writer_that_left_for_good_vouches_for_all_and_one_that_is_gone_for_nothing() {
    let v = Heard::new(false);
    assert_eq!(v.vouching.state("east"), WriterState::Unknown);
    assert!(v.change(Change::Apply(lease("u1", false))).is_empty());
    let uid = v.vouching.uid(&"web", "east");
    assert_eq!((v.vouching.state("east"), uid), (WriterState::Belongs, Some("u1".into())));
    assert!(!doubt(&v, &["web-1"]));
    assert_eq!(v.change(Change::Reset(vec![])), ["web"].into(), "its Lease is gone");
    assert_eq!(v.vouching.state("east"), WriterState::Unknown);
    assert!(!doubt(&v, &["web-1"]));
    assert_eq!(v.change(Change::Apply(lease("u2", true))), ["web"].into());
    assert_eq!(v.vouching.state("east"), WriterState::Left);
    assert!(doubt(&v, &["web-1"]));
}
