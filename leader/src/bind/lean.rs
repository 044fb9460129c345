//! What is kept of objects that consumers write: pure. There may be many, and each as large as an API server takes it.

mod gathered;
mod share;
mod view;

use std::{collections::BTreeMap, time::Instant};

use api::{
    bind::{
        export::{
            APIServiceExportRequest, APIServiceExportRequestSpec, APIServiceNamespace,
            APIServiceNamespaceSpec,
        },
        label,
    },
    quota::Quota,
    view::{Tolerant, decoded},
};
use kit::{
    log_limit::LogLimit,
    objects::{Change, Decoded, ObjectName},
};
use kube::{Resource, core::ObjectMeta};
use serde_json::value::RawValue;

use self::share::Share;
pub(super) use self::{gathered::Gathered, view::Lean};
use super::key::Key;

/// A kind that consumers write.
pub(super) trait Written: Resource<DynamicType = ()> + Sized {
    /// Most memory for one, without what nobody reads here.
    const BYTES: usize;
    /// How much of one cluster namespace is looked at.
    const QUOTA: Quota;
    /// Fields of its spec that nobody reads here.
    const UNREAD: &'static [&'static str];

    /// Whether it is looked at however many others there are.
    fn stays(&self) -> bool;

    /// What is needed of one that is too large or does not decode; nothing where it can be left out. Otherwise its consumer could keep
    /// it, and all that was made for it, from going.
    fn rest(metadata: ObjectMeta, status: Option<&RawValue>) -> Option<Self>;
}

/// Parameters may be anything.
impl Written for APIServiceExportRequest {
    const BYTES: usize = 128 << 10;
    const QUOTA: Quota = Quota { records: 200, bytes: 4 << 20 };
    const UNREAD: &'static [&'static str] = &["parameters"];

    fn stays(&self) -> bool {
        is_going(&self.metadata)
    }

    fn rest(metadata: ObjectMeta, _: Option<&RawValue>) -> Option<Self> {
        let spec = APIServiceExportRequestSpec::default();
        is_going(&metadata).then_some(Self { metadata, spec, status: None })
    }
}

/// Who has our finalizer has a Namespace here, or rights in one. Who sets that finalizer itself has no more than others: only the leader
/// writes the status.
impl Written for APIServiceNamespace {
    const BYTES: usize = 8 << 10;
    const QUOTA: Quota = Quota { records: 5000, bytes: 16 << 20 };
    const UNREAD: &'static [&'static str] = &[];

    fn stays(&self) -> bool {
        let said = self.status.as_ref().and_then(|status| status.namespace.as_deref());
        is_going(&self.metadata) || is_held(&self.metadata) && said.is_some_and(|said| !said.is_empty())
    }

    fn rest(metadata: ObjectMeta, status: Option<&RawValue>) -> Option<Self> {
        let status = status.and_then(|status| decoded(status).ok());
        let spec = APIServiceNamespaceSpec {};
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

/// Why an object is not looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unread {
    /// There are others.
    #[error("its cluster namespace has more of its kind than are looked at: {0}")]
    TooMany(usize),
    /// It is too large or does not decode.
    #[error("{0}")]
    Odd(String),
}

/// Says in the log what is not looked at.
#[derive(Default)]
struct Unsaid(LogLimit);

impl Unsaid {
    fn say(&mut self, key: &Key, why: &Unread) {
        if let Some(left_out) = self.0.allows(Instant::now()) {
            tracing::warn!(namespace = key.cluster_namespace, name = key.name, %why, left_out, "not looked at");
        }
    }
}

/// What is known of a kind that consumers write.
pub(super) struct Bounded<K> {
    known: Decoded<K>,
    /// By cluster namespace.
    shares: BTreeMap<String, Share>,
    unsaid: Unsaid,
}

impl<K> Default for Bounded<K> {
    fn default() -> Self {
        Self { known: Decoded::default(), shares: BTreeMap::new(), unsaid: Unsaid::default() }
    }
}

