//! Writes under way: a controller does not reconcile for what it has written itself.

use std::{collections::BTreeMap, hash::Hash};

use super::{
    Dirty, Entry, GONE, Index, Part, Places, Readers,
    readers::{add, without},
};
use crate::objects::{ObjectName, name, version};

/// Writes of one object under way: their writers know what they write, and need not hear of it from the watch.
pub(super) struct Writes<K> {
    by: Readers,
    /// How many.
    running: u32,
    /// How many lists the watch had told when the first of them began.
    lists: u64,
    /// The keys that the writers would have had to reconcile for what the watch told meanwhile, and up to which version it told.
    withheld: BTreeMap<K, u64>,
}

/// More lists than any watch tells: a list came after the write began.
const OVERTAKEN: u64 = u64::MAX;

impl<K> Places<K> {
    /// A list of the objects `within` came: what answers to writes of these say is in it, or is told next.
    pub(super) fn overtake(&mut self, within: impl Fn(&ObjectName) -> bool) {
        let writes = self.writes.iter_mut().filter(|(name, _)| within(name));
        writes.for_each(|(_, writes)| writes.lists = OVERTAKEN);
    }
}

impl<K: Clone + Eq + Hash + Ord, E: Entry> Index<K, E> {
    /// A controller begins to write an object. What the watch tells of it until [`written`](Self::written) or
    /// [`unwritten`](Self::unwritten) may be this write, of which the controller need not hear.
    pub fn writing<P: Part<K, E>>(&mut self, name: ObjectName, by: Readers) {
        let places = self.places::<P>();
        let lists = places.keys.lists();
        let new = || Writes { by: Readers::NONE, running: 0, lists, withheld: BTreeMap::new() };
        let writes = places.writes.entry(name).or_insert_with(new);
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
        let (answered, name, key) = (version(&answer), name(&answer), answer.key());
        let places = self.places::<P>();
        let now = places.keys.lists();
        let lists = places.writes.get(&name).map_or(now, |writes| writes.lists);
        let is_news = places.keys.is_news(&answer, lists);
        let (by, withheld) = self.ended::<P>(&name);
        let mut dirty = Dirty::new();
        if is_news {
            self.put(answer, &mut dirty);
        }
        without(&mut dirty, by);
        // What the watch told was this very write, or somebody else's.
        for (key, _) in withheld.into_iter().filter(|(_, told)| *told != answered) {
            add(&mut dirty, key, by);
        }
        // A list tells nothing of what came and went before it.
        if let Some(key) = key.filter(|_| lists != now) {
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

    /// Those of `readers` that hear of a change of this object: not who is writing it.
    pub(super) fn withhold<P: 'static>(
        &mut self,
        name: &ObjectName,
        key: &K,
        readers: Readers,
        told: u64,
    ) -> Readers {
        let Some(writes) = self.places::<P>().writes.get_mut(name) else { return readers };
        let heard = readers.without(writes.by);
        if heard != readers {
            let last = writes.withheld.entry(key.clone()).or_default();
            *last = told.max(*last);
        }
        heard
    }
}
