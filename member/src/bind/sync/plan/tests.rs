use std::sync::Arc;

use api::bind::label::{BINDING_UID, CLUSTER_NAMESPACE, CONSUMER_UID};

use super::*;
use crate::home::Lost;

const CNS: &str = "kube-bind-37p3oxx6sh4fd";

fn pair(here: Option<Value>, there: Option<Value>) -> Pair {
    Pair {
        here: here.map(|here| Arc::new(serde_json::from_value(here).unwrap())),
        there: there.map(|there| Arc::new(serde_json::from_value(there).unwrap())),
        ..Pair::default()
    }
}

/// Of a contract in which all is well.
fn rules(cluster_namespace: &ClusterNamespace) -> Rules<'_> {
    Rules {
        strategy: Strategy::Namespaced,
        cluster_namespace,
        binding_uid: "b1",
        is_ending: false,
        orphan: false,
        is_unserved: false,
        gaps: Gaps::default(),
        not_assigned: None,
    }
}

fn step(pair: &Pair) -> Step {
    step_of(pair, Strategy::Namespaced, Some("kube-bind-37p3oxx6sh4fd-team1"), "foo")
}

fn step_of(pair: &Pair, strategy: Strategy, assigned: Option<&str>, name: &str) -> Step {
    let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
    let rules = Rules { strategy, ..rules(&cluster_namespace) };
    let namespace = (strategy == Strategy::Namespaced).then(|| "team1".to_owned());
    next(&Place { namespace, name: name.into() }, pair, &rules, assigned)
}

fn live(more: Value) -> Value {
    let mut object =
        json!({"metadata": {"name": "foo", "namespace": "team1", "uid": "u1"}, "spec": {"size": "l"}});
    merge(&mut object, more);
    object
}

fn held(more: Value) -> Value {
    let mut object = live(json!({"metadata": {"finalizers": [FINALIZER]}}));
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, more) => *into = more,
    }
}

fn going() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}})
}

fn copied(more: Value) -> Value {
    let annotations = json!({CLUSTER_NAMESPACE: CNS, "kube-bind.io/consumer-namespace": "team1", CONSUMER_UID: "u1",
            BINDING_UID: "b1"});
    let owned: Map<_, _> =
        annotations.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({}))).collect();
    let fields = json!({"f:metadata": {"f:annotations": owned}, "f:spec": {"f:size": {}}});
    let mut object = json!({
        "metadata": {"name": "foo", "namespace": "there", "uid": "p1", "annotations": annotations,
            "managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}]},
        "spec": {"size": "l"},
    });
    merge(&mut object, more);
    object
}

#[test]
fn m7_without_a_namespace_at_the_provider_one_is_asked_for() {
    let pair = pair(Some(live(json!({}))), None);
    assert_eq!(step_of(&pair, Strategy::Namespaced, None, "foo"), Step::Assign("team1".into()));
}

#[test]
fn b11_when_the_export_ends_no_namespace_is_asked_for_and_nothing_waits_for_one() {
    let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
    let rules = Rules { is_ending: true, ..rules(&cluster_namespace) };
    let at = Place { namespace: Some("team1".into()), name: "foo".into() };
    assert_eq!(next(&at, &pair(Some(live(json!({}))), None), &rules, None), Step::Rest);
    assert_eq!(next(&at, &pair(Some(held(going())), None), &rules, None), Step::Release);
}

#[test]
fn m8_a_name_that_is_too_long_fails_before_anything_is_written() {
    let name = "n".repeat(230);
    let object = json!({"metadata": {"name": name, "uid": "u1"}});
    let fails = step_of(&pair(Some(object), None), Strategy::Prefixed, None, &name);
    assert_eq!(fails, Step::Fail(Problem::NameTooLong(254)));
}

#[test]
fn the_finalizer_comes_before_the_copy() {
    assert_eq!(step(&pair(Some(live(json!({}))), None)), Step::Hold);
    let Step::Apply(place, want) = step(&pair(Some(held(json!({}))), None)) else { panic!("not applied") };
    assert_eq!(place, Place::within("kube-bind-37p3oxx6sh4fd-team1", "foo"));
    assert_eq!(want["spec"], json!({"size": "l"}));
}

