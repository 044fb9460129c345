mod histories;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::*;

#[derive(Clone, Default, Debug, PartialEq)]
struct Seen(BTreeMap<String, String>);

impl Entry for Seen {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A ConfigMap belongs to the key in its label and says the value in its data.
impl Part<String, Seen> for ConfigMap {
    fn key(&self) -> Option<String> {
        self.labels().get("key").cloned()
    }
    fn put(self, entry: &mut Seen) -> Readers {
        let value = self.data.unwrap_or_default().remove("v").unwrap_or_default();
        let had = entry.0.insert(self.metadata.name.unwrap_or_default(), value.clone());
        Readers::ALL.when(had != Some(value))
    }
    fn take(entry: &mut Seen, name: &str) -> Readers {
        Readers::ALL.when(entry.0.remove(name).is_some())
    }
}

fn map(name: &str, key: &str, value: &str, version: u64) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map.metadata.namespace = Some("ns".into());
    map.metadata.resource_version = Some(version.to_string());
    map.labels_mut().insert("key".into(), key.into());
    map.data = Some([("v".into(), value.into())].into());
    map
}

fn keys(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|k| (*k).to_owned()).collect()
}

/// The keys that somebody has to reconcile.
fn dirty(dirty: Dirty<String>) -> BTreeSet<String> {
    dirty.into_keys().collect()
}

#[test]
fn an_object_that_moves_leaves_its_old_entry() {
    let mut index = Index::<String, Seen>::default();
    assert_eq!(dirty(index.change(Change::Apply(map("a", "x", "1", 1)))), keys(&["x"]));
    assert_eq!(dirty(index.change(Change::Apply(map("a", "x", "1", 2)))), keys(&[]), "nothing new");
    assert_eq!(dirty(index.change(Change::Apply(map("a", "y", "1", 3)))), keys(&["x", "y"]));
    assert!(index.get(&"x".to_owned()).is_none());
    assert_eq!(dirty(index.change(Change::Reset(vec![map("b", "y", "2", 1)]))), keys(&["y"]));
    assert_eq!(index.get(&"y".to_owned()).unwrap().0, [("b".to_owned(), "2".to_owned())].into());
    assert_eq!(dirty(index.change(Change::Remove(map("b", "y", "2", 4)))), keys(&["y"]));
    assert_eq!(index.keys().count(), 0);
}

#[test]
fn an_answer_counts_until_the_watch_has_passed_it() {
    let mut index = Index::<String, Seen>::default();
    assert_eq!(dirty(index.written(map("a", "x", "new", 5))), keys(&["x"]));
    assert_eq!(
        dirty(index.change(Change::Apply(map("a", "x", "old", 4)))),
        keys(&[]),
        "older than our own write"
    );
    assert_eq!(dirty(index.change(Change::Remove(map("a", "x", "new", 6)))), keys(&["x"]));
    assert_eq!(dirty(index.written(map("a", "x", "late", 5))), keys(&[]), "deleted since: no ghost");
    assert!(index.get(&"x".to_owned()).is_none());
}

fn map_in(namespace: &str, name: &str, version: u64) -> ConfigMap {
    let mut map = map(name, name, "v", version);
    map.metadata.namespace = Some(namespace.into());
    map
}

#[test]
fn a_list_of_one_watch_among_several_replaces_newer_versions_and_leaves_what_others_cover() {
    let mut index = Index::<String, Seen>::default();
    let within = |namespace: &'static str| move |name: &ObjectName| name.0 == namespace;
    let of = |versions: &[(&str, u64)]| -> Vec<_> {
        versions.iter().map(|(name, version)| map_in("a", name, *version)).collect()
    };
    drop(index.listed_within(within("a"), of(&[("x", 9), ("y", 9)])));
    drop(index.listed_within(within("b"), vec![map_in("b", "z", 9)]));
    drop(index.listed_within(within("a"), of(&[("x", 2)])));
    assert!(index.get(&"y".to_owned()).is_none() && index.get(&"z".to_owned()).is_some());
    let versions = |index: &mut Index<String, Seen>, namespace: &str, name: &str| {
        index.places::<ConfigMap>().keys.version_of(&(namespace.to_owned(), name.to_owned()))
    };
    assert_eq!(versions(&mut index, "a", "x"), 2, "the API server was restored");
    assert_eq!(versions(&mut index, "b", "z"), 9);
}

#[test]
fn an_answer_that_a_list_of_its_watch_overtook_brings_nothing_back() {
    let mut index = Index::<String, Seen>::default();
    let name = ("a".to_owned(), "x".to_owned());
    index.writing::<ConfigMap>(name.clone(), Readers::ALL);
    drop(index.listed_within(|name| name.0 == "a", Vec::<ConfigMap>::new()));
    assert_eq!(dirty(index.written(map_in("a", "x", 5))), keys(&["x"]), "it is looked at again");
    assert!(index.get(&"x".to_owned()).is_none());
    index.writing::<ConfigMap>(name, Readers::ALL);
    drop(index.listed_within(|name| name.0 == "b", Vec::<ConfigMap>::new()));
    drop(index.written(map_in("a", "x", 6)));
    assert!(index.get(&"x".to_owned()).is_some());
}

#[test]
fn what_we_deleted_does_not_come_back_with_late_news() {
    let mut index = Index::<String, Seen>::default();
    let with_uid = |uid: &str, version| {
        let mut object = map("a", "x", "1", version);
        object.metadata.uid = Some(uid.into());
        object
    };
    index.change(Change::Apply(with_uid("u1", 1)));
    assert_eq!(dirty(index.deleted(&with_uid("u1", 1))), keys(&["x"]));
    assert_eq!(
        dirty(index.change(Change::Apply(with_uid("u1", 2)))),
        keys(&[]),
        "told before it was deleted"
    );
    assert_eq!(dirty(index.change(Change::Remove(with_uid("u1", 3)))), keys(&[]));
    assert_eq!(
        dirty(index.change(Change::Apply(with_uid("u2", 4)))),
        keys(&["x"]),
        "another of the same name"
    );
}

