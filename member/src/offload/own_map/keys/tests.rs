use api::offload::label;
use serde_json::{Value, json};

use super::*;

const GOES: &str = "2026-11-01T12:00:00Z";

/// Cluster `east`, which is used, with its Node.
pub(super) fn east() -> ClusterEntry {
    let read = |value: Value| serde_json::from_value(value).unwrap();
    let labels = json!({"app.kubernetes.io/managed-by": "freeport"});
    ClusterEntry {
        peer: serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {"outgoing": {}}}))
            .unwrap(),
        node: read(json!({"metadata": {"name": "freeport-east", "labels": labels}})),
        ..ClusterEntry::default()
    }
}

pub(super) fn asking(namespace: &str, metadata: &Value, status: &Value) -> Asking {
    let mut offloading =
        json!({"metadata": {"name": "offloading", "uid": "u"}, "spec": {}, "status": status});
    let had = offloading["metadata"].as_object_mut().unwrap();
    had.extend(metadata.as_object().unwrap().clone());
    let entry = NamespaceEntry {
        offloading: serde_json::from_value(offloading).unwrap(),
        ..NamespaceEntry::default()
    };
    Asking { namespace: namespace.into(), entry: entry.into(), name: Some(format!("{namespace}-west")) }
}

pub(super) fn held(namespace: &str) -> Asking {
    asking(namespace, &json!({"finalizers": [label::FINALIZER]}), &json!({}))
}

fn desired(names: &[&str]) -> BTreeMap<String, String> {
    names.iter().map(|name| ((*name).to_owned(), format!("{name}-west"))).collect()
}

/// The same with a map of these keys, and with what its host says.
fn with_map(cluster: ClusterEntry, names: &[&str], withdrawn: Value, said: Value) -> ClusterEntry {
    let spec = json!({"origin": "west", "destination": "east", "desiredMapping": desired(names)});
    let mut map = json!({"metadata": {"name": "1.west.east", "generation": 7}, "spec": spec});
    map["spec"]["withdrawn"] = withdrawn;
    map["status"] = said;
    ClusterEntry { own_map: serde_json::from_value(map).unwrap(), ..cluster }
}

fn wants(names: &[&str]) -> ClusterEntry {
    with_map(east(), names, json!({}), json!({}))
}

fn seen(asking: &[Asking], cluster: &ClusterEntry) -> BTreeMap<String, Change> {
    let changes = changes(asking, "east", cluster, false);
    assert_eq!(changes.left_out, 0);
    changes.keys
}

fn desire(name: &str) -> (String, Change) {
    (name.to_owned(), Change::Desire(format!("{name}-west")))
}

fn withdraw(name: &str) -> (String, Change) {
    (name.to_owned(), Change::Withdraw)
}

/// One whose NamespaceOffloading is being deleted by decision.
fn withdrawn(namespace: &str, status: &Value) -> Asking {
    let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES});
    let mut withdrawn = asking(namespace, &going, status);
    Arc::get_mut(&mut withdrawn.entry).unwrap().withdrawn = Some("u".into());
    withdrawn
}

#[test]
fn all_that_waits_goes_at_once_and_what_is_so_is_not_written() {
    let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES});
    let all = [
        held("shop"),
        held("web"),
        held("there"),
        asking("new", &json!({}), &json!({})),
        withdrawn("gone", &json!({})),
        asking("doubted", &going, &json!({})),
    ];
    let have = ["there", "gone", "doubted", "nobodys"];
    let want = [desire("shop"), desire("web"), withdraw("gone")];
    assert_eq!(seen(&all, &wants(&have)), want.into());
    let now =
        with_map(east(), &["there", "shop", "web", "doubted", "nobodys"], json!({"gone": 7}), json!({}));
    assert_eq!(seen(&all, &now), BTreeMap::new(), "a second pass");
    let nodeless = ClusterEntry { node: None, ..wants(&have) };
    assert_eq!(seen(&all, &nodeless), [withdraw("gone")].into(), "a Node that is missing");
}

#[test]
fn a_withdrawal_is_removed_when_the_host_has_carried_it_out() {
    let gone = [withdrawn("gone", &json!({}))];
    let with = |said: Value| with_map(east(), &[], json!({"gone": 6}), said);
    let entry = json!({"gone": {"remoteNamespace": "gone-west", "phase": "Terminating"}});
    assert_eq!(seen(&gone, &with(json!({}))), BTreeMap::new(), "the host is away");
    assert_eq!(seen(&gone, &with(json!({"observedGeneration": 6}))), BTreeMap::new());
    let going = with(json!({"observedGeneration": 7, "currentMapping": entry}));
    assert_eq!(seen(&gone, &going), BTreeMap::new(), "the twin is going");
    let remove = [("gone".to_owned(), Change::Remove)];
    for asking in [&gone[..], &[]] {
        assert_eq!(seen(asking, &with(json!({"observedGeneration": 7}))), remove.clone().into());
    }
    let again = seen(&[held("gone")], &with(json!({"observedGeneration": 7})));
    assert_eq!(again, [desire("gone")].into(), "it is offloaded again");
}

#[test]
fn a_twin_that_only_its_host_names_is_withdrawn_if_somebody_decided() {
    let said = |name: &str| json!({"currentMapping": {name: {"remoteNamespace": "x", "phase": "Accepted"}}});
    let behind = |name: &str| with_map(east(), &[], json!({}), said(name));
    let gone = [withdrawn("gone", &json!({}))];
    assert_eq!(seen(&gone, &behind("gone")), [withdraw("gone")].into(), "the map was restored from a backup");
    assert!(changes(&gone, "east", &behind("gone"), false).are_claims(&behind("gone")));
    assert_eq!(seen(&gone, &behind("other")), BTreeMap::new(), "nobody decided that");
    assert!(!changes(&gone, "east", &wants(&["gone"]), false).are_claims(&wants(&["gone"])));
}