#[test]
fn t1_t2_t8_t16_what_differs_is_written_and_nothing_else() {
    let applied = |here: Value, there: Value| matches!(step(&pair(Some(here), Some(there))), Step::Apply(..));
    assert!(applied(held(json!({"spec": {"size": "s"}})), copied(json!({}))));
    assert!(applied(held(json!({"spec": {"size": "l", "more": null}})), copied(json!({}))));
    let taken_out = json!({"metadata": {"managedFields": [{"manager": MANAGER, "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:size": {}, "f:gone": {}}}}]}, "spec": {"gone": 1}});
    assert!(applied(held(json!({})), copied(taken_out)), "what the consumer takes out goes");
    assert!(!applied(held(json!({})), copied(json!({"spec": {"theirs": 1}}))), "what others add stays");
    let settled = json!({"metadata": {"annotations": {PROVIDER_NAMESPACE: "there", PROVIDER_UID: "p1"}}});
    assert_eq!(step(&pair(Some(held(settled.clone())), Some(copied(json!({}))))), Step::Rest);
    let phase = json!({"status": {"phase": "Ready"}});
    let down = step(&pair(Some(held(settled.clone())), Some(copied(phase.clone()))));
    assert_eq!(down, Step::Status(Some(json!({"phase": "Ready"}))));
    let mut both = settled;
    merge(&mut both, phase);
    assert_eq!(step(&pair(Some(held(both)), Some(copied(json!({}))))), Step::Status(None));
    assert!(matches!(step(&pair(Some(held(json!({}))), Some(copied(json!({}))))), Step::Annotate(_)));
}

#[test]
fn what_the_other_side_does_not_keep_is_sent_once() {
    let here = held(
        json!({"spec": {"pruned": 1}, "metadata": {"annotations": {PROVIDER_NAMESPACE: "there", PROVIDER_UID: "p1"}}}),
    );
    let mut pair = pair(Some(here), Some(copied(json!({}))));
    let Step::Apply(_, want) = step(&pair) else { panic!("not applied") };
    pair.applied = Some((want, Pair::essence(pair.there.as_deref().unwrap())));
    assert_eq!(step(&pair), Step::Rest);
}

#[test]
fn t13_t17_y4_what_is_anothers_or_going_is_left_alone() {
    let of = |more: Value| step(&pair(Some(held(json!({}))), Some(copied(more))));
    assert!(!matches!(of(going()), Step::Apply(..) | Step::Delete));
    let anothers =
        json!({"metadata": {"annotations": {CLUSTER_NAMESPACE: "B"}}, "status": {"phase": "secret"}});
    assert_eq!(of(anothers.clone()), Step::Fail(Problem::OwnedByAnother("B".into())));
    let nobodys = json!({"metadata": {"name": "foo", "uid": "p1"}});
    assert_eq!(step(&pair(Some(held(json!({}))), Some(nobodys.clone()))), Step::Fail(Problem::NotOurs));
    assert_eq!(step(&pair(None, Some(nobodys))), Step::Rest, "D1, T14");
    let gone = step(&pair(Some(held(going())), Some(copied(anothers.clone()))));
    assert_eq!(gone, Step::Release, "deleting ours does not delete theirs");
    assert_eq!(step(&pair(None, Some(copied(anothers)))), Step::Rest, "Y3");
}

#[test]
fn x1_x2_x5_the_finalizer_stays_until_the_copy_is_gone() {
    let held_and_going = || Some(held(going()));
    assert_eq!(step(&pair(held_and_going(), Some(copied(json!({}))))), Step::Delete);
    assert_eq!(step(&pair(held_and_going(), None)), Step::Release);
    assert_eq!(step(&pair(None, Some(copied(json!({}))))), Step::Delete, "somebody took the finalizer off");
    let mut without = live(going());
    merge(&mut without, json!({"metadata": {"uid": "u2"}}));
    assert_eq!(step(&pair(Some(without), Some(copied(json!({}))))), Step::Rest, "it never had one");
}

