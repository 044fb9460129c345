//! Everything known, by the key it matters to.
//!
//! Many objects of several kinds, from one or two API servers, say something about one key; an [`Index`] keeps an entry
//! for each key and puts every object into the entry it belongs to. It is synchronous and knows no client: after any
//! events in any order the entries are a function of the objects that exist.

use std::{
    any::TypeId,
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use kube::Resource;

use crate::{
    objects::{Change, Guard, ObjectName, Tag, name, version},
    queue::Party,
};

/// What is known about one key.
pub trait Entry: Clone + Default {
    /// Nothing is known any more: the entry can go.
    fn is_empty(&self) -> bool;

    /// Who wrote what it says: their keys are reconciled in turn with those of others.
    fn party(&self) -> Party {
        Party::NOBODY
    }
}

/// A watched kind, or the part of it that one watch selects: how an object of it lies in an entry.
pub trait Part<K, E>: Resource<DynamicType = ()> + 'static {
    /// The key the object says something about; `None` when it says nothing to us.
    fn key(&self) -> Option<K>;
    /// Puts the object into its entry. Who reads what the entry now says otherwise.
    fn put(self, entry: &mut E) -> Readers;
    /// Takes the object of that name out of its entry. Who reads what the entry says no more.
    fn take(entry: &mut E, name: &str) -> Readers;
}

/// A set of controllers: those that read what changed. The number of a controller is that of its queue in a
/// [`Store`](crate::store::Store).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readers(u8);

impl Readers {
    /// Nobody.
    pub const NONE: Self = Self(0);
    /// Every controller.
    pub const ALL: Self = Self(u8::MAX);

    /// The controller of this number, less than eight.
    pub const fn one(number: u8) -> Self {
        Self(1 << number)
    }

    /// Those of either set.
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those of this set that are not in the other.
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// These if something `changed`, else nobody.
    pub const fn when(self, changed: bool) -> Self {
        if changed { self } else { Self::NONE }
    }

    /// Whether all of `others` are in it.
    pub const fn has(self, others: Self) -> bool {
        others.without(self).0 == 0
    }

    /// Whether nobody is in it.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// Keys whose entries changed, and who reads what changed. No key is in it that nobody has to reconcile.
pub type Dirty<K> = BTreeMap<K, Readers>;

fn add<K: Ord>(dirty: &mut Dirty<K>, key: K, readers: Readers) {
    if !readers.is_none() {
        let all = dirty.entry(key).or_default();
        *all = all.and(readers);
    }
}

fn without<K: Ord>(dirty: &mut Dirty<K>, others: Readers) {
    dirty.retain(|_, readers| {
        *readers = readers.without(others);
        !readers.is_none()
    });
}

/// The version of what a list does not have any more: later than all that was written.
const GONE: u64 = u64::MAX;

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

/// Entries by key, and where each object lies. An entry that somebody holds is not changed: a change replaces it.
pub struct Index<K, E> {
    entries: HashMap<K, Arc<E>>,
    places: HashMap<TypeId, Places<K>>,
}

struct Places<K> {
    /// The key of each object.
    keys: Guard<K>,
    /// Objects that are being written.
    writes: HashMap<ObjectName, Writes<K>>,
}

/// Writes of one object under way: their writers know what they write, and need not hear of it from the watch.
struct Writes<K> {
    by: Readers,
    /// How many.
    running: u32,
    /// The keys that the writers would have had to reconcile for what the watch told meanwhile, and up to which version it told.
    withheld: BTreeMap<K, u64>,
}

impl<K, E> Default for Index<K, E> {
    fn default() -> Self {
        Self { entries: HashMap::new(), places: HashMap::new() }
    }
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self { keys: Guard::default(), writes: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Ord, E: Entry> Index<K, E> {
    /// The entry of a key, if anything is known about it.
    pub fn get(&self, key: &K) -> Option<&Arc<E>> {
        self.entries.get(key)
    }

    /// The entry of a key, to note in it what no watch tells. Does nothing when nothing is known about the key.
    pub fn note(&mut self, key: &K, note: impl FnOnce(&mut E)) {
        if let Some(entry) = self.entries.get_mut(key) {
            note(Arc::make_mut(entry));
        }
    }

    /// All keys something is known about.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.keys()
    }

    /// Number of objects of one kind.
    pub fn count<P: Part<K, E>>(&self) -> usize {
        self.places.get(&TypeId::of::<P>()).map_or(0, |places| places.keys.len())
    }

    /// Takes in what a watch told.
    pub fn change<P: Part<K, E>>(&mut self, change: Change<P>) -> Dirty<K> {
        let mut dirty = Dirty::new();
        match change {
            Change::Apply(object) => {
                self.places::<P>().keys.see(version(&object));
                self.put(object, &mut dirty);
            }
            Change::Remove(object) => {
                let key = self.places::<P>().keys.remove(&object);
                self.take::<P>(&name(&object), key, version(&object), &mut dirty);
            }
            Change::Reset(objects) => {
                for (name, key) in self.places::<P>().keys.reset(&objects) {
                    self.take::<P>(&name, Some(key), GONE, &mut dirty);
                }
                objects.into_iter().for_each(|object| self.put(object, &mut dirty));
            }
        }
        dirty
    }

    /// A controller begins to write an object. What the watch tells of it until [`written`](Self::written) or
    /// [`unwritten`](Self::unwritten) may be this write, of which the controller need not hear.
    pub fn writing<P: Part<K, E>>(&mut self, name: ObjectName, by: Readers) {
        let new = || Writes { by: Readers::NONE, running: 0, withheld: BTreeMap::new() };
        let writes = self.places::<P>().writes.entry(name).or_insert_with(new);
        writes.by = writes.by.and(by);
        writes.running += 1;
    }

    /// A write of this object ended: who writes it, and what was withheld from them meanwhile.
    fn ended<P: 'static>(&mut self, name: &ObjectName) -> (Readers, BTreeMap<K, u64>) {
        let places = self.places::<P>();
        let Some(writes) = places.writes.get_mut(name) else { return (Readers::NONE, BTreeMap::new()) };
        writes.running -= 1;
        let (by, withheld) = (writes.by, std::mem::take(&mut writes.withheld));
        if writes.running == 0 {
            places.writes.remove(name);
        }
        (by, withheld)
    }

