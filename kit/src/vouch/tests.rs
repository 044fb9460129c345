use super::*;

/// Doubts east's word on these slices of web.
fn doubt(vouching: &mut Vouching<&'static str>, missing: &[&str]) -> bool {
    vouching.doubt(&"web", "east", &missing.iter().map(|name| (*name).to_owned()).collect())
}

fn at(second: u32) -> Option<String> {
    Some(format!("2026-01-01T00:00:{second:02}Z"))
}

#[test]
fn two_settled_renewals_after_the_doubt_vouch() {
    let mut v = Vouching::default();
    v.hear("east", at(0), Settled::Yes);
    v.hear("east", at(10), Settled::Yes);
    assert!(!doubt(&mut v, &["web-1"]));
    assert!(v.hear("east", at(10), Settled::Yes).is_empty(), "the same renewal told twice");
    assert!(v.hear("east", at(20), Settled::Yes).is_empty());
    assert!(!doubt(&mut v, &["web-1"]), "one is not enough");
    assert_eq!(v.hear("east", at(30), Settled::Yes), ["web"].into());
    assert!(doubt(&mut v, &["web-1"]));
    assert!(!doubt(&mut v, &["web-1", "web-2"]), "more is missing: it starts anew");
    v.hear("east", at(40), Settled::Yes);
    v.hear("east", at(50), Settled::Yes);
    assert!(doubt(&mut v, &["web-2"]), "less is missing");
    v.keep(&"web", &BTreeSet::new());
    assert!(!doubt(&mut v, &["web-1"]), "a new doubt starts anew");
}

#[test]
fn a_silent_or_unsettled_writer_vouches_for_nothing() {
    let mut v = Vouching::default();
    assert!(!doubt(&mut v, &["web-1"]));
    assert!(v.hear("east", at(0), Settled::Yes).is_empty(), "the Lease as we found it is no renewal");
    v.hear("east", at(10), Settled::Yes);
    v.hear("east", at(20), Settled::Writing);
    v.hear("east", at(30), Settled::Yes);
    assert!(!doubt(&mut v, &["web-1"]), "unsettled in between");
    v.hear("west", at(40), Settled::Yes);
    v.hear("west", at(50), Settled::Yes);
    v.hear("west", at(55), Settled::Yes);
    assert!(!doubt(&mut v, &["web-1"]), "another's word");
    assert!(v.hear("east", at(40), Settled::Yes).contains("web"));
}

#[test]
fn after_a_restore_nothing_is_of_now_before_its_writer_vouches() {
    let mut v = Vouching::new(true);
    v.hear("east", at(0), Settled::Yes);
    assert!(!v.is_current(&"web", "east"));
    v.hear("east", at(10), Settled::Yes);
    assert!(!v.is_current(&"web", "east"));
    assert_eq!(v.hear("east", at(20), Settled::Yes), ["web"].into());
    assert!(v.is_current(&"web", "east"));
    assert!(!v.is_current(&"web", "west"), "never heard of");
    for second in 0..=9 {
        v.hear("west", at(second), Settled::No);
    }
    assert!(!v.is_current(&"web", "west"), "it is blind");
    for second in 10..=14 {
        v.hear("west", at(second), Settled::Writing);
    }
    assert!(!v.is_current(&"web", "west"));
    assert_eq!(
        v.hear("west", at(15), Settled::Writing),
        ["web"].into(),
        "never settled, but there all the time"
    );
    assert!(Vouching::default().is_current(&"web", "west"), "nothing was restored");
}

fn lease(uid: &str, left: bool) -> LeaseView {
    let annotations = serde_json::json!({"multicluster.freeport.dev/left": left.to_string()});
    let metadata = serde_json::json!({"name": "east", "uid": uid, "annotations": annotations});
    serde_json::from_value(serde_json::json!({"metadata": metadata})).unwrap()
}

#[test]
fn a_writer_that_left_for_good_vouches_for_all_and_one_that_is_gone_for_nothing() {
    let mut v = Vouching::default();
    assert_eq!(v.standing("east"), Standing::Unknown);
    assert!(v.change(Change::Apply(lease("u1", false))).is_empty());
    assert_eq!((v.standing("east"), v.uid("east")), (Standing::Belongs, Some("u1".into())));
    assert!(!doubt(&mut v, &["web-1"]));
    assert_eq!(v.change(Change::Reset(vec![])), ["web"].into(), "its Lease is gone");
    assert_eq!(v.standing("east"), Standing::Unknown);
    assert!(!doubt(&mut v, &["web-1"]));
    assert_eq!(v.change(Change::Apply(lease("u2", true))), ["web"].into());
    assert_eq!(v.standing("east"), Standing::Left);
    assert!(doubt(&mut v, &["web-1"]));
}