/// Whatever ended that one: copies are to stay, it was let go by force, or with `--cascade=orphan`.
#[test]
fn a_copy_that_another_binding_left_stays_until_an_object_takes_it_over() {
    let by = |uid: Value| copied(json!({"metadata": {"annotations": {BINDING_UID: uid}}}));
    let mut gos = copied(json!({}));
    gos["metadata"]["annotations"].as_object_mut().unwrap().remove(BINDING_UID);
    for left in [by(json!("b0")), gos.clone()] {
        assert_eq!(step(&pair(None, Some(left.clone()))), Step::Rest);
        let was_here = Pair { was_here: true, ..pair(None, Some(left)) };
        assert_eq!(step(&was_here), Step::Rest, "its object came and went before it took the copy over");
    }
    let new = |more: Value| {
        let mut new = held(json!({"metadata": {"uid": "u2"}}));
        merge(&mut new, more);
        new
    };
    assert_eq!(step(&pair(Some(new(going())), Some(by(json!("b0"))))), Step::Release);
    assert_eq!(
        step(&pair(Some(new(going())), Some(by(json!("b1"))))),
        Step::Delete,
        "ours, of an older object"
    );
    assert_eq!(step(&pair(Some(held(going())), Some(gos))), Step::Delete, "its own");
    let taken = step(&pair(Some(new(json!({}))), Some(by(json!("b0")))));
    let Step::Apply(_, want) = taken else { panic!("not taken over") };
    assert_eq!(want["metadata"]["annotations"][BINDING_UID], "b1");
}

/// Its operator takes its time, and says why.
#[test]
fn the_status_of_a_copy_that_goes_comes_down_until_it_is_gone() {
    let mut leaving = copied(going());
    merge(&mut leaving, json!({"status": {"phase": "Draining"}}));
    let knows = json!({"metadata": {"annotations": {PROVIDER_NAMESPACE: "there", PROVIDER_UID: "p1"}}});
    let here = |more| {
        let mut here = held(more);
        merge(&mut here, knows.clone());
        here
    };
    for more in [json!({}), going()] {
        let status = step(&pair(Some(here(more.clone())), Some(leaving.clone())));
        assert_eq!(status, Step::Status(Some(json!({"phase": "Draining"}))), "{more}");
        let mut told = here(more);
        merge(&mut told, json!({"status": {"phase": "Draining"}}));
        assert_eq!(step(&pair(Some(told), Some(leaving.clone()))), Step::Rest);
    }
    let mut anothers = leaving;
    merge(&mut anothers, json!({"metadata": {"annotations": {CLUSTER_NAMESPACE: "B"}}}));
    assert_eq!(step(&pair(Some(here(going())), Some(anothers))), Step::Release, "it is not for us");
}

#[test]
fn x10_a_new_object_takes_the_copy_of_its_name_over() {
    let new = held(json!({"metadata": {"uid": "u2"}}));
    let Step::Apply(_, want) = step(&pair(Some(new), Some(copied(json!({}))))) else { panic!("not applied") };
    assert_eq!(want["metadata"]["annotations"][CONSUMER_UID], "u2");
}

#[test]
fn c1_what_gos_konnector_created_is_ours_before_anything_is_applied() {
    let fields = json!({"f:spec": {"f:size": {}, "f:gone": {}}});
    let created = json!({"metadata": {"managedFields": [{"manager": "konnector", "operation": "Update", "fieldsV1": fields}]},
        "spec": {"gone": 1}});
    let Step::TakeOver(all) = step(&pair(Some(held(json!({}))), Some(copied(created)))) else {
        panic!("not taken over")
    };
    let [ours] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((ours.manager.as_deref(), ours.operation.as_deref()), (Some(MANAGER), Some("Apply")));
    assert_eq!(ours.fields_v1.as_ref().unwrap().0, fields);
}

