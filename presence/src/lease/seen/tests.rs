use serde_json::{Value, json};

use super::*;

fn us() -> Holder {
    Holder { cluster_uid: "u1".into(), instance: "a".into() }
}

fn lease_of(metadata: &Value, spec: &Value) -> LeaseView {
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

/// Held by `holder`, and renewed at this second.
fn lease(holder: &str, second: u8) -> LeaseView {
    let renewed = format!("2026-11-01T12:00:{second:02}Z");
    lease_of(&json!({}), &json!({"holderIdentity": holder, "renewTime": renewed}))
}

fn step(seen: &Seen, now: Instant) -> Step {
    seen.step(&us(), None, now)
}

#[test]
fn another_cluster_is_left_alone_while_it_renews() {
    let t = Instant::now();
    let mut seen = Seen::default();
    assert_eq!(step(&seen, t), Step::Create);
    seen.see(Some(lease("u1/a", 1)), t);
    assert_eq!(step(&seen, t), Step::Renew);
    seen.see(Some(lease("", 3)), t);
    assert_eq!(step(&seen, t), Step::Take);

    seen.see(Some(lease("u2/a", 4)), t);
    assert_eq!(step(&seen, t + STALE / 2), Step::KeepOut);
    seen.see(Some(lease("u2/a", 5)), t + STALE / 2);
    assert_eq!(step(&seen, t + STALE), Step::KeepOut, "it renewed");
    seen.doubtful = true;
    seen.see(Some(lease("u2/a", 5)), t + STALE);
    assert!(!seen.doubtful);
    assert_eq!(step(&seen, t + STALE / 2 + STALE), Step::Take);
}

#[test]
fn a8_processes_of_one_uid_do_not_take_the_lease_from_each_other_again_and_again() {
    let (t, mut seen) = (Instant::now(), Seen::default());
    seen.see(Some(lease("u1/b", 1)), t);
    assert_eq!(seen.kin(&us()), Some("u1/b"));
    for (relation, want) in [
        (Relation::Predecessor, Step::Take),
        (Relation::Newcomer, Step::Take),
        (Relation::Successor, Step::StandBy),
        (Relation::Unknown, Step::StandBy),
        (Relation::Elder, Step::KeepOut),
    ] {
        assert_eq!(seen.step(&us(), Some(relation), t), want);
        assert_eq!(seen.step(&us(), Some(relation), t + STALE), Step::Take, "it is silent");
    }
}

#[test]
fn a8_who_holds_the_lease_hears_of_who_waits_for_it() {
    let (t, mut seen) = (Instant::now(), Seen::default());
    let other = Holder { cluster_uid: "u1".into(), instance: "b".into() };
    let waited_for = |at: &str| {
        let said = waiting(&other, at.parse().unwrap());
        let spec = json!({"holderIdentity": "u1/a", "renewTime": "2026-11-01T12:00:00Z"});
        Some(lease_of(&json!({"annotations": {label::WAITING: said}}), &spec))
    };
    seen.see(waited_for("2026-11-01T12:00:00Z"), t);
    assert_eq!(seen.rival(&us(), t), None, "as we found it, it may be old");
    let later = t + STALE / 3;
    seen.see(waited_for("2026-11-01T12:00:10Z"), later);
    assert_eq!(seen.rival(&us(), later), Some("u1/b"));
    assert_eq!(seen.rival(&other, later), None, "ourselves, before we held it");
    assert_eq!(seen.rival(&us(), later + STALE), None, "it is gone");
    assert_eq!(step(&seen, later), Step::Renew);
    // And that somebody waits is no renewal.
    assert_eq!(seen.step(&other, None, t + STALE), Step::Take);
}

#[test]
fn a1_a_lease_with_a_time_that_we_cannot_hold_is_mended_by_its_holder_and_by_who_comes_after() {
    let (t, mut seen) = (Instant::now(), Seen::default());
    let odd = |holder: &str| {
        let spec = json!({"holderIdentity": holder, "renewTime": "9999-12-31T23:59:59Z"});
        Some(lease_of(&json!({}), &spec))
    };
    seen.see(odd("u1/a"), t);
    assert_eq!(step(&seen, t), Step::Renew);
    seen.see(odd("u1/b"), t);
    assert_eq!(seen.step(&us(), Some(Relation::Predecessor), t), Step::Take);
    seen.see(odd("u2/a"), t);
    assert_eq!((step(&seen, t), step(&seen, t + STALE)), (Step::KeepOut, Step::Take));
}

#[test]
fn a_lease_that_says_something_odd_is_neither_free_at_once_nor_taken_for_ever() {
    let t = Instant::now();
    for (seconds, stale) in [(0, 30), (-1, 30), (6, 6), (i32::MAX, 3600)] {
        let odd = json!({"holderIdentity": "u2/a", "leaseDurationSeconds": seconds});
        let mut seen = Seen::default();
        seen.see(Some(lease_of(&json!({}), &odd)), t);
        let after = |seconds| t + Duration::from_secs(seconds);
        assert_eq!(step(&seen, after(stale - 1)), Step::KeepOut, "{seconds}");
        assert_eq!(step(&seen, after(stale)), Step::Take, "{seconds}");
    }
}

#[test]
fn a8_a_holder_lives_once_it_was_seen_to_renew() {
    let (t, mut seen) = (Instant::now(), Seen::default());
    seen.see(Some(lease("u1/b", 1)), t);
    assert!(!seen.renewed, "it was found so");
    seen.see(Some(lease("u1/b", 1)), t);
    assert!(!seen.renewed, "it stays so");
    seen.see(Some(lease("u1/b", 2)), t);
    assert!(seen.renewed);
    seen.see(Some(lease("u1/c", 3)), t);
    assert!(!seen.renewed, "another one took it");
}
