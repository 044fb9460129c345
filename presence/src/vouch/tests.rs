use std::time::Instant;

use api::{
    label,
    lease::{LeaseView, Pace},
};
use jiff::Timestamp;
use kit::objects::Change;
use serde_json::json;

use super::*;
use crate::heartbeat::Heartbeats;

/// One feature, and the Leases it hears of.
struct Heard {
    leases: Shared<Leases>,
    vouching: Vouching<&'static str>,
}

impl Heard {
    fn new(restored: bool) -> Self {
        let leases = Shared::new(Leases::new(Pace::default(), Heartbeats::default(), restored));
        Self { vouching: Vouching::new(leases.clone()), leases }
    }

    fn change(&self, change: Change<LeaseView>) -> BTreeSet<&'static str> {
        let news = self.leases.with(|leases| leases.change(change, Instant::now(), Timestamp::UNIX_EPOCH));
        self.vouching.hear(&news)
    }

    /// The Lease is renewed at that second.
    fn hear(&self, lease: &str, second: u32, settled: Settled) -> BTreeSet<&'static str> {
        let lease = json!({
            "metadata": {"name": lease, "annotations": {label::SETTLED: settled.word()}},
            "spec": {"renewTime": format!("2026-01-01T00:00:{second:02}Z")},
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
    v.hear("east", 0, Settled::Yes);
    v.hear("east", 10, Settled::Yes);
    assert!(!doubt(&v, &["web-1"]));
    assert!(v.hear("east", 10, Settled::Yes).is_empty(), "the same renewal told twice");
    assert!(v.hear("east", 20, Settled::Yes).is_empty());
    assert!(!doubt(&v, &["web-1"]), "one is not enough");
    assert_eq!(v.hear("east", 30, Settled::Yes), ["web"].into());
    assert!(doubt(&v, &["web-1"]));
    assert!(!doubt(&v, &["web-1", "web-2"]), "more is missing: it starts anew");
    v.hear("east", 40, Settled::Yes);
    v.hear("east", 50, Settled::Yes);
    assert!(doubt(&v, &["web-2"]), "less is missing");
    v.vouching.keep(&"web", &BTreeSet::new());
    assert!(!doubt(&v, &["web-1"]), "a new doubt starts anew");
}

#[test]
fn a_silent_or_unsettled_writer_vouches_for_nothing() {
    let v = Heard::new(false);
    assert!(!doubt(&v, &["web-1"]));
    assert!(v.hear("east", 0, Settled::Yes).is_empty(), "the Lease as we found it is no renewal");
    v.hear("east", 10, Settled::Yes);
    v.hear("east", 20, Settled::Writing);
    v.hear("east", 30, Settled::Yes);
    assert!(!doubt(&v, &["web-1"]), "unsettled in between");
    v.hear("west", 40, Settled::Yes);
    v.hear("west", 50, Settled::Yes);
    v.hear("west", 55, Settled::Yes);
    assert!(!doubt(&v, &["web-1"]), "another's word");
    assert!(v.hear("east", 40, Settled::Yes).contains("web"));
}

#[test]
fn after_a_restore_nothing_counts_before_its_writer_vouches() {
    let v = Heard::new(true);
    v.hear("east", 0, Settled::Yes);
    assert!(!v.vouching.is_current(&"web", "east"));
    v.hear("east", 10, Settled::Yes);
    assert!(!v.vouching.is_current(&"web", "east"));
    assert_eq!(v.hear("east", 20, Settled::Yes), ["web"].into());
    assert!(v.vouching.is_current(&"web", "east"));
    assert!(!v.vouching.is_current(&"web", "west"), "never heard of");
    for second in 0..=9 {
        v.hear("west", second, Settled::No);
    }
    assert!(!v.vouching.is_current(&"web", "west"), "it is blind");
    for second in 10..=14 {
        v.hear("west", second, Settled::Writing);
    }
    assert!(!v.vouching.is_current(&"web", "west"));
    assert_eq!(v.hear("west", 15, Settled::Writing), ["web"].into(), "never settled, but there all the time");
    assert!(Heard::new(false).vouching.is_current(&"web", "west"), "nothing was restored");
}

fn lease(uid: &str, left: bool) -> LeaseView {
    let annotations = json!({"multicluster.freeport.dev/left": left.to_string()});
    let metadata = json!({"name": "east", "uid": uid, "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

#[test]
fn a_writer_that_left_for_good_vouches_for_all_and_one_that_is_gone_for_nothing() {
    let v = Heard::new(false);
    assert_eq!(v.vouching.state("east"), WriterState::Unknown);
    assert!(v.change(Change::Apply(lease("u1", false))).is_empty());
    assert_eq!((v.vouching.state("east"), v.vouching.uid("east")), (WriterState::Belongs, Some("u1".into())));
    assert!(!doubt(&v, &["web-1"]));
    assert_eq!(v.change(Change::Reset(vec![])), ["web"].into(), "its Lease is gone");
    assert_eq!(v.vouching.state("east"), WriterState::Unknown);
    assert!(!doubt(&v, &["web-1"]));
    assert_eq!(v.change(Change::Apply(lease("u2", true))), ["web"].into());
    assert_eq!(v.vouching.state("east"), WriterState::Left);
    assert!(doubt(&v, &["web-1"]));
}
