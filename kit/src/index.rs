//! Everything known, by the key it matters to.
//!
//! Many objects of several kinds, from one or two API servers, say something about one key; an [`Index`] keeps an entry
//! for each key and puts every object into the entry it belongs to. It is synchronous and knows no client: after any
//! events in any order the entries are a function of the objects that exist.

mod readers;
mod shared;
mod writes;

use std::{any::TypeId, collections::HashMap, hash::Hash, sync::Arc};

use kube::Resource;

use self::{readers::add, writes::Writes};
pub use self::{
    readers::{Dirty, Readers},
    shared::Shared,
};
use crate::{
    objects::{Change, Guard, ObjectName, Streamed, Tag, name, version},
    queue::Party,
};

/// What is known about one key.
pub trait Entry: Clone + Default {
    /// Nothing is known any more: the entry can go.
    fn is_empty(&self) -> bool;

    /// Whether a controller may have something to do about it.
    fn matters(&self) -> bool {
        true
    }

    /// It has changed: what nobody reads of it need not be kept from now on. `readers` read what it says otherwise; who of them can use it
    /// as it is, and who else has to do something about it.
    fn settle(&mut self, readers: Readers) -> Readers {
        readers
    }

    /// Who wrote what it says: their keys are reconciled in turn with those of others.
    fn party(&self) -> Party {
        Party::NOBODY
    }
}

/// A watched kind, or the part of it that one watch selects: how an object of it lies in an entry.
pub trait Part<K, E>: Resource + 'static {
    /// The key the object says something about; `None` when it says nothing to us.
    fn key(&self) -> Option<K>;
    /// Puts the object into its entry. Who reads what the entry now says otherwise.
    fn put(self, entry: &mut E) -> Readers;
    /// Takes the object of that name out of its entry. Who reads what the entry says no more.
    fn take(entry: &mut E, name: &str) -> Readers;
}

/// The version of what a list does not have any more: later than all that was written.
const GONE: u64 = u64::MAX;

/// Entries by key, and where each object lies. An entry that somebody holds is not changed: a change replaces it.
pub struct Index<K, E> {
    entries: HashMap<Arc<K>, Arc<E>>,
    places: HashMap<TypeId, Places<K>>,
}

struct Places<K> {
    /// The key of each object: that of its entry, which may have many objects.
    keys: Guard<Arc<K>>,
    /// Objects that are being written.
    writes: HashMap<ObjectName, Writes<K>>,
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
            let entry = Arc::make_mut(entry);
            note(entry);
            entry.settle(Readers::NONE);
        }
    }

    /// All keys something is known about that matters.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().filter(|(_, entry)| entry.matters()).map(|(key, _)| &**key)
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

    /// Takes in what a watch of many objects told.
    pub fn stream<P: Part<K, E>>(&mut self, streamed: Streamed<P>) -> Dirty<K> {
        let mut dirty = Dirty::new();
        match streamed {
            Streamed::ListBegins => self.places::<P>().keys.list_begins(),
            Streamed::Change(change) => return self.change(change),
            Streamed::ListEnds => {
                for (name, key) in self.places::<P>().keys.list_ends() {
                    self.take::<P>(&name, Some(key), GONE, &mut dirty);
                }
            }
        }
        dirty
    }

    /// Takes in a list of one of several watches of a kind: `objects` are all whose names are `within` what it covers. Older versions
    /// than the known ones count, since the API server may have been restored.
    pub fn listed_within<P: Part<K, E>>(
        &mut self,
        within: impl Fn(&ObjectName) -> bool,
        objects: Vec<P>,
    ) -> Dirty<K> {
        let mut dirty = Dirty::new();
        let places = self.places::<P>();
        places.overtake(&within);
        for (name, key) in places.keys.reset_within(within, &objects) {
            self.take::<P>(&name, Some(key), GONE, &mut dirty);
        }
        objects.into_iter().for_each(|object| self.put(object, &mut dirty));
        dirty
    }

    /// How many lists the watch of a kind has told.
    pub fn lists<P: Part<K, E>>(&mut self) -> u64 {
        self.places::<P>().keys.lists()
    }

    /// Takes in an object that was read, because an entry did not keep what the watch had told of it. `lists` is what
    /// [`lists`](Self::lists) said when the read began.
    pub fn read<P: Part<K, E>>(&mut self, object: P, lists: u64) -> Dirty<K> {
        let mut dirty = Dirty::new();
        if self.places::<P>().keys.is_still(&object, lists) {
            self.put(object, &mut dirty);
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
        let old = places.keys.get(&name).filter(|old| Some(&***old) != key.as_ref()).cloned();
        if old.is_some() {
            places.keys.forget(&name);
            self.take::<P>(&name, old, told, dirty);
        }
        if let Some(key) = key {
            let shared = self.entries.get_key_value(&key).map(|(shared, _)| shared.clone());
            let shared = shared.unwrap_or_else(|| Arc::new(key.clone()));
            self.places::<P>().keys.insert(tag, shared.clone());
            let entry = Arc::make_mut(self.entries.entry(shared).or_default());
            let readers = object.put(entry);
            let readers = entry.settle(readers);
            let readers = self.withhold::<P>(&name, &key, readers, told);
            add(dirty, key, readers);
        }
    }

    /// Takes the object of that name out of the entry of `key`.
    fn take<P: Part<K, E>>(
        &mut self,
        name: &ObjectName,
        key: Option<Arc<K>>,
        told: u64,
        dirty: &mut Dirty<K>,
    ) {
        let Some(key) = key else { return };
        let Some(entry) = self.entries.get_mut(&*key) else { return };
        let changed = Arc::make_mut(entry);
        let readers = P::take(changed, &name.1);
        let readers = changed.settle(readers);
        if changed.is_empty() {
            self.entries.remove(&*key);
        }
        let readers = self.withhold::<P>(name, &key, readers, told);
        add(dirty, (*key).clone(), readers);
    }
}

#[cfg(test)]
mod tests;
