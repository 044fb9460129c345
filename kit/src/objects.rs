//! Objects by namespace and name, with a guard against late news.
//!
//! Two sources tell of an object: the watch, and the API server's answers to our own writes. Either may be late. An object that
//! is older than the one we know, and an object that we deleted, do not enter.

use std::collections::{BTreeMap, HashMap, HashSet};

use api::view::Tolerant;
use kube::{Resource, ResourceExt, core::ObjectMeta};

/// Namespace (empty for cluster-wide kinds) and name of an object.
pub type ObjectName = (String, String);

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum Change<P> {
    /// The object is new or other than before.
    Apply(P),
    /// The object is gone.
    Remove(P),
    /// These are all there are.
    Reset(Vec<P>),
}

impl<P> Change<P> {
    /// The same change, told of another view of the objects.
    pub fn map<Q>(self, view: impl Fn(P) -> Q) -> Change<Q> {
        match self {
            Change::Apply(object) => Change::Apply(view(object)),
            Change::Remove(object) => Change::Remove(view(object)),
            Change::Reset(objects) => Change::Reset(objects.into_iter().map(view).collect()),
        }
    }

    /// What the change tells of those objects of which `view` makes something; nothing if of none.
    pub fn select<Q>(&self, view: impl Fn(&P) -> Option<Q>) -> Option<Change<Q>> {
        match self {
            Change::Apply(object) => view(object).map(Change::Apply),
            Change::Remove(object) => view(object).map(Change::Remove),
            Change::Reset(objects) => Some(Change::Reset(objects.iter().filter_map(view).collect())),
        }
    }
}

/// All objects that one watch selects.
pub struct Objects<P> {
    guard: Guard<P>,
}

impl<P> Default for Objects<P> {
    fn default() -> Self {
        Self { guard: Guard::default() }
    }
}

impl<P: Resource> Objects<P> {
    /// Takes in what a watch told.
    pub fn change(&mut self, change: Change<P>) {
        match change {
            Change::Apply(object) => {
                self.guard.see(version(&object));
                self.put(object);
            }
            Change::Remove(object) => drop(self.guard.remove(&object)),
            Change::Reset(objects) => {
                self.guard.reset(&objects);
                objects.into_iter().for_each(|object| self.put(object));
            }
        }
    }

    /// Takes in the API server's answer to our own write, unless the watch has passed it: the object may be deleted since. `lists` is
    /// what [`lists`](Self::lists) said when the write began.
    pub fn answered(&mut self, object: P, lists: u64) {
        if self.guard.is_news(&object, lists) {
            self.put(object);
        }
    }

    /// How many lists the watch has told.
    pub fn lists(&self) -> u64 {
        self.guard.lists()
    }

    /// Takes in that the API server deleted `object` at our request.
    pub fn deleted(&mut self, object: &P) {
        self.guard.deleted(object);
    }

    /// The object of that name: for watches of one Namespace, or of a cluster-wide kind.
    pub fn get(&self, name: &str) -> Option<&P> {
        let ((namespace, _), _) = self.guard.known.first_key_value()?;
        self.named(&(namespace.clone(), name.to_owned()))
    }

    /// The object of that Namespace and name.
    pub fn named(&self, name: &ObjectName) -> Option<&P> {
        self.guard.get(name)
    }

    /// All of them, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.guard.known.values().map(|known| &known.value)
    }

    /// Those of one Namespace, by name.
    pub fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a P> {
        let first = (namespace.to_owned(), String::new());
        let there = self.guard.known.range(first..).take_while(move |((of, _), _)| of == namespace);
        there.map(|(_, known)| &known.value)
    }

    fn put(&mut self, object: P) {
        if self.guard.admits(&object) {
            self.guard.insert(Tag::of(&object), object);
        }
    }
}

/// All objects that one watch selects, of a kind that others write, too: those that decode.
pub struct Decoded<K>(Objects<Tolerant<K>>);

impl<K> Default for Decoded<K> {
    fn default() -> Self {
        Self(Objects::default())
    }
}

impl<K: Resource> Decoded<K> {
    /// Takes in what a watch told.
    pub fn change(&mut self, change: Change<Tolerant<K>>) {
        self.0.change(change);
    }

    /// The object of that name: for watches of one Namespace, or of a cluster-wide kind.
    pub fn get(&self, name: &str) -> Option<&K> {
        self.0.get(name)?.object.as_ref().ok()
    }

    /// The object of that Namespace and name.
    pub fn named(&self, name: &ObjectName) -> Option<&K> {
        self.0.named(name)?.object.as_ref().ok()
    }

    /// All of them, by Namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &K> {
        self.0.iter().filter_map(|object| object.object.as_ref().ok())
    }

    /// Those of one Namespace, by name.
    pub fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a K> {
        self.0.within(namespace).filter_map(|object| object.object.as_ref().ok())
    }

    /// Those of one Namespace that do not decode, by name, and why.
    pub fn odd<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a ObjectMeta, &'a str)> {
        let why = |object: &'a Tolerant<K>| Some((&object.metadata, object.object.as_ref().err()?.as_str()));
        self.0.within(namespace).filter_map(why)
    }
}

