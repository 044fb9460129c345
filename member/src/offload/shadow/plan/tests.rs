use std::collections::BTreeMap;

use api::offload::{
    seal::{KEY_LENGTH, seal},
    travel::travelling,
};
use kit::index::Part;
use serde_json::Value;

use super::*;

fn key(byte: u8) -> PrivateKey {
    PrivateKey::read(&[byte; KEY_LENGTH]).unwrap()
}

/// What west asks for: a Pod in twin `shop-west`, sealed for key 1.
fn spec(uid: &str, more: &Value) -> ShadowPodSpec {
    let mut spec = json!({
        "origin": "west", "destination": "east", "namespace": "shop-west", "pod": "web", "uid": uid, "sealed": "",
    });
    merge(&mut spec, more);
    let mut spec: ShadowPodSpec = serde_json::from_value(spec).unwrap();
    let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let content = serde_json::to_vec(&travelling(&pod).unwrap()).unwrap();
    spec.sealed = seal(&content, &spec.about(), &key(1).public(), &key(2)).unwrap();
    spec
}

fn merge(into: &mut Value, more: &Value) {
    more.as_object().unwrap().iter().for_each(|(field, value)| into[field] = value.clone());
}

fn record(spec: &ShadowPodSpec, status: &Value) -> PeerPod {
    let metadata =
        json!({"name": spec.name(), "namespace": "area", "creationTimestamp": "2026-11-01T12:00:00Z"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn hosted(labels: &Value, metadata: &Value, phase: &str) -> HostedPod {
    let mut all = json!({"name": "web", "namespace": "shop-west", "uid": "there", "labels": labels});
    merge(&mut all, metadata);
    serde_json::from_value(json!({"metadata": all, "status": {"phase": phase}})).unwrap()
}

fn own(uid: &str, metadata: &Value, phase: &str) -> HostedPod {
    let labels = json!({
        "liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": "west",
        "offloading.liqo.io/destination": "east", "multicluster.freeport.dev/origin-uid": uid,
    });
    hosted(&labels, metadata, phase)
}

fn entry(records: &[PeerPod], pod: Option<&HostedPod>) -> ShadowEntry {
    let mut entry = ShadowEntry::default();
    for record in records {
        assert_eq!(record.key().as_deref(), Some("shop-west/web"));
        let _ = record.clone().put(&mut entry);
    }
    entry.pod = pod.cloned();
    entry
}

fn around<'a>(_: &ShadowPodSpec, key: Option<&'a PrivateKey>) -> Around<'a> {
    Around { us: "east", refusal: None, is_of_home: true, has_twin: true, is_current: true, key }
}

fn word(step: &Step) -> &'static str {
    match step {
        Step::Create { .. } => "create",
        Step::Keep(_) => "keep",
        Step::Delete(..) => "delete",
        Step::Confirm(_) => "confirm",
        Step::Gone => "gone",
        Step::Refuse(why) => why.reason,
        Step::Leave => "leave",
    }
}

/// What becomes of the record of a Pod with uid `u1`.
fn becomes(
    more: &Value,
    status: &Value,
    pod: Option<&HostedPod>,
    change: impl Fn(&mut Around<'_>),
) -> &'static str {
    let (record, key) = (record(&spec("u1", more), status), key(1));
    let entry = entry(&[record], pod);
    let steps = plan(&entry, |spec| {
        let mut around = around(spec, Some(&key));
        change(&mut around);
        around
    });
    let [Planned { step, .. }] = &steps[..] else { panic!("{steps:?}") };
    word(step)
}

