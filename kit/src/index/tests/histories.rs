//! Whatever happens in whatever order: properties.

use std::collections::{BTreeMap, VecDeque};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use proptest::prelude::*;

use super::{Seen, WRITER, map};
use crate::{
    index::{Dirty, Index},
    objects::{Change, Streamed, name},
};

/// An API server, our own writes to it, and the watch that tells of all writes in order, but late.
#[derive(Default)]
struct Server {
    version: u64,
    live: BTreeMap<u8, ConfigMap>,
    untold: VecDeque<Streamed<ConfigMap>>,
}

impl Server {
    fn put(&mut self, name: u8, key: u8, value: u8) -> ConfigMap {
        self.version += 1;
        let mut object = map(&format!("o{name}"), &format!("k{key}"), &format!("v{value}"), self.version);
        let uid = self.live.get(&name).and_then(ResourceExt::uid);
        object.metadata.uid = Some(uid.unwrap_or_else(|| format!("u{}", self.version)));
        self.live.insert(name, object.clone());
        self.untold.push_back(Streamed::Change(Change::Apply(object.clone())));
        object
    }

    fn delete(&mut self, name: u8) -> Option<ConfigMap> {
        let known = self.live.remove(&name)?;
        self.version += 1;
        let mut last = known.clone();
        last.metadata.resource_version = Some(self.version.to_string());
        self.untold.push_back(Streamed::Change(Change::Remove(last)));
        Some(known)
    }

    /// The watch lists anew, in the place of what it has not told yet; it may be a list that is under way.
    fn list(&mut self) {
        let objects = self.live.values().cloned().map(|object| Streamed::Change(Change::Apply(object)));
        self.untold = [Streamed::ListBegins].into_iter().chain(objects).chain([Streamed::ListEnds]).collect();
    }
}

fn concerns_writer(dirty: Dirty<String>) -> bool {
    dirty.into_values().any(|readers| readers.has(WRITER))
}

/// What another than the writer does to the object, or how the write ends.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Told,
    Theirs(u8),
    Listed,
    Begins,
    Written(u8),
    Fails,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => Just(Happens::Told),
        2 => (0..3u8).prop_map(Happens::Theirs),
        1 => Just(Happens::Listed),
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
        let mut heard = concerns_writer(index.stream(server.untold.pop_front().unwrap()));
        let (mut wrote, mut running) = (None::<String>, None::<u64>);
        for step in steps.into_iter().chain([Happens::Fails]) {
            match step {
                Happens::Told => if let Some(change) = server.untold.pop_front() { heard |= concerns_writer(index.stream(change)) },
                Happens::Theirs(value) => drop(server.put(0, 0, 10 + value)),
                Happens::Listed => server.list(),
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
            heard |= concerns_writer(index.stream(change));
        }
        let says = index.get(&"k0".to_owned()).and_then(|entry| entry.0.values().next().cloned());
        prop_assert!(heard || wrote == says, "wrote {:?}, the entry says {:?}", wrote, says);
    }


    /// Whoever writes, and however late the watch tells of it: in the end the entries are those of a fresh list of what
    /// exists.
    #[test]
    fn entries_are_a_function_of_what_exists(
        steps in prop::collection::vec((0..9u8, 0..3u8, 0..2u8, 0..3u8), 0..60)
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
                7 => server.list(),
                _ => drop(server.untold.pop_front().map(|change| index.stream(change))),
            }
        }
        for answer in unanswered {
            let _ = index.written(answer);
        }
        while let Some(change) = server.untold.pop_front() {
            let _ = index.stream(change);
        }
        let mut fresh = Index::<String, Seen>::default();
        let _ = fresh.change(Change::Reset(server.live.into_values().collect::<Vec<_>>()));
        prop_assert_eq!(&index.entries, &fresh.entries);
    }
}
