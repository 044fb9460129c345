use kit::watch::Gather as _;
use serde_json::json;

use super::*;
use crate::bind::{fixture, sync::Here};

fn copies(informer_scope: InformerScope) -> Copies {
    let bound = Bound { informer_scope, ..fixture::bound() };
    let local = Local::new();
    for here in ["team1", "team2"] {
        let namespace = json!({"metadata": {"name": here, "uid": here, "resourceVersion": "1"}});
        let namespace = serde_json::from_value(namespace).unwrap();
        local.known.with(|known| known.namespaces.change(Change::Apply(namespace)));
    }
    Copies::new(bound, fixture::contract(), local, Store::new([kit::queue::Queue::new(Duration::ZERO)]))
}

/// A list of the watch, as it is taken in.
fn listed(copies: &Copies, scope: &Scope, all: Vec<Raw>) {
    let mut gather = Placed { copies: copies.clone(), assigned: Shared::default(), kept: Vec::new() };
    gather.begin();
    all.into_iter().for_each(|object| gather.take(object));
    let assigned = gather.assigned.with(|assigned| assigned.clone());
    copies.told(scope, Change::Reset(gather.end()), &assigned);
}

fn raw(namespace: &str, version: u64) -> Raw {
    let metadata =
        json!({"name": "foo", "namespace": namespace, "uid": "p1", "resourceVersion": version.to_string()});
    serde_json::from_str(&json!({ "metadata": metadata }).to_string()).unwrap()
}

fn version(copies: &Copies) -> Option<String> {
    copies.store.get(&Place::within("team1", "foo"))?.there.as_ref()?.resource_version()
}

#[tokio::test]
async fn in_a_namespace_that_is_assigned_anew_nothing_is_written_before_it_was_listed() {
    let (copies, mut tasks) = (copies(InformerScope::Cluster), JoinSet::new());
    fixture::assign(&copies.contract, "team2", "team2");
    copies.follow(&copies.contract.all_assigned(), &mut tasks);
    listed(&copies, &Scope::All, vec![raw("team1", 7)]);
    let are_told = |namespace| copies.are_told(Some(namespace), Some(namespace));
    assert!(are_told("team2") && version(&copies).is_none());
    fixture::assign(&copies.contract, "team1", "team1");
    assert!(!are_told("team1") && are_told("team2"), "at once, whatever the task that follows has seen");
    copies.sort_anew(&copies.contract.all_assigned());
    assert!(!are_told("team1") && are_told("team2"));
    listed(&copies, &Scope::All, vec![raw("team1", 7)]);
    assert_eq!((are_told("team1"), version(&copies).as_deref()), (true, Some("7")), "what is there is known");
}

#[tokio::test]
async fn a_list_of_a_restored_provider_replaces_newer_versions() {
    let (copies, mut tasks) = (copies(InformerScope::Namespaced), JoinSet::new());
    fixture::assign(&copies.contract, "team1", "there");
    copies.follow(&copies.contract.all_assigned(), &mut tasks);
    let scope = Scope::Within("there".to_owned());
    for version_there in [9, 2] {
        listed(&copies, &scope, vec![raw("there", version_there)]);
        assert_eq!(version(&copies), Some(version_there.to_string()));
    }
    listed(&copies, &scope, Vec::new());
    assert_eq!(version(&copies), None);
}

#[tokio::test]
async fn namespaces_that_only_the_provider_wants_are_not_watched_and_nothing_is_kept_of_nobodys() {
    let (copies, mut tasks) = (copies(InformerScope::Namespaced), JoinSet::new());
    for ours in ["elsewhere", "held", "team1"] {
        fixture::assign_for(&copies.contract, "provider", ours, &format!("p-{ours}"));
    }
    fixture::assign(&copies.contract, "before", "p-before");
    let held = json!({"metadata": {"name": "foo", "namespace": "held", "uid": "u", "resourceVersion": "1"}});
    copies.store.change(Change::Apply(serde_json::from_str::<Here>(&held.to_string()).unwrap()));
    let within = |theirs: &str| Scope::Within(theirs.to_owned());
    let assigned = copies.contract.all_assigned();
    let wanted = ["p-held", "p-team1", "p-before"].map(within);
    assert_eq!(copies.wanted(&assigned), wanted, "with objects, here, and of before a restore");
    copies.follow(&assigned, &mut tasks);
    assert_eq!(copies.watched.with(|all| all.len()), 3);
    let mut gather = Placed { copies: copies.clone(), assigned: Shared::default(), kept: Vec::new() };
    gather.begin();
    ["p-team1", "nobodys"].into_iter().for_each(|theirs| gather.take(raw(theirs, 3)));
    assert_eq!(gather.end().len(), 1);
}
