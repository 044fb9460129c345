use std::collections::{BTreeMap, BTreeSet, VecDeque};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use proptest::prelude::*;

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

/// An API server, our own writes to it, and the watch that tells of all writes in order, but late.
#[derive(Default)]
struct Server {
    version: u64,
    live: BTreeMap<u8, ConfigMap>,
    untold: VecDeque<Change<ConfigMap>>,
}

impl Server {
    fn put(&mut self, name: u8, key: u8, value: u8) -> ConfigMap {
        self.version += 1;
        let mut object = map(&format!("o{name}"), &format!("k{key}"), &format!("v{value}"), self.version);
        let uid = self.live.get(&name).and_then(ResourceExt::uid);
        object.metadata.uid = Some(uid.unwrap_or_else(|| format!("u{}", self.version)));
        self.live.insert(name, object.clone());
        self.untold.push_back(Change::Apply(object.clone()));
        object
    }

    fn delete(&mut self, name: u8) -> Option<ConfigMap> {
        let known = self.live.remove(&name)?;
        self.version += 1;
        let mut last = known.clone();
        last.metadata.resource_version = Some(self.version.to_string());
        self.untold.push_back(Change::Remove(last));
        Some(known)
    }
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

fn concerns_writer(dirty: Dirty<String>) -> bool {
    dirty.into_values().any(|readers| readers.has(WRITER))
}

/// What another than the writer does to the object, or how the write ends.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Told,
    Theirs(u8),
    Begins,
    Written(u8),
    Fails,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => Just(Happens::Told),
        2 => (0..3u8).prop_map(Happens::Theirs),
        2 => Just(Happens::Begins),
        2 => (0..3u8).prop_map(Happens::Written),
        1 => Just(Happens::Fails),
    ]
}

proptest! {
    /// A writer writes on what it knows, or is refused. Whatever order answers and the watch come in: when all is told, either
    /// the entry says what the writer wrote last, or the writer was asked to reconcile since.
    #[test]
    fn a_writer_hears_of_all_but_its_own_writes(steps in prop::collection::vec(happens(), 0..40)) {
        let (mut server, mut index) = (Server::default(), Index::<String, Seen>::default());
        let first = server.put(0, 0, 0);
        let object = name(&first);
        let mut heard = concerns_writer(index.change(server.untold.pop_front().unwrap()));
        let (mut wrote, mut running) = (None::<String>, None::<u64>);
        for step in steps.into_iter().chain([Happens::Fails]) {
            match step {
                Happens::Told => if let Some(change) = server.untold.pop_front() { heard |= concerns_writer(index.change(change)) },
                Happens::Theirs(value) => drop(server.put(0, 0, 10 + value)),
                Happens::Begins => if running.is_none() {
                    index.writing::<ConfigMap>(object.clone(), WRITER);
                    running = Some(index.places::<ConfigMap>().keys.version_of(&object));
                },
                // Bound to the version that it knows, as every write is.
                Happens::Written(value) if running.is_some_and(|known| known == server.version) => {
                    running = None;
                    wrote = Some(format!("v{value}"));
                    let answer = server.put(0, 0, value);
                    heard |= concerns_writer(index.written(answer));
                }
                Happens::Written(_) | Happens::Fails => if running.take().is_some() {
                    heard |= concerns_writer(index.unwritten::<ConfigMap>(&object));
                },
            }
            if heard && running.is_none() {
                // It reconciles: it knows what the entry says.
                wrote = index.get(&"k0".to_owned()).and_then(|entry| entry.0.values().next().cloned());
                heard = false;
            }
        }
        while let Some(change) = server.untold.pop_front() {
            heard |= concerns_writer(index.change(change));
        }
        let says = index.get(&"k0".to_owned()).and_then(|entry| entry.0.values().next().cloned());
        prop_assert!(heard || wrote == says, "wrote {:?}, the entry says {:?}", wrote, says);
    }


    /// Whoever writes, and however late the watch tells of it: in the end the entries are those of a fresh list of what
    /// exists.
    #[test]
    fn entries_are_a_function_of_what_exists(
        steps in prop::collection::vec((0..8u8, 0..3u8, 0..2u8, 0..3u8), 0..60)
    ) {
        let (mut server, mut index) = (Server::default(), Index::<String, Seen>::default());
        let mut unanswered = VecDeque::new();
        for (what, name, key, value) in steps {
            // As the store does before each write and deletion.
            if [2, 3, 5].contains(&what) && (what != 3 || server.live.contains_key(&name)) {
                index.writing::<ConfigMap>(("ns".into(), format!("o{name}")), WRITER);
            }
            match what {
                0 => drop(server.put(name, key, value)),
                1 => drop(server.delete(name)),
                2 => drop(index.written(server.put(name, key, value))),
                3 => drop(server.delete(name).map(|known| index.deleted(&known))),
                4 => drop(index.change(Change::Reset({
                    server.untold.clear();
                    server.live.values().cloned().collect::<Vec<_>>()
                }))),
                5 => unanswered.push_back(server.put(name, key, value)),
                6 => drop(unanswered.pop_front().map(|answer| index.written(answer))),
                _ => drop(server.untold.pop_front().map(|change| index.change(change))),
            }
        }
        for answer in unanswered {
            let _ = index.written(answer);
        }
        while let Some(change) = server.untold.pop_front() {
            let _ = index.change(change);
        }
        let mut fresh = Index::<String, Seen>::default();
        let _ = fresh.change(Change::Reset(server.live.into_values().collect::<Vec<_>>()));
        prop_assert_eq!(&index.entries, &fresh.entries);
    }
}