#[test]
fn what_was_taken_over_from_its_owner_is_never_deleted() {
    let adopt = json!({"metadata": {"annotations": {api::bind::label::ADOPT: "true"}}});
    let nobodys =
        json!({"metadata": {"name": "foo", "uid": "p1", "annotations": {api::bind::label::ADOPT: "true"}}});
    assert!(matches!(step(&pair(Some(held(json!({}))), Some(nobodys.clone()))), Step::Apply(..)));
    assert_eq!(step(&pair(Some(held(going())), Some(nobodys))), Step::Release);
    assert_eq!(step(&pair(Some(held(going())), Some(copied(adopt.clone())))), Step::Release);
    assert_eq!(step(&pair(None, Some(copied(adopt.clone())))), Step::Rest);
    assert_eq!(step(&pair(Some(live(going())), Some(copied(adopt)))), Step::Rest);
}

#[test]
fn what_is_only_offered_is_no_copy_while_the_export_ends() {
    let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
    let rules = Rules { is_ending: true, ..rules(&cluster_namespace) };
    let at = Place::within("team1", "foo");
    let status = json!({"status": {"phase": "Ready"}});
    let mut offered =
        json!({"metadata": {"name": "foo", "uid": "p1", "annotations": {api::bind::label::ADOPT: "true"}}});
    merge(&mut offered, status.clone());
    for here in [live(json!({})), held(json!({}))] {
        let pair = pair(Some(here), Some(offered.clone()));
        assert_eq!(next(&at, &pair, &rules, Some("there")), Step::Rest, "no finalizer, and no status of it");
    }
    let ours = pair(Some(held(json!({}))), Some(copied(status.clone())));
    assert_eq!(next(&at, &ours, &rules, Some("there")), Step::Status(Some(status["status"].clone())));
}

#[test]
fn d8_what_a_backup_may_lack_keeps_its_copy_unless_it_was_here_since() {
    let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
    let at = |text: &str| text.parse().unwrap();
    let restored = Lost::between(at("2026-11-01T12:00:00Z"), at("2026-11-01T13:00:00Z"));
    let rules =
        Rules { gaps: Gaps { restored: Some(restored), unserved: None }, ..rules(&cluster_namespace) };
    let of = |made: &str, was_here: bool| {
        let copy = copied(json!({"metadata": {"creationTimestamp": made}}));
        let pair = Pair { was_here, ..pair(None, Some(copy)) };
        next(&Place::within("team1", "foo"), &pair, &rules, Some("there"))
    };
    assert_eq!(of("2026-11-01T12:30:00Z", false), Step::Fail(Problem::LostByRestore));
    assert_eq!(of("2026-11-01T12:30:00Z", true), Step::Delete, "X5: it was seen going");
    assert_eq!(of("2026-11-01T14:00:00Z", false), Step::Delete);
    let again = pair(Some(held(json!({"metadata": {"uid": "u2"}}))), Some(copied(json!({}))));
    let again = next(&Place::within("team1", "foo"), &again, &rules, Some("there"));
    assert!(matches!(again, Step::Apply(..)), "who makes it again has its copy");
}

#[test]
fn what_gets_no_namespace_at_the_provider_says_so_and_does_not_hang() {
    let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
    let rules = Rules { not_assigned: Some("SystemNamespace: no"), ..rules(&cluster_namespace) };
    let of = |object: Value| next(&Place::within("team1", "foo"), &pair(Some(object), None), &rules, None);
    assert_eq!(of(live(json!({}))), Step::Fail(Problem::NotAssigned("SystemNamespace: no".into())));
    assert_eq!(of(held(going())), Step::Release);
}

#[test]
fn x8_what_goes_does_not_wait_for_a_copy_of_an_api_that_the_provider_does_not_serve_any_more() {
    let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
    let rules = Rules { is_unserved: true, ..rules(&cluster_namespace) };
    let of = |object: Value, there: Option<Value>| {
        next(&Place::within("team1", "foo"), &pair(Some(object), there), &rules, Some("there"))
    };
    assert_eq!(of(held(going()), None), Step::LetGo);
    assert_eq!(of(held(going()), Some(copied(json!({})))), Step::LetGo, "it was seen before");
    assert_eq!(of(live(going()), None), Step::Rest, "somebody else holds it");
    assert_eq!(of(live(json!({})), None), Step::Hold, "what stays is kept in step when the API is back");
}
