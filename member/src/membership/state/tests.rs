use serde_json::{Value, json};

use super::*;
use crate::membership::target::client;

pub(in crate::membership) fn desk(change: impl FnOnce(&mut Value)) -> Desk {
    let mut set: Value =
        serde_json::from_str(include_str!("../../../../api/tests/golden/cluster-set-member.json")).unwrap();
    set["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    change(&mut set);
    let mut desk = Desk::default();
    put_set(&mut desk, set);
    let secret = json!({"metadata": {"name": "freeport-leader-token"}, "data": {"token": "c2VjcmV0"}});
    fold(&mut desk.secrets, Change::Apply(serde_json::from_value(secret).unwrap()));
    desk
}

fn put_set(desk: &mut Desk, set: Value) {
    fold(&mut desk.sets, Change::Apply(serde_json::from_value(set).unwrap()));
}

fn claim(desk: &mut Desk, name: &str, value: &str) {
    let claim = json!({"metadata": {"name": name}, "value": value});
    fold(&mut desk.claims, Change::Apply(serde_json::from_value(claim).unwrap()));
}

pub(in crate::membership) fn target() -> Target {
    match desk(|_| {}).course() {
        Course::Link { target, .. } => target,
        _ => panic!(),
    }
}

/// What the desk comes to, in a word.
fn comes_to(desk: &Desk) -> String {
    match desk.course() {
        Course::Nothing => "Nothing".into(),
        Course::Stuck { verdict, .. } => verdict.reason,
        Course::Link { target, .. } => format!("link as {}", target.us.cluster),
        Course::Missing(_) => "Missing".into(),
        Course::Leave { order, .. } => format!("leave: {order:?}"),
    }
}

fn reason(change: impl FnOnce(&mut Value)) -> String {
    comes_to(&desk(change))
}

/// A desk with a note of the membership its ClusterSet asks for.
fn noted() -> Desk {
    let mut desk = desk(|_| {});
    let Course::Link { note, .. } = desk.course() else { panic!() };
    fold(&mut desk.notes, Change::Apply(Note::of("freeport-system", &note)));
    desk
}

#[test]
fn what_is_wrong_is_said() {
    assert_eq!(reason(|_| {}), "link as east");
    assert_eq!(reason(|s| s["spec"]["clusterID"] = json!("Not an ID")), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["leaders"] = json!([])), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["leaders"] = json!("x")), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["namespace"] = Value::Null), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["leaders"][0]["secret"] = json!("other")), "SecretMissing");
    let verdict = client(&target()).err().unwrap();
    assert_eq!(verdict.reason, "InvalidSecret");
    assert!(verdict.message.contains("\"ca.crt\""), "{}", verdict.message);
}

#[test]
fn claims_say_who_we_are_where_the_cluster_set_does_not() {
    let mut desk = desk(|s| s["spec"]["clusterID"] = json!(""));
    let Course::Stuck { verdict, .. } = desk.course() else { panic!() };
    assert_eq!(verdict.reason, "InvalidSpec");
    assert!(verdict.message.contains("spec.clusterID") && verdict.message.contains("id.k8s.io"));
    claim(&mut desk, "id.k8s.io", "north");
    assert_eq!(comes_to(&desk), "link as north");
    claim(&mut desk, "clusterset.k8s.io", "other");
    assert_eq!(comes_to(&desk), "InvalidSpec");
    claim(&mut desk, "clusterset.k8s.io", "demo");
    assert_eq!(comes_to(&desk), "link as north");
    claim(&mut desk, "id.k8s.io", "No ID");
    assert_eq!(comes_to(&desk), "InvalidSpec");
}