#[test]
fn of_a_cluster_that_is_not_used_any_more_all_keys_are_withdrawn() {
    let unused = serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}})).unwrap();
    let unused = ClusterEntry { peer: Some(unused), ..east() };
    let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES});
    let mut invalid = held("invalid");
    invalid.name = None;
    let all = [held("shop"), invalid, asking("doubted", &going, &json!({}))];
    let keys = ["shop", "invalid", "doubted", "nobodys"];
    let entry = json!({"remoteNamespace": "x", "phase": "Accepted"});
    let said = json!({"currentMapping": {"shop": entry, "forgotten": entry, "going": entry}});
    let have = with_map(unused.clone(), &keys, json!({"going": 3}), said);
    let every = keys.into_iter().chain(["forgotten"]).map(withdraw);
    assert_eq!(seen(&all, &have), every.collect(), "of one that is missing, too");
    let none = with_map(unused.clone(), &[], json!({}), json!({}));
    assert_eq!(seen(&all, &none), BTreeMap::new(), "a second pass");
    let known = changes(&all, "east", &have, true).keys;
    assert_eq!(known, [withdraw("shop")].into(), "this cluster was restored from a backup");
    let vanished = ClusterEntry { peer: None, ..have };
    assert!(seen(&[], &vanished).is_empty(), "nobody has decided that");
}

#[test]
fn a_key_that_came_after_its_namespace_offloading_went_is_withdrawn() {
    let mut late = held("late");
    let entry = Arc::get_mut(&mut late.entry).unwrap();
    (entry.offloading, entry.withdrawn) = (None, Some("u".into()));
    late.name = None;
    let mut foreign = held("foreign");
    Arc::get_mut(&mut foreign.entry).unwrap().offloading = None;
    let seen = seen(&[late, foreign], &wants(&["late", "foreign"]));
    assert_eq!(seen, [withdraw("late")].into(), "what is merely missing stays");
}

#[test]
fn a_map_that_is_missing_is_written_again() {
    let said = json!({"remoteNamespaceName": "old", "remoteNamespacesConditions": {"east": [
        {"type": "OffloadingRequired", "status": "True", "reason": "R", "message": "", "lastTransitionTime": GOES},
    ]}});
    let mut invalid = asking("invalid", &json!({}), &said);
    invalid.name = None;
    let all = [held("shop"), invalid, asking("new", &json!({}), &json!({})), withdrawn("gone", &said)];
    let old = ("invalid".to_owned(), Change::Desire("old".into()));
    assert_eq!(seen(&all, &east()), [desire("shop"), old, withdraw("gone")].into());
    assert_eq!(seen(&all[1..3], &east()), BTreeMap::new(), "nobody wants anything new of it");
    assert_eq!(seen(&all[3..], &east()), [withdraw("gone")].into(), "the host has to delete it");
    assert_eq!(seen(&[withdrawn("gone", &json!({}))], &east()), BTreeMap::new(), "it never had one");
    let peer = json!({"metadata": {"name": "east"}, "spec": {"outgoing": {}}, "status": {"lostOffloadings": {"gone": "g"}}});
    let lost = ClusterEntry { peer: serde_json::from_value(peer).unwrap(), ..east() };
    assert_eq!(
        seen(&[withdrawn("gone", &json!({}))], &lost),
        [withdraw("gone")].into(),
        "the OffloadPeer names it"
    );
    let unused = ClusterEntry { peer_withdrawn: Some(true), peer: None, ..east() };
    let left = asking("shop", &json!({"finalizers": [label::FINALIZER]}), &said);
    assert_eq!(
        seen(&[left], &unused),
        [withdraw("shop")].into(),
        "the host is not used any more, and has a twin"
    );
    assert_eq!(seen(&[held("shop")], &unused), BTreeMap::new(), "it never had one");
}

#[test]
fn a_map_takes_as_many_as_there_is_room_for() {
    let names: Vec<_> = (0..=ENTRIES_MAX).map(|n| format!("ns-{n:04}")).collect();
    let mut all: Vec<_> = names.iter().map(|name| held(name)).collect();
    let seen = changes(&all, "east", &wants(&["other"]), false);
    assert_eq!((seen.keys.len(), seen.left_out), (ENTRIES_MAX - 1, 2));
    let seen = changes(&all, "east", &east(), false);
    assert_eq!((seen.keys.len(), seen.left_out), (ENTRIES_MAX, 1));
    let full = wants(&names[..ENTRIES_MAX].iter().map(String::as_str).collect::<Vec<_>>());
    let seen = changes(&all, "east", &full, false);
    assert_eq!((seen.keys.len(), seen.left_out), (0, 1));
    let said = json!({"remoteNamespaceName": "z-west", "remoteNamespacesConditions": {"east": [
        {"type": "OffloadingRequired", "status": "True", "reason": "R", "message": "", "lastTransitionTime": GOES},
    ]}});
    all.push(asking("z", &json!({"finalizers": [label::FINALIZER]}), &said));
    all.push(withdrawn("zz", &said));
    let seen = changes(&all, "east", &east(), false);
    assert_eq!((seen.keys.len(), seen.left_out), (ENTRIES_MAX, 3));
    assert!(seen.keys.contains_key("z") && seen.keys.contains_key("zz"), "those that had a twin come first");
}
