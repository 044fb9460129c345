use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

fn map(uid: &str, version: u64) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".into());
    map.metadata.uid = Some(uid.into());
    map.metadata.resource_version = Some(version.to_string());
    map
}

fn known(objects: &Objects<ConfigMap>) -> Option<u64> {
    objects.get("a").map(version)
}

#[test]
fn an_answer_that_comes_after_the_deletion_brings_nothing_back() {
    let mut objects = Objects::default();
    objects.change(Change::Reset(vec![map("u", 1)]));
    objects.change(Change::Remove(map("u", 3)));
    objects.answered(map("u", 2), 1);
    assert_eq!(known(&objects), None);
    objects.change(Change::Apply(map("v", 4)));
    assert_eq!(known(&objects), Some(4));
}

/// Issue 14, A9.
#[test]
fn a9_an_answer_that_comes_after_a_list_without_the_object_brings_nothing_back() {
    let mut objects = Objects::default();
    objects.change(Change::Reset(vec![map("u", 1)]));
    let lists = objects.lists();
    objects.change(Change::Reset(vec![]));
    objects.answered(map("u", 2), lists);
    assert_eq!(known(&objects), None, "the watch missed the deletion and began again");
    objects.answered(map("v", 3), objects.lists());
    assert_eq!(known(&objects), Some(3));
}

#[test]
fn an_answer_counts_until_the_watch_has_passed_it() {
    let mut objects = Objects::default();
    objects.change(Change::Apply(map("u", 1)));
    objects.answered(map("u", 5), 0);
    objects.change(Change::Apply(map("u", 4)));
    assert_eq!(known(&objects), Some(5), "older than our own write");
    objects.change(Change::Apply(map("u", 6)));
    assert_eq!(known(&objects), Some(6));
}

#[test]
fn what_we_deleted_does_not_come_back_with_late_news() {
    let mut objects = Objects::default();
    objects.change(Change::Apply(map("u", 1)));
    objects.deleted(&map("u", 1));
    objects.change(Change::Apply(map("u", 2)));
    assert_eq!(known(&objects), None);
    objects.change(Change::Apply(map("v", 3)));
    assert_eq!(known(&objects), Some(3), "another one of that name");
}

#[test]
fn a_deletion_that_is_told_late_does_not_remove_what_we_created_after_it() {
    let mut objects = Objects::default();
    objects.change(Change::Apply(map("u", 1)));
    objects.answered(map("v", 4), 0);
    objects.change(Change::Remove(map("u", 3)));
    assert_eq!(known(&objects), Some(4));
    objects.change(Change::Remove(map("v", 5)));
    assert_eq!(known(&objects), None);
}

#[test]
fn a_namespace_has_its_own_objects_and_no_other() {
    let mut objects = Objects::default();
    for (namespace, name) in [("a", "x"), ("b", "x"), ("b", "y"), ("b-c", "z")] {
        let mut map = map("u", 1);
        map.metadata.namespace = Some(namespace.into());
        map.metadata.name = Some(name.into());
        objects.change(Change::Apply(map));
    }
    let names = |of: &str| objects.within(of).map(ResourceExt::name_any).collect::<Vec<_>>().concat();
    assert_eq!([names("a"), names("b"), names("c")], ["x", "xy", ""]);
}

#[test]
fn a_list_of_a_restored_server_replaces_newer_versions() {
    let mut objects = Objects::default();
    objects.change(Change::Apply(map("u", 9)));
    objects.change(Change::Reset(vec![map("u", 2)]));
    assert_eq!(known(&objects), Some(2));
}