#[test]
fn a_record_is_held_against_its_pod() {
    let (new, none) = (json!({}), json!({}));
    let asked = |change: &dyn Fn(&mut Around<'_>)| becomes(&new, &none, None, change);
    assert_eq!(asked(&|_| ()), "create");
    assert_eq!(asked(&|a| a.refusal = Some(Refusal::NotAccepted { home: "west".into() })), "NotAccepted");
    assert_eq!(asked(&|a| a.has_twin = false), "NoTwin");
    assert_eq!(asked(&|a| a.is_current = false), "leave", "its home may have taken it back before a restore");
    assert_eq!(asked(&|a| a.key = None), "CannotOpen");
    assert_eq!(asked(&|a| a.us = "north"), "leave");
    let there = own("u1", &json!({}), "Running");
    let stays = |change: &dyn Fn(&mut Around<'_>)| becomes(&new, &none, Some(&there), change);
    assert_eq!(stays(&|_| ()), "keep");
    assert_eq!(stays(&|a| (a.has_twin, a.key) = (false, None)), "keep", "what is there stays");
    for foreign in [own("u0", &json!({}), "Running"), hosted(&json!({}), &json!({}), "Running")] {
        assert_eq!(becomes(&new, &none, Some(&foreign), |_| ()), "NameTaken");
    }
    for phase in ["Succeeded", "Failed"] {
        let ended = json!({"pod": {"phase": phase}});
        assert_eq!(becomes(&new, &ended, None, |_| ()), "leave", "never again");
    }
    assert_eq!(
        becomes(&new, &json!({"pod": {"phase": "Running"}}), None, |_| ()),
        "create",
        "somebody deleted it"
    );
}

#[test]
fn a_pod_goes_when_its_home_says_so() {
    let asked = |grace: Option<i32>| json!({"deletion": grace.map_or(json!({}), |s| json!({"gracePeriodSeconds": s}))});
    let (there, none) = (own("u1", &json!({}), "Running"), json!({}));
    assert_eq!(becomes(&asked(Some(5)), &none, Some(&there), |_| ()), "delete");
    assert_eq!(becomes(&asked(None), &none, Some(&there), |a| a.has_twin = false), "delete");
    let going = json!({"deletionTimestamp": "2026-11-01T12:00:00Z", "deletionGracePeriodSeconds": 30});
    let going = own("u1", &going, "Running");
    assert_eq!(becomes(&asked(Some(30)), &none, Some(&going), |_| ()), "leave");
    assert_eq!(becomes(&asked(None), &none, Some(&going), |_| ()), "leave");
    assert_eq!(becomes(&asked(Some(0)), &none, Some(&going), |_| ()), "delete", "it is to have less time");
    assert_eq!(becomes(&asked(None), &none, None, |_| ()), "confirm");
    let another = own("u2", &json!({}), "Running");
    assert_eq!(becomes(&asked(None), &none, Some(&another), |_| ()), "confirm");
    assert_eq!(becomes(&asked(None), &json!({"deleted": true}), None, |_| ()), "leave");
    assert_eq!(
        becomes(&asked(None), &none, Some(&there), |a| a.is_of_home = false),
        "gone",
        "nothing is its own"
    );
}

#[test]
fn a_pod_that_does_not_say_for_which_it_was_made_is_of_the_first() {
    let (none, key) = (json!({}), key(1));
    let written = json!({"managedFields": [{"manager": "freeport-member", "operation": "Apply"}]});
    let pod = hosted(&json!({}), &written, "Running");
    let ends = record(&spec("u9", &json!({"deletion": {}})), &none);
    let mut comes = record(&spec("u1", &none), &none);
    comes.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-01T12:00:01Z")).unwrap();
    let entry = entry(&[ends, comes], Some(&pod));
    let words = plan(&entry, |spec| around(spec, Some(&key))).into_iter();
    let words: BTreeMap<_, _> = words.map(|it| (it.spec.uid.clone(), word(&it.step))).collect();
    assert_eq!(words, [("u1".to_owned(), "NameTaken"), ("u9".to_owned(), "delete")].into());
}

#[test]
fn of_two_records_about_one_name_the_last_gets_it_and_one_waits_until_the_other_pod_has_gone() {
    let (old, new) = (spec("u1", &json!({})), spec("u2", &json!({})));
    let old = record(&old, &json!({}));
    let mut new = record(&new, &json!({}));
    new.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-01T12:00:01Z")).unwrap();
    let key = key(1);
    let words = |records: &[PeerPod], pod: Option<&HostedPod>| -> Vec<_> {
        let entry = entry(records, pod);
        let steps = plan(&entry, |spec| around(spec, Some(&key)));
        steps.iter().map(|planned| format!("{} {}", planned.spec.uid, word(&planned.step))).collect()
    };
    let both = [new.clone(), old.clone()];
    assert_eq!(words(&both, None), ["u1 NameTaken", "u2 create"]);
    assert_eq!(words(&both, Some(&own("u1", &json!({}), "Running"))), ["u1 keep", "u2 NameTaken"]);
    let going = record(&spec("u1", &json!({"deletion": {}})), &json!({}));
    assert_eq!(
        words(&[going.clone(), new.clone()], Some(&own("u1", &json!({}), "Running"))),
        ["u1 delete", "u2 NameTaken"]
    );
    assert_eq!(words(&[going, new], None), ["u1 confirm", "u2 create"]);
}

/// North was accepted too, but the twin is west's.
#[test]
fn a_name_is_not_kept_from_its_home_by_what_another_asks_for() {
    let west = record(&spec("u1", &json!({})), &json!({}));
    let mut north = record(&spec("u2", &json!({"origin": "north"})), &json!({}));
    north.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-01T12:00:01Z")).unwrap();
    let (key, entry) = (key(1), entry(&[west, north], None));
    let words = |with_twin: &str, accepted: &[&str]| -> Vec<_> {
        let steps = plan(&entry, |spec| {
            let has_twin = spec.origin == with_twin;
            let home = || spec.origin.clone();
            let is_accepted = accepted.contains(&spec.origin.as_str());
            let refusal = (!is_accepted).then(|| Refusal::NotAccepted { home: home() });
            Around { is_of_home: has_twin, has_twin, refusal, ..around(spec, Some(&key)) }
        });
        steps.iter().map(|planned| format!("{} {}", planned.spec.origin, word(&planned.step))).collect()
    };
    assert_eq!(words("west", &["west", "north"]), ["west create", "north NoTwin"]);
    assert_eq!(words("north", &["west", "north"]), ["north create", "west NoTwin"]);
    assert_eq!(words("west", &["north"]), ["west NotAccepted", "north NoTwin"]);
}

#[test]
fn in_the_namespace_of_another_nothing_is_of_this_home() {
    let (deletion, none) = (json!({"deletion": {}}), json!({}));
    let foreign = |around: &mut Around<'_>| (around.is_of_home, around.has_twin) = (false, false);
    let fields =
        json!({"managedFields": [{"manager": "freeport-member", "operation": "Apply", "apiVersion": "v1"}]});
    let stripped = hosted(&none, &fields, "Running");
    let of_no_home = hosted(&json!({"multicluster.freeport.dev/origin-uid": "u1"}), &none, "Running");
    for there in [stripped, of_no_home, own("u1", &none, "Running")] {
        assert_eq!(becomes(&none, &none, Some(&there), foreign), "NoTwin");
        assert_eq!(becomes(&deletion, &none, Some(&there), foreign), "gone");
        assert_eq!(becomes(&deletion, &json!({"deleted": true}), Some(&there), foreign), "leave");
    }
    assert_eq!(becomes(&deletion, &none, None, foreign), "gone");
    let (record, key) = (record(&spec("u1", &none), &none), key(1));
    let entry = entry(&[record], Some(&own("u1", &none, "Running")));
    let steps =
        plan(&entry, |spec| Around { is_of_home: false, has_twin: false, ..around(spec, Some(&key)) });
    assert_eq!(steps[0].own, None, "nor is its home told how it is");
}

#[test]
fn what_has_no_label_may_be_of_a_record_that_was_there_before() {
    let (key, none) = (key(1), json!({}));
    let mut newer = record(&spec("u2", &none), &none);
    newer.metadata.creation_timestamp = serde_json::from_value(json!("2026-11-01T12:00:01Z")).unwrap();
    let is_first = |status: &Value| {
        let older = record(&spec("u1", &json!({"deletion": {}})), status);
        let entry = entry(&[older, newer.clone()], None);
        let steps = plan(&entry, |spec| around(spec, Some(&key)));
        steps.iter().find_map(|planned| match planned.step {
            Step::Create { is_first, .. } => Some(is_first),
            _ => None,
        })
    };
    assert_eq!(is_first(&none), Some(false), "it has not ended");
    assert_eq!(is_first(&json!({"deleted": true})), Some(true));
}

#[test]
fn a_record_without_room_waits_but_its_pod_stays_and_goes_as_ever() {
    let key = key(1);
    let step = |more: &Value, pod: Option<&HostedPod>| {
        let record = record(&spec("u1", more), &json!({})).without_content();
        let entry = entry(&[record], pod);
        let steps = plan(&entry, |spec| around(spec, Some(&key)));
        word(&steps[0].step)
    };
    let there = own("u1", &json!({}), "Running");
    assert_eq!(step(&json!({}), None), "TooManyPods");
    assert_eq!(step(&json!({}), Some(&there)), "keep");
    assert_eq!(step(&json!({"deletion": {}}), Some(&there)), "delete");
    assert_eq!(step(&json!({"deletion": {}}), None), "confirm");
}

#[test]
fn what_cannot_be_made_says_why() {
    let ours = key(1);
    let why = |spec: &ShadowPodSpec| made(spec, Some(&ours)).unwrap_err();
    let good = spec("u1", &json!({}));
    let sealed = |content: &Value| {
        let text = seal(content.to_string().as_bytes(), &good.about(), &ours.public(), &key(2)).unwrap();
        ShadowPodSpec { sealed: text, ..good.clone() }
    };
    assert_eq!(why(&ShadowPodSpec { sealed: "x".into(), ..good.clone() }).reason, "CannotOpen");
    let moved = ShadowPodSpec { namespace: "other-west".into(), ..good.clone() };
    assert_eq!(why(&moved).reason, "CannotOpen", "it was sealed for another Namespace");
    assert_eq!(made(&good, Some(&key(3))).unwrap_err().reason, "CannotOpen");
    assert_eq!(why(&sealed(&json!(7))).reason, "CannotOpen");
    let volume = json!({"name": "v", "hostPath": {"path": "/"}});
    let refused = why(&sealed(&json!({"spec": {"containers": [], "volumes": [volume]}})));
    assert_eq!(refused.reason, "FieldRefused");
    assert!(refused.message.contains("spec.volumes[v].hostPath"), "{}", refused.message);
}

#[test]
fn labels_of_the_home_come_and_go_and_others_stay() {
    let (spec, key) = (spec("u1", &json!({})), key(1));
    let new = made(&spec, Some(&key)).unwrap();
    assert_eq!((new.name_any().as_str(), new.namespace().as_deref()), ("web", Some("shop-west")));
    assert_eq!(new.labels()["app"], "web");
    let note = &new.annotations()[general::EXPORTED_METADATA];
    assert!(note.contains("\"app\"") && note.contains("origin-uid"), "{note}");
    let entry = entry(&[record(&spec, &json!({}))], Some(&HostedPod::from(new)));
    let again = plan(&entry, |spec| around(spec, Some(&key)));
    let [Planned { step: Step::Keep(want), .. }] = &again[..] else { panic!("{again:?}") };
    assert_eq!(Some(&**want), entry.pod.as_ref(), "nothing to write");
}

#[test]
fn a_state_is_of_the_pod_that_its_home_asked_for() {
    let (asked, deletion) = (spec("u1", &json!({})), spec("u1", &json!({"deletion": {}})));
    let said = |phase: &str| -> ShadowPodStatus {
        serde_json::from_value(json!({"pod": {"phase": phase}})).unwrap()
    };
    let phase = |spec, have: &ShadowPodStatus, pod: Option<&HostedPod>| state(spec, have, pod)?.phase;
    let some = |phase: &str| Some(phase.to_owned());
    let pod = |phase: &str| own("u1", &json!({}), phase);
    let going = |phase: &str| own("u1", &json!({"deletionTimestamp": "2026-11-01T12:00:00Z"}), phase);
    assert_eq!(phase(&asked, &said("Pending"), Some(&pod("Running"))), some("Running"));
    assert_eq!(phase(&asked, &said("Running"), Some(&going("Failed"))), some("Running"), "it comes again");
    assert_eq!(phase(&asked, &said("Succeeded"), Some(&going("Succeeded"))), some("Succeeded"));
    assert_eq!(phase(&deletion, &said("Running"), Some(&going("Failed"))), some("Failed"));
    assert_eq!(phase(&asked, &said("Running"), None), None, "there is none");
    assert_eq!(phase(&asked, &said("Succeeded"), None), some("Succeeded"));
    assert_eq!(phase(&deletion, &said("Running"), None), some("Running"));
}
