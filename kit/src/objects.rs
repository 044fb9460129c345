//! Objects by namespace and name, with a guard against late news.
//!
//! Two sources tell of an object: the watch, and the API server's answers to our own writes. Either may be late. An object that
//! is older than the one we know, and an object that we deleted, do not enter.

mod by_name;
mod guard;

use api::view::Tolerant;
use kube::{Resource, ResourceExt, core::ObjectMeta};

pub(crate) use self::guard::{Guard, Tag};

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

/// What a watch of many objects tells: lists object by object, so that they are never all here at once.
#[derive(Clone, Debug)]
pub enum Streamed<P> {
    /// A list begins, also one in the place of a list that broke off. All that was told is taken to be there until it ends.
    ListBegins,
    /// An object of a list is there, or one has changed after it; never [`Change::Reset`].
    Change(Change<P>),
    /// What was not told since the list began is gone.
    ListEnds,
}

impl<P> Streamed<P> {
    /// What it tells of those objects of which `view` makes something; nothing if of none.
    pub fn select<Q>(&self, view: impl Fn(&P) -> Option<Q>) -> Option<Streamed<Q>> {
        match self {
            Streamed::ListBegins => Some(Streamed::ListBegins),
            Streamed::Change(change) => change.select(view).map(Streamed::Change),
            Streamed::ListEnds => Some(Streamed::ListEnds),
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
        let namespace = self.guard.first_namespace()?;
        self.named(&(namespace.to_owned(), name.to_owned()))
    }

    /// The object of that Namespace and name.
    pub fn named(&self, name: &ObjectName) -> Option<&P> {
        self.guard.get(name)
    }

    /// All of them, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.guard.values()
    }

    /// Those of one Namespace, by name.
    pub fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a P> {
        self.guard.within(namespace)
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
