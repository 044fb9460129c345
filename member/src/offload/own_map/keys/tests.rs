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

fn keys<const N: usize>(keys: [(&str, Option<&str>); N]) -> BTreeMap<String, Option<String>> {
    keys.into_iter().map(|(name, twin)| (name.to_owned(), twin.map(str::to_owned))).collect()
}

#[test]
fn all_that_waits_goes_at_once_and_what_is_so_is_not_written() {
    let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES});
    let mut withdrawn = asking("gone", &going, &json!({}));
    Arc::get_mut(&mut withdrawn.entry).unwrap().withdrawn = Some("u".into());
    let all = [
        held("shop"),
        held("web"),
        held("there"),
        asking("new", &json!({}), &json!({})),
        withdrawn,
        asking("doubted", &going, &json!({})),
    ];
    let have = desired(&["there", "gone", "doubted", "nobodys"]);
    let seen = changes(&have, &all, &east(), false);
    let want = keys([("shop", Some("shop-west")), ("web", Some("web-west")), ("gone", None)]);
    assert_eq!((seen.keys, seen.left_out), (want, 0));
    let now = desired(&["there", "shop", "web", "doubted", "nobodys"]);
    assert_eq!(changes(&now, &all, &east(), false), Changes::default(), "a second pass");
    let nodeless = ClusterEntry { node: None, ..self::east() };
    assert_eq!(changes(&have, &all, &nodeless, false).keys, keys([("gone", None)]), "a Node that vanished");
}

#[test]
fn of_a_cluster_that_is_not_used_any_more_all_keys_go() {
    let unused = serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}})).unwrap();
    let unused = ClusterEntry { peer: Some(unused), ..east() };
    let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES});
    let mut invalid = held("invalid");
    invalid.name = None;
    let all = [held("shop"), invalid, asking("doubted", &going, &json!({}))];
    let have = desired(&["shop", "invalid", "doubted", "nobodys"]);
    let every = [("shop", None), ("invalid", None), ("doubted", None), ("nobodys", None)];
    assert_eq!(changes(&have, &all, &unused, false).keys, keys(every), "of one that vanished, too");
    assert_eq!(changes(&desired(&[]), &all, &unused, false), Changes::default(), "a second pass");
    let known = keys([("shop", None)]);
    assert_eq!(changes(&have, &all, &unused, true).keys, known, "this cluster was restored from a backup");
    let vanished = ClusterEntry { peer: None, ..unused };
    assert!(changes(&have, &[], &vanished, false).keys.is_empty(), "nobody has decided that");
}

#[test]
fn a_key_that_came_after_its_namespace_offloading_went_is_taken_out() {
    let mut late = held("late");
    let entry = Arc::get_mut(&mut late.entry).unwrap();
    (entry.offloading, entry.withdrawn) = (None, Some("u".into()));
    late.name = None;
    let mut foreign = held("foreign");
    Arc::get_mut(&mut foreign.entry).unwrap().offloading = None;
    let seen = changes(&desired(&["late", "foreign"]), &[late, foreign], &east(), false);
    assert_eq!(seen.keys, keys([("late", None)]), "what merely vanished stays");
}

#[test]
fn a_map_that_vanished_is_put_back_whole() {
    let said = json!({"remoteNamespaceName": "old", "remoteNamespacesConditions": {"east": [
        {"type": "OffloadingRequired", "status": "True", "reason": "R", "message": "", "lastTransitionTime": GOES},
    ]}});
    let mut invalid = asking("invalid", &json!({}), &said);
    invalid.name = None;
    let all = [held("shop"), invalid, asking("new", &json!({}), &json!({}))];
    let seen = whole(&all, BTreeMap::new(), "east", &east()).unwrap();
    assert_eq!(seen.keys, keys([("shop", Some("shop-west")), ("invalid", Some("old"))]));
    assert_eq!(whole(&all[1..], BTreeMap::new(), "east", &east()), None, "nobody wants anything new of it");
    let mut withdrawn =
        asking("gone", &json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES}), &said);
    Arc::get_mut(&mut withdrawn.entry).unwrap().withdrawn = Some("u".into());
    let empty = whole(&[withdrawn], BTreeMap::new(), "east", &east()).unwrap();
    assert_eq!(empty.keys, keys([]), "the host has to see that it is gone");
    let mut unused = east();
    unused.peer_withdrawn = Some(true);
    unused.peer = None;
    let left = asking("shop", &json!({"finalizers": [label::FINALIZER]}), &said);
    let empty = whole(std::slice::from_ref(&left), BTreeMap::new(), "east", &unused).unwrap();
    assert_eq!(empty.keys, keys([]), "the host is not used any more, and has a twin");
    assert_eq!(whole(&[held("shop")], BTreeMap::new(), "east", &unused), None, "it never had one");
}

#[test]
fn a_key_whose_namespace_offloading_vanished_before_the_map_comes_back_with_it() {
    let mut east = east();
    east.wanted_before = desired(&["gone", "new"]);
    let vanished = desired(&["gone"]);
    let new = || asking("new", &json!({}), &json!({}));
    assert_eq!(whole(&[new()], vanished.clone(), "east", &east), None, "nobody wants anything");
    let seen = whole(&[held("shop"), new()], vanished, "east", &east).unwrap();
    let mut want = keys([("shop", Some("shop-west"))]);
    let as_before = east.wanted_before.iter().map(|(name, twin)| (name.clone(), Some(twin.clone())));
    want.extend(as_before);
    assert_eq!(seen.keys, want);
}

#[test]
fn a_map_takes_as_many_as_there_is_room_for() {
    let names: Vec<_> = (0..=ENTRIES_MAX).map(|n| format!("ns-{n:04}")).collect();
    let all: Vec<_> = names.iter().map(|name| held(name)).collect();
    let seen = changes(&desired(&["other"]), &all, &east(), false);
    assert_eq!((seen.keys.len(), seen.left_out), (ENTRIES_MAX - 1, 2));
    let seen = whole(&all, BTreeMap::new(), "east", &east()).unwrap();
    assert_eq!((seen.keys.len(), seen.left_out), (ENTRIES_MAX, 1));
    let full = desired(&names[..ENTRIES_MAX].iter().map(String::as_str).collect::<Vec<_>>());
    let seen = changes(&full, &all, &east(), false);
    assert_eq!((seen.keys.len(), seen.left_out), (0, 1));
}
