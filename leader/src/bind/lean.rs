//! What is kept of objects that consumers write: pure. There may be many, and each as large as an API server takes it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    bind::{
        export::{
            APIServiceExportRequest, APIServiceExportRequestSpec, APIServiceNamespace,
            APIServiceNamespaceSpec,
        },
        label,
    },
    view::Tolerant,
};
use kit::objects::{Change, Decoded, ObjectName};
use kube::{Resource, core::ObjectMeta};
use serde::Serialize;

use super::key::Key;

/// A kind that consumers write.
pub(super) trait Written: Resource<DynamicType = ()> + Serialize + Sized {
    /// Largest object, without what nobody reads here.
    const BYTES: usize;
    /// How many of one cluster namespace are looked at.
    const OBJECTS: usize;

    /// Takes off what nobody reads here, beside labels and annotations.
    fn trim(&mut self);

    /// Whether it is looked at however many others there are.
    fn stays(&self) -> bool;

    /// What is needed of one that is too large or does not decode; nothing where it can be left out. Otherwise its consumer could keep
    /// it, and all that was made for it, from going.
    fn rest(metadata: ObjectMeta, whole: Option<Self>) -> Option<Self>;
}

/// Parameters may be anything.
impl Written for APIServiceExportRequest {
    const BYTES: usize = 64 << 10;
    const OBJECTS: usize = 200;

    fn trim(&mut self) {
        self.spec.parameters = None;
    }

    fn stays(&self) -> bool {
        is_going(&self.metadata)
    }

    fn rest(metadata: ObjectMeta, _: Option<Self>) -> Option<Self> {
        let spec = APIServiceExportRequestSpec::default();
        is_going(&metadata).then_some(Self { metadata, spec, status: None })
    }
}

/// Who has our finalizer has a Namespace here, or rights in one. Who sets that finalizer itself has no more than others: only the leader
/// writes the status.
impl Written for APIServiceNamespace {
    const BYTES: usize = 4 << 10;
    const OBJECTS: usize = 5000;

    fn trim(&mut self) {}

    fn stays(&self) -> bool {
        let said = self.status.as_ref().and_then(|status| status.namespace.as_deref());
        is_going(&self.metadata) || is_held(&self.metadata) && said.is_some_and(|said| !said.is_empty())
    }

    fn rest(metadata: ObjectMeta, whole: Option<Self>) -> Option<Self> {
        let (spec, status) = (APIServiceNamespaceSpec {}, whole.and_then(|whole| whole.status));
        (is_going(&metadata) || is_held(&metadata)).then_some(Self { metadata, spec, status })
    }
}

fn is_going(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// Whether something was, or is to be, made for it.
pub(super) fn is_held(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().flatten().any(|held| held == label::BIND_FINALIZER)
}

/// What is known of a kind that consumers write.
pub(super) struct Bounded<K> {
    known: Decoded<K>,
    /// There are more of their cluster namespace than are looked at.
    left_out: BTreeSet<Key>,
}

impl<K> Default for Bounded<K> {
    fn default() -> Self {
        Self { known: Decoded::default(), left_out: BTreeSet::new() }
    }
}

impl<K: Written> Bounded<K> {
    /// Takes in what a watch told.
    pub(super) fn change(&mut self, change: Change<Tolerant<K>>) {
        let change = match change {
            Change::Apply(object) => {
                let key = Key::of(&object);
                let others = self.known.within(&key.cluster_namespace);
                let others = others.filter(|other| other.meta().name != object.metadata.name).count();
                Change::Apply(self.kept(object, &key, others))
            }
            Change::Remove(object) => {
                self.left_out.remove(&Key::of(&object));
                Change::Remove(object)
            }
            Change::Reset(mut objects) => {
                // Something was made for these.
                objects.sort_by_key(|object| !is_held(&object.metadata));
                self.left_out.clear();
                let mut counts = BTreeMap::<_, usize>::new();
                let kept = objects.into_iter().map(|object| {
                    let key = Key::of(&object);
                    let count = counts.entry(key.cluster_namespace.clone()).or_default();
                    let object = self.kept(object, &key, *count);
                    *count += usize::from(object.object.is_ok());
                    object
                });
                Change::Reset(kept.collect())
            }
        };
        self.known.change(change);
    }

    fn kept(&mut self, object: Tolerant<K>, key: &Key, others: usize) -> Tolerant<K> {
        let mut object = trimmed(object);
        let is_one_more = |content: &K| others >= K::OBJECTS && !content.stays();
        if object.object.as_ref().is_ok_and(is_one_more) {
            object.object = Err(format!("its cluster namespace has more than {} of its kind", K::OBJECTS));
            self.left_out.insert(key.clone());
        } else {
            self.left_out.remove(key);
        }
        if let Err(why) = &object.object {
            tracing::warn!(namespace = key.cluster_namespace, name = key.name, why, "not looked at");
        }
        object
    }

    /// The one of that cluster namespace and name.
    pub(super) fn named(&self, name: &ObjectName) -> Option<&K> {
        self.known.named(name)
    }

    /// All of them, by cluster namespace and name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &K> {
        self.known.iter()
    }

    /// Those of one cluster namespace.
    pub(super) fn within<'a>(&'a self, cluster_namespace: &'a str) -> impl Iterator<Item = &'a K> {
        self.known.within(cluster_namespace)
    }

    /// Those of a cluster namespace that were left out and that there is room for by now.
    pub(super) fn next(&self, cluster_namespace: &str) -> Vec<Key> {
        let first = Key { cluster_namespace: cluster_namespace.to_owned(), name: String::new() };
        let left_out = self.left_out.range(first..);
        let mut left_out =
            left_out.take_while(|key| key.cluster_namespace == cluster_namespace).cloned().peekable();
        match left_out.peek() {
            Some(_) => left_out.take(self.room(cluster_namespace)).collect(),
            None => Vec::new(),
        }
    }

    /// Whether it was left out and there is room for it by now.
    pub(super) fn has_room_for(&self, key: &Key) -> bool {
        self.left_out.contains(key) && self.room(&key.cluster_namespace) > 0
    }

    fn room(&self, cluster_namespace: &str) -> usize {
        K::OBJECTS.saturating_sub(self.within(cluster_namespace).count())
    }
}

/// Without what nobody reads; of one that is too large what is needed, or why it is left out.
pub(super) fn trimmed<K: Written>(object: Tolerant<K>) -> Tolerant<K> {
    let rest = |whole: Option<K>, why: String| K::rest(bare(&object.metadata), whole).ok_or(why);
    let content = match object.object {
        Err(why) => rest(None, why),
        Ok(mut content) => {
            content.trim();
            let metadata = content.meta_mut();
            (metadata.labels, metadata.annotations) = (None, None);
            match serde_json::to_vec(&content).map(|json| json.len()) {
                Ok(bytes) if bytes <= K::BYTES => Ok(content),
                Ok(bytes) => {
                    let why = format!("it has {bytes} bytes, and more than {} are not looked at", K::BYTES);
                    rest(Some(content), why)
                }
                Err(error) => rest(Some(content), error.to_string()),
            }
        }
    };
    let ObjectMeta { name, namespace, uid, resource_version, .. } = object.metadata;
    let metadata = ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
    Tolerant { metadata, object: content }
}

/// Which object it is, and how far. Of its finalizers ours alone.
fn bare(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        creation_timestamp: metadata.creation_timestamp.clone(),
        deletion_timestamp: metadata.deletion_timestamp.clone(),
        finalizers: is_held(metadata).then(|| vec![label::BIND_FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests;
