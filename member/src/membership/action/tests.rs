use api::{label, membership};
use kit::objects::{Change, Objects};
use serde_json::{Value, json};

use super::*;
use crate::membership::{
    fixture::{put_set, state, target},
    status, verdict,
};

fn claim(state: &mut MembershipState, name: &str, value: &str) {
    let claim = json!({"metadata": {"name": name}, "value": value});
    state.claims.change(Change::Apply(serde_json::from_value(claim).unwrap()));
}

/// What has to be done, in a word.
fn action(state: &MembershipState) -> String {
    match state.action() {
        Action::Nothing => "Nothing".into(),
        Action::Wait { verdict, .. } => verdict.reason,
        Action::Connect { target, .. } => format!("connect as {}", target.us.cluster),
        Action::FindOut(_) => "FindOut".into(),
        Action::Leave { order, .. } => format!("leave: {order:?}"),
    }
}

fn reason(change: impl FnOnce(&mut Value)) -> String {
    action(&state(change))
}

/// A state with a note of the membership its ClusterSet asks for.
fn noted() -> MembershipState {
    let mut state = state(|_| {});
    let Action::Connect { note, .. } = state.action() else { panic!() };
    state.notes.change(Change::Apply(Note::of("freeport-system", &note)));
    state
}

#[test]
fn what_is_wrong_is_said() {
    assert_eq!(reason(|_| {}), "connect as east");
    assert_eq!(reason(|s| s["spec"]["clusterID"] = json!("Not an ID")), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["leaders"] = json!([])), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["leaders"] = json!("x")), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["namespace"] = Value::Null), "InvalidSpec");
    assert_eq!(reason(|s| s["spec"]["leaders"][0]["secret"] = json!("other")), "SecretMissing");
    let verdict =
        verdict::no_client(&target().client(&kit::client::Dial::default()).err().unwrap(), &target());
    assert_eq!(verdict.reason, "InvalidSecret");
    assert!(verdict.message.contains("\"ca.crt\""), "{}", verdict.message);
}

#[test]
fn a_proxy_and_a_name_of_the_certificate_are_annotations_and_another_way_is_another_session() {
    let via = |proxy: &str| {
        let annotations = json!({label::PROXY_URL: proxy, label::TLS_SERVER_NAME: "leader.example"});
        let state = state(|set| set["metadata"]["annotations"] = annotations);
        let Action::Connect { target, note } = state.action() else { panic!() };
        (target, note.via)
    };
    let ((by, said), (by_other, _)) = (via("http://proxy:3128"), via("http://other:3128"));
    assert_eq!(said.proxy.as_deref(), Some("http://proxy:3128"));
    assert_eq!(said.server_name.as_deref(), Some("leader.example"));
    assert!(by == via("http://proxy:3128").0 && by != by_other && by != target());
    assert_eq!(via("").1.proxy, None);
}

#[test]
fn claims_say_who_we_are_where_the_cluster_set_does_not() {
    let mut state = state(|s| s["spec"]["clusterID"] = json!(""));
    let Action::Wait { verdict, .. } = state.action() else { panic!() };
    assert_eq!(verdict.reason, "InvalidSpec");
    assert!(verdict.message.contains("spec.clusterID") && verdict.message.contains("id.k8s.io"));
    claim(&mut state, "id.k8s.io", "north");
    assert_eq!(action(&state), "connect as north");
    claim(&mut state, "clusterset.k8s.io", "other");
    assert_eq!(action(&state), "InvalidSpec");
    claim(&mut state, "clusterset.k8s.io", "demo");
    assert_eq!(action(&state), "connect as north");
    claim(&mut state, "id.k8s.io", "No ID");
    assert_eq!(action(&state), "InvalidSpec");
}

#[test]
fn r73_a_property_that_somebody_changes_ends_no_membership_that_got_its_id_there() {
    let mut state = state(|s| s["spec"]["clusterID"] = json!(""));
    let says = |state: &mut MembershipState, id: &str| {
        let property = json!({"metadata": {"name": about::CLUSTER_ID}, "spec": {"value": id}});
        state.properties.change(Change::Apply(serde_json::from_value(property).unwrap()));
    };
    says(&mut state, "east");
    assert_eq!(action(&state), "connect as east");
    state.notes = noted().notes;
    says(&mut state, "north");
    assert_eq!(action(&state), "connect as east");
}