#[test]
fn the_oldest_cluster_set_is_ours_unless_another_is_noted() {
    let older = json!({"metadata": {"name": "zoo", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    let mut desk = desk(|_| {});
    put_set(&mut desk, older.clone());
    assert_eq!(desk.chosen().unwrap().name_any(), "zoo");
    let mut noted = noted();
    put_set(&mut noted, older);
    assert_eq!(noted.chosen().unwrap().name_any(), "demo");
}

#[test]
fn who_we_are_cannot_be_changed_in_place_but_the_way_to_the_leader_can() {
    let changed = |change: fn(&mut Value)| {
        let mut desk = desk(change);
        desk.notes = noted().notes;
        comes_to(&desk)
    };
    assert_eq!(changed(|s| s["spec"]["clusterID"] = json!("north")), "IdentityChanged");
    assert_eq!(changed(|s| s["spec"]["namespace"] = json!("clusterset-x")), "IdentityChanged");
    assert_eq!(changed(|s| s["spec"]["leaders"][0]["server"] = json!("https://other")), "link as east");
    assert_eq!(changed(|s| s["spec"]["leaders"][0]["secret"] = json!("other")), "SecretMissing");
}

#[test]
fn a_cluster_set_that_is_gone_is_left_only_when_somebody_decided_that() {
    let mut desk = noted();
    desk.sets.clear();
    assert_eq!(comes_to(&desk), "Missing");
    desk.absence = Some(Absence::Vanished("with its CRD"));
    assert_eq!(comes_to(&desk), "link as east", "imports stay current");
    desk.absence = Some(Absence::Decided);
    assert_eq!(comes_to(&desk), "leave: Withdraw");
    desk.notes.clear();
    assert_eq!(comes_to(&desk), "Nothing", "imports outlive us");
}

#[test]
fn leaving_can_be_ordered_and_what_is_left_is_not_joined_again() {
    let mut desk = noted();
    let mut note = desk.note().unwrap().clone();
    note.data.insert(membership::LEAVE_KEY.into(), membership::LEAVE_FORCED.into());
    fold(&mut desk.notes, Change::Apply(note));
    assert_eq!(comes_to(&desk), "leave: Force");

    desk.notes.clear();
    let mut set = desk.sets["demo"].clone();
    let left = status::Word::from(status::left());
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time("2026-11-02T00:00:00Z".parse().unwrap());
    set.status.0 = Ok(status::desired(&set, &left, &now));
    fold(&mut desk.sets, Change::Apply(set));
    assert_eq!(comes_to(&desk), "Nothing");
}

#[test]
fn a_secret_never_shows() {
    let desk = desk(|_| {});
    assert!(
        !format!("{:?}", desk.secrets).contains("c2VjcmV0") && !format!("{:?}", desk.secrets).contains("115")
    );
}

#[test]
fn what_is_heard_late_of_the_note_is_no_news() {
    let at = |version: &str, leaving: bool| {
        let note = Note::of("freeport-system", &noted().noted().unwrap());
        let mut note = if leaving { note.leaving() } else { note };
        note.metadata.resource_version = Some(version.into());
        note
    };
    let mut desk = Desk::default();
    desk.told_of_note(Change::Apply(at("10", true)));
    desk.answered_note(at("9", false));
    assert!(desk.note().unwrap().order().is_some(), "the answer to our write, after what came later");
    desk.told_of_note(Change::Remove(at("12", true)));
    desk.answered_note(at("11", true));
    assert!(desk.note().is_none(), "it is gone");
    desk.answered_note(at("14", false));
    desk.told_of_note(Change::Remove(at("13", true)));
    assert!(desk.note().is_some(), "another one");
}

#[test]
fn a_cluster_set_that_was_deleted_while_its_status_was_written_is_gone() {
    let mut desk = desk(|_| {});
    let mut set = desk.sets.remove("demo").unwrap();
    set.metadata.resource_version = Some("9".into());
    let mut gone = set.clone();
    gone.metadata.resource_version = Some("10".into());
    desk.told_of_sets(Change::Remove(gone));
    desk.begun = noted().noted();
    desk.answered_set(set);
    assert!(matches!(desk.course(), Course::Missing(_)));
    desk.forget_unnoted();
    assert!(desk.course() == Course::Nothing, "nothing had begun");
}