    /// Takes in the API server's answer to the write, so that the next reconcile does not repeat it while the watch is still on
    /// its way. The writer has acted on it already. An answer the watch has passed is late, perhaps of an object deleted since.
    #[must_use = "the watch will not tell again what the answer told"]
    pub fn written<P: Part<K, E>>(&mut self, answer: P) -> Dirty<K> {
        let answered = version(&answer);
        let (by, withheld) = self.ended::<P>(&name(&answer));
        let mut dirty = Dirty::new();
        if self.places::<P>().keys.is_news(&answer) {
            self.put(answer, &mut dirty);
        }
        without(&mut dirty, by);
        // What the watch told was this very write, or somebody else's.
        for (key, _) in withheld.into_iter().filter(|(_, told)| *told != answered) {
            add(&mut dirty, key, by);
        }
        dirty
    }

    /// The write of this object failed: what the watch told meanwhile was somebody else's.
    #[must_use = "the watch will not tell again what it told"]
    pub fn unwritten<P: Part<K, E>>(&mut self, name: &ObjectName) -> Dirty<K> {
        let (by, withheld) = self.ended::<P>(name);
        withheld.into_keys().map(|key| (key, by)).collect()
    }

    /// The API server deleted `object` at the writer's request: what a watch still on its way says of it is late.
    #[must_use = "the watch will not tell again what the answer told"]
    pub fn deleted<P: Part<K, E>>(&mut self, object: &P) -> Dirty<K> {
        let (by, withheld) = self.ended::<P>(&name(object));
        let places = self.places::<P>();
        let key = places.keys.deleted(object);
        let is_another_there = places.keys.get(&name(object)).is_some();
        let mut dirty = Dirty::new();
        self.take::<P>(&name(object), key, GONE, &mut dirty);
        without(&mut dirty, by);
        // Somebody has created another one of that name since.
        for (key, _) in withheld.into_iter().filter(|_| is_another_there) {
            add(&mut dirty, key, by);
        }
        dirty
    }

    fn places<P: 'static>(&mut self) -> &mut Places<K> {
        self.places.entry(TypeId::of::<P>()).or_default()
    }

    fn put<P: Part<K, E>>(&mut self, object: P, dirty: &mut Dirty<K>) {
        let places = self.places::<P>();
        if !places.keys.admits(&object) {
            return;
        }
        let (tag, key, told) = (Tag::of(&object), object.key(), version(&object));
        let name = name(&object);
        let old = places.keys.get(&name).filter(|old| Some(*old) != key.as_ref()).cloned();
        if old.is_some() {
            places.keys.forget(&name);
            self.take::<P>(&name, old, told, dirty);
        }
        if let Some(key) = key {
            self.places::<P>().keys.insert(tag, key.clone());
            let readers = object.put(Arc::make_mut(self.entries.entry(key.clone()).or_default()));
            let readers = self.withhold::<P>(&name, &key, readers, told);
            add(dirty, key, readers);
        }
    }

    /// Takes the object of that name out of the entry of `key`.
    fn take<P: Part<K, E>>(&mut self, name: &ObjectName, key: Option<K>, told: u64, dirty: &mut Dirty<K>) {
        let Some(key) = key else { return };
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let readers = P::take(Arc::make_mut(entry), &name.1);
        if entry.is_empty() {
            self.entries.remove(&key);
        }
        let readers = self.withhold::<P>(name, &key, readers, told);
        add(dirty, key, readers);
    }

    /// Those of `readers` that hear of a change of this object: not who is writing it.
    fn withhold<P: 'static>(&mut self, name: &ObjectName, key: &K, readers: Readers, told: u64) -> Readers {
        let Some(writes) = self.places::<P>().writes.get_mut(name) else { return readers };
        let heard = readers.without(writes.by);
        if heard != readers {
            let last = writes.withheld.entry(key.clone()).or_default();
            *last = told.max(*last);
        }
        heard
    }
}

#[cfg(test)]
mod tests;