#[test]
fn the_oldest_cluster_set_is_ours_unless_another_is_noted() {
    let older = json!({"metadata": {"name": "zoo", "namespace": "freeport-system", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    let mut state = state(|_| {});
    put_set(&mut state, older.clone());
    assert_eq!(state.chosen().unwrap().name_any(), "zoo");
    let mut noted = noted();
    put_set(&mut noted, older);
    assert_eq!(noted.chosen().unwrap().name_any(), "demo");
}

#[test]
fn who_we_are_cannot_be_changed_in_place_but_the_way_to_the_leader_can() {
    let changed = |change: fn(&mut Value)| {
        let mut state = state(change);
        state.notes = noted().notes;
        action(&state)
    };
    assert_eq!(changed(|s| s["spec"]["clusterID"] = json!("north")), "IdentityChanged");
    assert_eq!(changed(|s| s["spec"]["namespace"] = json!("clusterset-x")), "IdentityChanged");
    assert_eq!(changed(|s| s["spec"]["leaders"][0]["server"] = json!("https://other")), "connect as east");
    assert_eq!(changed(|s| s["spec"]["leaders"][0]["secret"] = json!("other")), "SecretMissing");
}

#[test]
fn a_cluster_set_that_is_gone_is_left_only_when_somebody_decided_that() {
    let mut state = noted();
    state.cluster_sets = Objects::default();
    assert_eq!(action(&state), "FindOut");
    state.absence = Some(Absence::Vanished("with its CRD"));
    assert_eq!(action(&state), "connect as east", "imports stay current");
    state.absence = Some(Absence::Decided);
    assert_eq!(action(&state), "leave: Withdraw");
    state.notes = Objects::default();
    assert_eq!(action(&state), "Nothing", "imports outlive us");
}

#[test]
fn leaving_can_be_ordered_and_what_is_left_is_not_joined_again() {
    let mut state = noted();
    let mut note = state.note().unwrap().clone();
    note.data.insert(membership::LEAVE_KEY.into(), membership::LEAVE_FORCED.into());
    state.notes.change(Change::Apply(note));
    assert_eq!(action(&state), "leave: Force");

    state.notes = Objects::default();
    let mut set = state.cluster_sets.get("demo").unwrap().clone();
    let left = status::Report::from(verdict::left());
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time("2026-11-02T00:00:00Z".parse().unwrap());
    set.status.0 = Ok(status::desired(&set, &left, &now));
    state.cluster_sets.change(Change::Apply(set));
    assert_eq!(action(&state), "Nothing");
}

#[test]
fn a_secret_never_shows() {
    let state = state(|_| {});
    let shown = format!("{:?}", state.secrets.iter().collect::<Vec<_>>());
    assert!(shown.contains("freeport-leader-token"));
    assert!(!shown.contains("c2VjcmV0") && !shown.contains("115"));
}

#[test]
fn what_is_heard_late_of_the_note_is_no_news() {
    let at = |version: &str, leaving: bool| {
        let note = Note::of("freeport-system", &noted().noted().unwrap());
        let mut note = if leaving { note.leaving() } else { note };
        note.metadata.resource_version = Some(version.into());
        note
    };
    let mut state = MembershipState::default();
    state.notes.change(Change::Apply(at("10", true)));
    state.notes.answered(at("9", false), 0);
    assert!(state.note().unwrap().order().is_some(), "the answer to our write, after what came later");
    state.notes.change(Change::Remove(at("12", true)));
    state.notes.answered(at("11", true), 0);
    assert!(state.note().is_none(), "it is gone");
    state.notes.answered(at("14", false), 0);
    state.notes.change(Change::Remove(at("13", true)));
    assert!(state.note().is_some(), "another one");
}

#[test]
fn a_cluster_set_that_was_deleted_while_its_status_was_written_is_gone() {
    let mut state = state(|_| {});
    let mut set = state.cluster_sets.get("demo").unwrap().clone();
    set.metadata.resource_version = Some("9".into());
    let mut gone = set.clone();
    gone.metadata.resource_version = Some("10".into());
    state.cluster_sets.change(Change::Remove(gone));
    state.begun = noted().noted();
    let lists = state.cluster_sets.lists();
    state.cluster_sets.answered(set, lists);
    assert!(matches!(state.action(), Action::FindOut(_)));
    state.forget_unnoted();
    assert!(state.action() == Action::Nothing, "nothing had begun");
}

#[test]
fn a3_features_run_alone_only_for_a_membership_that_is_noted_and_not_being_left() {
    let cluster = |state: &MembershipState| state.alone().map(|membership| membership.cluster_id);
    assert_eq!(cluster(&state(|_| {})), None, "nobody has joined it yet");
    let mut noted = noted();
    assert_eq!(cluster(&noted), Some("east".to_owned()));
    let leaving = noted.note().unwrap().clone().leaving();
    noted.notes.change(Change::Apply(leaving));
    assert_eq!(cluster(&noted), None);
}