impl<K: Written> Bounded<K> {
    /// Takes in what a watch told.
    pub(super) fn change(&mut self, change: Change<Lean<K>>) {
        match change {
            Change::Apply(object) => {
                let object = self.kept(object);
                self.known.change(match object.object {
                    Ok(_) => Change::Apply(object),
                    Err(_) => Change::Remove(object),
                });
            }
            Change::Remove(object) => {
                let Key { cluster_namespace, name } = Key::of(&object);
                if let Some(share) = self.shares.get_mut(&cluster_namespace) {
                    share.forget(&name);
                    if share.is_empty() {
                        self.shares.remove(&cluster_namespace);
                    }
                }
                self.known.change(Change::Remove(Tolerant {
                    metadata: object.metadata,
                    object: Err(String::new()),
                }));
            }
            Change::Reset(mut objects) => {
                // Something was made for these.
                objects.sort_by_key(|object| !is_held(&object.metadata));
                self.shares.clear();
                let kept = objects.into_iter().map(|object| self.kept(object));
                let kept = kept.filter(|object| object.object.is_ok()).collect();
                self.known.change(Change::Reset(kept));
            }
        }
    }

    fn kept(&mut self, object: Lean<K>) -> Tolerant<K> {
        let key = Key::of(&object);
        let share = self.shares.entry(key.cluster_namespace.clone()).or_default();
        share.forget(&key.name);
        let fits = |content: &K| {
            content.stays() || share.room(K::QUOTA) > 0 && share.bytes + object.bytes <= K::QUOTA.bytes
        };
        let content = match object.object {
            Ok(content) if fits(&content) => Ok(content),
            Ok(_) => Err(Unread::TooMany(K::QUOTA.records)),
            Err(why) => Err(why),
        };
        match &content {
            Ok(_) => share.put(key.name.clone(), object.bytes),
            Err(Unread::TooMany(_)) => share.leave_out(key.name.clone(), K::QUOTA),
            Err(Unread::Odd(why)) => share.put_odd(key.name.clone(), why, K::QUOTA),
        }
        if let Err(why) = &content {
            self.unsaid.say(&key, why);
        }
        let ObjectMeta { name, namespace, uid, resource_version, .. } = object.metadata;
        let metadata = ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
        Tolerant { metadata, object: content.map_err(|why| why.to_string()) }
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
        let Some(share) = self.shares.get(cluster_namespace) else { return Vec::new() };
        let names = share.left_out.iter().take(share.room(K::QUOTA)).cloned();
        names.map(|name| Key { cluster_namespace: cluster_namespace.to_owned(), name }).collect()
    }

    /// Whether it was left out and there is room for it by now.
    pub(super) fn has_room_for(&self, key: &Key) -> bool {
        let share = self.shares.get(&key.cluster_namespace);
        share.is_some_and(|share| share.left_out.contains(&key.name) && share.room(K::QUOTA) > 0)
    }

    /// Why the one of that cluster namespace and name is not read, where it cannot be.
    pub(super) fn odd(&self, key: &Key) -> Option<&str> {
        self.shares.get(&key.cluster_namespace)?.odd.get(&key.name).map(String::as_str)
    }

    /// Those that cannot be read.
    pub(super) fn all_odd(&self) -> impl Iterator<Item = Key> {
        let keys = |(of, share): (&String, &Share)| {
            let key = |name: &String| Key { cluster_namespace: of.clone(), name: name.clone() };
            share.odd.keys().map(key).collect::<Vec<_>>()
        };
        self.shares.iter().flat_map(keys)
    }

    /// Whether all is to be listed again, since there is room for some of which nothing is known.
    pub(super) fn wants_list(&self) -> bool {
        let has_room = |share: &Share| {
            let is_read = share.has_more && share.left_out.is_empty() && share.room(K::QUOTA) > 0;
            is_read || share.has_more_odd && share.odd.len() < K::QUOTA.records
        };
        self.shares.values().any(has_room)
    }
}

#[cfg(test)]
mod tests;