/// What identifies a version of an object.
pub(crate) struct Tag {
    name: ObjectName,
    version: u64,
    uid: Option<String>,
}

impl Tag {
    pub(crate) fn of<P: Resource>(object: &P) -> Self {
        Self { name: name(object), version: version(object), uid: object.uid() }
    }
}

/// What is kept of each object of one kind, and the guard against late news of it.
pub(crate) struct Guard<T> {
    known: BTreeMap<ObjectName, Known<T>>,
    /// Highest resourceVersion that the watch has told of since its last list.
    seen: u64,
    /// How many lists it has told.
    lists: u64,
    /// uids of objects that we deleted and the watch still has to tell of.
    deleted: HashMap<ObjectName, String>,
}

struct Known<T> {
    version: u64,
    uid: Option<String>,
    value: T,
}

impl<T> Default for Guard<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), seen: 0, lists: 0, deleted: HashMap::new() }
    }
}

impl<T> Guard<T> {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn get(&self, name: &ObjectName) -> Option<&T> {
        self.known.get(name).map(|known| &known.value)
    }

    /// The version of the object of that name, 0 without one.
    #[cfg(test)]
    pub(crate) fn version_of(&self, name: &ObjectName) -> u64 {
        self.known.get(name).map_or(0, |known| known.version)
    }

    /// The watch has come to this version.
    pub(crate) fn see(&mut self, version: u64) {
        self.seen = self.seen.max(version);
    }

    /// How many lists the watch has told.
    pub(crate) fn lists(&self) -> u64 {
        self.lists
    }

    /// Whether an answer to a write of ours, which began when the watch had told so many `lists`, is newer than all that the watch told.
    ///
    /// A list says neither its own version nor what was deleted before it, and after a restore the version of the answer means nothing.
    /// So an answer that a list has overtaken does not count: what it says is in the list, or the watch tells it next.
    pub(crate) fn is_news<P: Resource>(&self, answer: &P, lists: u64) -> bool {
        lists == self.lists && version(answer) > self.seen
    }

    /// Whether this is no late news.
    pub(crate) fn admits<P: Resource>(&self, object: &P) -> bool {
        let name = name(object);
        let is_deleted = self.deleted.get(&name).is_some_and(|uid| object.uid().as_ref() == Some(uid));
        !is_deleted && self.known.get(&name).is_none_or(|known| known.version <= version(object))
    }

    pub(crate) fn insert(&mut self, tag: Tag, value: T) {
        self.known.insert(tag.name, Known { version: tag.version, uid: tag.uid, value });
    }

    /// Forgets an object, by its name alone.
    pub(crate) fn forget(&mut self, name: &ObjectName) -> Option<T> {
        self.known.remove(name).map(|known| known.value)
    }

    /// The watch told that the object is gone. A deletion that is older than what we know was of another object of that name, which
    /// we have replaced since.
    pub(crate) fn remove<P: Resource>(&mut self, object: &P) -> Option<T> {
        let (name, version) = (name(object), version(object));
        self.see(version);
        self.deleted.remove(&name);
        if self.known.get(&name).is_some_and(|known| known.version > version) {
            return None;
        }
        self.forget(&name)
    }

    /// The API server deleted the object at our request: what a watch on its way still says of it is late.
    pub(crate) fn deleted<P: Resource>(&mut self, object: &P) -> Option<T> {
        let name = name(object);
        if self.known.get(&name).is_none_or(|known| known.uid != object.uid()) {
            return None;
        }
        self.deleted.extend(object.uid().map(|uid| (name.clone(), uid)));
        self.forget(&name)
    }

    /// These are all objects there are. What was kept of the others. After a list nothing older counts, not even higher
    /// resourceVersions: the API server may have been restored.
    pub(crate) fn reset<P: Resource>(&mut self, objects: &[P]) -> Vec<(ObjectName, T)> {
        self.seen = 0;
        self.lists += 1;
        self.reset_within(|_| true, objects)
    }

    /// [`reset`](Self::reset) of those objects whose names are `within` what one of several watches covers: `objects` are all of them.
    pub(crate) fn reset_within<P: Resource>(
        &mut self,
        within: impl Fn(&ObjectName) -> bool,
        objects: &[P],
    ) -> Vec<(ObjectName, T)> {
        let live: HashSet<ObjectName> = objects.iter().map(name).collect();
        self.see(objects.iter().map(version).max().unwrap_or(0));
        self.deleted.retain(|name, _| !within(name));
        self.known.iter_mut().filter(|(name, _)| within(name)).for_each(|(_, known)| known.version = 0);
        let is_gone = |name: &&ObjectName| within(name) && !live.contains(*name);
        let gone: Vec<_> = self.known.keys().filter(is_gone).cloned().collect();
        gone.into_iter().filter_map(|name| self.forget(&name).map(|value| (name, value))).collect()
    }
}

/// Namespace and name of an object.
pub(crate) fn name<P: Resource>(object: &P) -> ObjectName {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// resourceVersions of one API server can be compared as numbers (guaranteed since Kubernetes 1.35, true before).
pub fn version<P: Resource>(object: &P) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
