//! Everything known, by the key it matters to.
//!
//! Many objects of several kinds, from one or two API servers, say something about one key; an [`Index`] keeps an entry
//! for each key and puts every object into the entry it belongs to. It is synchronous and knows no client: after any
//! events in any order the entries are a function of the objects that exist.

use std::{
    any::TypeId,
    collections::{BTreeSet, HashMap, HashSet},
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use kube::{Resource, ResourceExt};

/// Namespace (empty for cluster-wide kinds) and name of an object.
pub type ObjectName = (String, String);

/// What is known about one key.
pub trait Entry: Default {
    /// Nothing is known any more: the entry can go.
    fn is_empty(&self) -> bool;
}

/// A watched kind, or the part of it that one watch selects: how an object of it lies in an entry.
pub trait Part<K, E>: Resource<DynamicType = ()> + 'static {
    /// The key the object says something about; `None` when it says nothing to us.
    fn key(&self) -> Option<K>;
    /// Puts the object into its entry. Whether the entry now says something else.
    fn put(self, entry: &mut E) -> bool;
    /// Takes the object of that name out of its entry.
    fn take(entry: &mut E, name: &str);
}

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
}

/// What watches write to and controllers read from. Cloning shares it.
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Shared<T> {
    /// Shares `content`.
    pub fn new(content: T) -> Self {
        Self(Arc::new(Mutex::new(content)))
    }

    /// Does synchronous work on it while nobody else does.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Entries by key, and where each object lies.
pub struct Index<K, E> {
    entries: HashMap<K, E>,
    places: HashMap<TypeId, Places<K>>,
}

struct Places<K> {
    objects: HashMap<ObjectName, Place<K>>,
    /// Highest resourceVersion the watch has told of.
    seen: u64,
    /// uids of objects we deleted and the watch still has to tell of.
    deleted: HashMap<ObjectName, String>,
}

struct Place<K> {
    key: K,
    version: u64,
    uid: Option<String>,
}

impl<K, E> Default for Index<K, E> {
    fn default() -> Self {
        Self { entries: HashMap::new(), places: HashMap::new() }
    }
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self { objects: HashMap::new(), seen: 0, deleted: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Ord, E: Entry> Index<K, E> {
    /// The entry of a key, if anything is known about it.
    pub fn get(&self, key: &K) -> Option<&E> {
        self.entries.get(key)
    }

    /// The entry of a key, to note in it what no watch tells. Does nothing when nothing is known about the key.
    pub fn note(&mut self, key: &K, note: impl FnOnce(&mut E)) {
        if let Some(entry) = self.entries.get_mut(key) {
            note(entry);
        }
    }

    /// All keys something is known about.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.keys()
    }

    /// Number of objects of one kind.
    pub fn count<P: Part<K, E>>(&self) -> usize {
        self.places.get(&TypeId::of::<P>()).map_or(0, |places| places.objects.len())
    }

    /// Takes in what a watch told; the keys whose entries changed.
    pub fn change<P: Part<K, E>>(&mut self, change: Change<P>) -> BTreeSet<K> {
        let mut dirty = BTreeSet::new();
        match change {
            Change::Apply(object) => {
                self.see::<P>(version(&object));
                self.put(object, &mut dirty);
            }
            Change::Remove(object) => {
                self.see::<P>(version(&object));
                self.take::<P>(&name(&object), &mut dirty);
                if let Some(places) = self.places.get_mut(&TypeId::of::<P>()) {
                    places.deleted.remove(&name(&object));
                }
            }
            Change::Reset(objects) => self.reset(objects, &mut dirty),
        }
        dirty
    }

    /// Takes in the API server's answer to our own write, so that the next look does not repeat the write while the watch
    /// is still on its way. An answer the watch has already passed is old news, perhaps of an object deleted since.
    #[must_use = "the watch will not tell again what the answer told"]
    pub fn echo<P: Part<K, E>>(&mut self, answer: P) -> BTreeSet<K> {
        let mut dirty = BTreeSet::new();
        let seen = self.places.get(&TypeId::of::<P>()).map_or(0, |places| places.seen);
        if version(&answer) > seen {
            self.put(answer, &mut dirty);
        }
        dirty
    }

    /// The API server has deleted `object` at our request: what a watch still on its way says of it is old news.
    #[must_use = "the watch will not tell again what the answer told"]
    pub fn deleted<P: Part<K, E>>(&mut self, object: &P) -> BTreeSet<K> {
        let mut dirty = BTreeSet::new();
        let places = self.places.entry(TypeId::of::<P>()).or_default();
        if places.objects.get(&name(object)).is_some_and(|place| place.uid == object.uid()) {
            places.deleted.extend(object.uid().map(|uid| (name(object), uid)));
            self.take::<P>(&name(object), &mut dirty);
        }
        dirty
    }

    /// After a list nothing older counts, not even higher resourceVersions: the API server may have been restored.
    fn reset<P: Part<K, E>>(&mut self, objects: Vec<P>, dirty: &mut BTreeSet<K>) {
        let live: HashSet<ObjectName> = objects.iter().map(name).collect();
        let places = self.places.entry(TypeId::of::<P>()).or_default();
        places.seen = objects.iter().map(version).max().unwrap_or(0);
        places.objects.values_mut().for_each(|place| place.version = 0);
        places.deleted.clear();
        let gone: Vec<ObjectName> =
            places.objects.keys().filter(|name| !live.contains(*name)).cloned().collect();
        for name in gone {
            self.take::<P>(&name, dirty);
        }
        for object in objects {
            self.put(object, dirty);
        }
    }

    fn see<P: Part<K, E>>(&mut self, version: u64) {
        let places = self.places.entry(TypeId::of::<P>()).or_default();
        places.seen = places.seen.max(version);
    }

    fn put<P: Part<K, E>>(&mut self, object: P, dirty: &mut BTreeSet<K>) {
        let (name, version) = (name(&object), version(&object));
        let places = self.places.entry(TypeId::of::<P>()).or_default();
        let old = places.objects.get(&name);
        let deleted = places.deleted.get(&name).is_some_and(|uid| object.uid().as_ref() == Some(uid));
        if deleted || old.is_some_and(|old| old.version > version) {
            return;
        }
        let key = object.key();
        if old.is_some_and(|old| Some(&old.key) != key.as_ref()) {
            self.take::<P>(&name, dirty);
        }
        if let Some(key) = key {
            let places = self.places.entry(TypeId::of::<P>()).or_default();
            places.objects.insert(name, Place { key: key.clone(), version, uid: object.uid() });
            if object.put(self.entries.entry(key.clone()).or_default()) {
                dirty.insert(key);
            }
        }
    }

    fn take<P: Part<K, E>>(&mut self, name: &ObjectName, dirty: &mut BTreeSet<K>) {
        let places = self.places.entry(TypeId::of::<P>()).or_default();
        let Some(Place { key, .. }) = places.objects.remove(name) else {
            return;
        };
        if let Some(entry) = self.entries.get_mut(&key) {
            P::take(entry, &name.1);
            if entry.is_empty() {
                self.entries.remove(&key);
            }
        }
        dirty.insert(key);
    }
}

fn name<P: Resource>(object: &P) -> ObjectName {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// resourceVersions of one API server can be compared as numbers (guaranteed since Kubernetes 1.35, true before).
fn version<P: Resource>(object: &P) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