#[test]
fn after_a_list_lower_versions_count() {
    let mut index = Index::<String, Seen>::default();
    index.change(Change::Apply(map("a", "x", "1", 1000)));
    assert_eq!(dirty(index.change(Change::Reset(vec![map("a", "x", "restored", 7)]))), keys(&["x"]));
    assert_eq!(dirty(index.change(Change::Apply(map("a", "x", "later", 8)))), keys(&["x"]));
}

#[test]
fn an_answer_that_comes_after_a_list_brings_nothing_back() {
    let (mut index, writer) = (Index::<String, Seen>::default(), [("x".to_owned(), WRITER)].into());
    let ours = of_uid("ours", 5);
    for live in [vec![], vec![map("b", "y", "1", 3)]] {
        index.writing::<ConfigMap>(name(&ours), WRITER);
        let _ = index.change(Change::Reset(live));
        assert_eq!(index.written(ours.clone()), writer, "it was deleted while the watch was away");
        assert!(index.get(&"x".to_owned()).is_none());
    }

    let _ = index.change(Change::Reset(vec![of_uid("1", 1000)]));
    index.writing::<ConfigMap>(name(&ours), WRITER);
    let _ = index.change(Change::Reset(vec![of_uid("restored", 7)]));
    let _ = index.written(of_uid("before", 1001));
    let _ = index.change(Change::Apply(of_uid("later", 8)));
    assert_eq!(
        index.get(&"x".to_owned()).unwrap().0["a"],
        "later",
        "versions of before a restore do not count"
    );
}

const WRITER: Readers = Readers::one(0);

/// An object of uid `u`.
fn of_uid(value: &str, version: u64) -> ConfigMap {
    let mut object = map("a", "x", value, version);
    object.metadata.uid = Some("u".into());
    object
}

fn being_written() -> Index<String, Seen> {
    let mut index = Index::<String, Seen>::default();
    let _ = index.change(Change::Apply(of_uid("1", 1)));
    index.writing::<ConfigMap>(name(&of_uid("1", 1)), WRITER);
    index
}

#[test]
fn a_writer_hears_of_its_own_write_neither_by_the_answer_nor_by_the_watch() {
    let others = [("x".to_owned(), Readers::ALL.without(WRITER))].into();
    let mut index = being_written();
    assert_eq!(index.written(of_uid("2", 2)), others, "the answer is first");
    assert!(index.change(Change::Apply(of_uid("2", 2))).is_empty());

    let mut index = being_written();
    assert_eq!(index.change(Change::Apply(of_uid("2", 2))), others, "the watch is first");
    assert!(index.written(of_uid("2", 2)).is_empty());
    assert_eq!(
        index.change(Change::Apply(of_uid("3", 3)))["x"],
        Readers::ALL,
        "the next change is not its own"
    );
}

#[test]
fn a_writer_hears_of_what_others_wrote_meanwhile() {
    let writer = [("x".to_owned(), WRITER)].into();
    let mut index = being_written();
    let _ = index.change(Change::Apply(of_uid("2", 2)));
    let _ = index.change(Change::Apply(of_uid("theirs", 3)));
    assert_eq!(index.written(of_uid("2", 2)), writer, "changed since");

    let mut index = being_written();
    let _ = index.change(Change::Apply(of_uid("theirs", 2)));
    assert_eq!(index.unwritten::<ConfigMap>(&name(&of_uid("1", 1))), writer, "refused, and changed");

    let mut index = being_written();
    let _ = index.change(Change::Remove(of_uid("2", 3)));
    assert_eq!(index.written(of_uid("2", 2)), writer, "deleted since");
}

#[test]
fn a_writer_hears_of_what_takes_the_place_of_what_it_deleted() {
    let writer = [("x".to_owned(), WRITER)].into();
    let another = || {
        let mut another = map("a", "x", "2", 5);
        another.metadata.uid = Some("v".into());
        another
    };
    let mut index = being_written();
    let _ = index.change(Change::Remove(of_uid("1", 4)));
    let _ = index.change(Change::Apply(another()));
    assert_eq!(index.deleted(&of_uid("1", 1)), writer, "told before the answer came");

    let mut index = being_written();
    let _ = index.deleted(&of_uid("1", 1));
    let _ = index.change(Change::Remove(of_uid("1", 4)));
    assert!(index.change(Change::Apply(another()))["x"].has(WRITER), "told after it");
}

#[test]
fn a_writer_hears_that_a_list_does_not_have_what_it_wrote() {
    let mut index = being_written();
    let mut other = map("b", "y", "1", 9);
    other.metadata.uid = Some("w".into());
    let _ = index.change(Change::Reset(vec![other]));
    assert!(index.written(of_uid("2", 2))["x"].has(WRITER));
}

#[test]
fn of_two_writers_neither_loses_what_was_withheld() {
    let mut index = being_written();
    index.writing::<ConfigMap>(name(&of_uid("1", 1)), Readers::one(1));
    let _ = index.change(Change::Apply(of_uid("theirs", 2)));
    let both = WRITER.and(Readers::one(1));
    assert_eq!(index.unwritten::<ConfigMap>(&name(&of_uid("1", 1)))["x"], both);
    let _ = index.change(Change::Apply(of_uid("again", 3)));
    assert_eq!(index.unwritten::<ConfigMap>(&name(&of_uid("1", 1)))["x"], both);
}
