//! Our maps, at home: watches NamespaceOffloadings, virtual nodes and our own NamespaceMaps; writes into the map of each cluster the keys
//! of all Namespaces that select it, and takes out those of which somebody decided that, by which the host deletes the twins. Safe to run
//! twice: keys are a function of NamespaceOffloadings and virtual nodes, and only differences are sent.
//!
//! All that waits for one host goes in one patch of single keys, since with each write the whole map is stored and sent to its watchers.
//! A key comes when the finalizer is on its NamespaceOffloading. What merely vanished (a Node, an OffloadPeer, a CRD, a map) leaves the keys
//! as they are, and a map that vanished is put back whole.

mod keys;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    offload::{
        map::{ENTRIES_MAX, NamespaceMapSpec},
        names,
    },
    view::Lenient,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kit::{
    queue::Outcome,
    write::{Error, Writer},
};
use serde_json::json;

use self::keys::{Asking, Changes, changes, whole};
use super::{
    index::{ClusterEntry, NAMESPACE, NamespaceEntry, OWN_MAP, STATUS},
    knowledge::Knowledge,
    view::OwnMap,
};
use crate::home::Lost;

/// When a map that is full is looked at again.
const AGAIN: Duration = Duration::from_secs(30);

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct OwnMaps {
    pub(super) knowledge: Knowledge,
    /// What a restore of this cluster has lost.
    pub(super) lost: Option<Lost>,
    pub(super) writer: Writer,
}

impl OwnMaps {
    /// Brings our map for one cluster up to date.
    pub(super) async fn reconcile(self, cluster: String) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.clusters.get(&cluster) else { return Ok(Outcome::Done) };
        let underway = self.knowledge.writing.begin(&cluster);
        let asking = all_asking(&self.knowledge);
        let changes = desired(&self.knowledge, &asking, (&cluster, &entry), self.is_lost(&entry));
        let Some(changes) = changes else { return Ok(Outcome::Done) };
        underway.has(changes.keys.keys().cloned());
        let written = match (&entry.own_map, entry.wanted()) {
            (Some(_), Some(_)) if changes.keys.is_empty() => Ok(()),
            (Some(map), Some(_)) => self.patch(map, &changes).await,
            (have, _) => self.put(have.as_ref(), &cluster, &changes).await,
        };
        if written.is_ok() {
            self.note(&cluster, &changes, &asking);
        }
        drop(underway);
        // The answer has what the host said meanwhile, which no watch tells any more.
        let after = self.knowledge.clusters.get(&cluster).unwrap_or_default();
        self.knowledge.own_map_changed(&cluster, &entry, &after);
        let touched = changes.keys.into_keys().map(|namespace| (namespace, NAMESPACE.and(STATUS)));
        self.knowledge.namespaces.enqueue(touched.collect());
        written?;
        Ok(match changes.left_out {
            0 => Outcome::Done,
            count => {
                tracing::warn!(
                    cluster,
                    count,
                    "a NamespaceMap has room for {ENTRIES_MAX} Namespaces; others wait"
                );
                Outcome::Requeue(AGAIN)
            }
        })
    }

    /// Whether the map was made in a time of this cluster that a restore from a backup has lost.
    fn is_lost(&self, entry: &ClusterEntry) -> bool {
        let made = entry.own_map.as_ref().and_then(|map| map.metadata.creation_timestamp.as_ref());
        made.is_some_and(|at| self.lost.is_some_and(|lost| lost.has(at.0)))
    }

    /// Notes which Namespaces wait until the host has seen the map as it is now.
    fn note(&self, cluster: &String, changes: &Changes, asking: &[Asking]) {
        let map = self.knowledge.clusters.get(cluster).and_then(|entry| entry.own_map.clone());
        let generation = map.and_then(|map| map.metadata.generation).unwrap_or(i64::MAX);
        for (namespace, change) in &changes.keys {
            self.knowledge.namespaces.note(namespace, |entry| match change {
                Some(_) => drop(entry.awaited.remove(cluster)),
                None => drop(entry.awaited.insert(cluster.clone(), generation)),
            });
        }
        // After a restart only the status tells of these: their keys went before.
        let is_untold = |asking: &&Asking| !changes.keys.contains_key(&asking.namespace);
        for asking in asking.iter().filter(|asking| asking.is_awaited(cluster)).filter(is_untold) {
            self.knowledge.namespaces.note(&asking.namespace, |entry| {
                entry.awaited.entry(cluster.clone()).or_insert(generation);
            });
        }
    }

    async fn patch(&self, map: &OwnMap, changes: &Changes) -> Result<(), Error> {
        let patch = json!({"spec": {"desiredMapping": changes.keys}});
        self.knowledge.clusters.write(OWN_MAP, map, self.writer.merge(map, None, patch)).await.map(drop)
    }

    /// Makes the map, or puts it back.
    async fn put(&self, have: Option<&OwnMap>, cluster: &str, changes: &Changes) -> Result<(), Error> {
        let us = &self.knowledge.us;
        let keys = changes.keys.iter();
        let spec = NamespaceMapSpec {
            origin: us.cluster.clone(),
            destination: cluster.to_owned(),
            desired_mapping: keys.filter_map(|(name, twin)| Some((name.clone(), twin.clone()?))).collect(),
        };
        let metadata = ObjectMeta {
            name: Some(names::namespace_map(&us.cluster, cluster)),
            namespace: Some(us.common_area.clone()),
            ..ObjectMeta::default()
        };
        let want = OwnMap { metadata, spec: Lenient(Ok(Some(spec))), status: Lenient::default() };
        let put = self.knowledge.clusters.put_ours(&self.writer, OWN_MAP, (have, &want), |_| true);
        put.await.map(drop)
    }
}

/// What is to be written into the map for a cluster, if anything is.
fn desired(
    knowledge: &Knowledge,
    asking: &[Asking],
    (cluster, entry): (&str, &ClusterEntry),
    is_lost: bool,
) -> Option<Changes> {
    match entry.wanted() {
        Some(spec) => {
            let changes = changes(&spec.desired_mapping, asking, entry, is_lost);
            Some(changes).filter(Changes::is_anything)
        }
        None => whole(asking, vanished(knowledge, entry), cluster, entry),
    }
}

/// Keys of a map that vanished, of Namespaces that are there and whose NamespaceOffloading vanished before: nobody decided that.
fn vanished(knowledge: &Knowledge, entry: &ClusterEntry) -> BTreeMap<String, String> {
    let has_vanished = |namespace: &String| {
        let known = knowledge.namespaces.get(namespace);
        known.is_some_and(|it| it.namespace.is_some() && it.offloading.is_none() && it.withdrawn.is_none())
    };
    let before = entry.wanted_before.iter().filter(|(namespace, _)| has_vanished(namespace));
    before.map(|(namespace, name)| (namespace.clone(), name.clone())).collect()
}

/// All Namespaces with a NamespaceOffloading, and those that had one.
fn all_asking(knowledge: &Knowledge) -> Vec<Asking> {
    let names = knowledge.namespaces.keys().into_iter();
    let all = names.filter_map(|name| knowledge.namespaces.get(&name).map(|entry| (name, entry)));
    all.filter_map(|(name, entry)| asking(knowledge, name, entry)).collect()
}

fn asking(knowledge: &Knowledge, namespace: String, entry: Arc<NamespaceEntry>) -> Option<Asking> {
    let name = match &entry.offloading {
        Some(offloading) => knowledge.twins_name(&namespace, offloading).ok(),
        None if entry.withdrawn.is_some() => None,
        None => return None,
    };
    Some(Asking { namespace, entry, name })
}

/// Asks for those maps that do not say of the Namespace what they have to.
pub(super) fn enqueue(knowledge: &Knowledge, namespace: &str) {
    let entry = knowledge.namespaces.get(&namespace.to_owned());
    let Some(asking) = entry.and_then(|entry| asking(knowledge, namespace.to_owned(), entry)) else { return };
    let differs = |id: &str, entry: &ClusterEntry| match entry.wanted() {
        Some(spec) => asking.change(&spec.desired_mapping, entry).is_some(),
        None => whole(std::slice::from_ref(&asking), BTreeMap::new(), id, entry).is_some(),
    };
    let clusters = knowledge.all_clusters().into_iter();
    let differing = clusters.filter(|(id, entry)| differs(id, entry)).map(|(cluster, _)| (cluster, OWN_MAP));
    knowledge.clusters.enqueue(differing.collect());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::offload::arrivals::{Known, Looks, events, seen};

    fn look(known: &Known, cluster: &str) -> BTreeMap<String, Option<Changes>> {
        let (entry, asking) = (known.all.clusters.get(&cluster.to_owned()), all_asking(&known.all));
        let changes = entry.and_then(|entry| {
            let mut changes = desired(&known.all, &asking, (cluster, &entry), false)?;
            // A key that only stays is put back with a map that vanished. It asks for none: one that was made before it was known stays
            // as it is.
            if entry.wanted().is_none() {
                let is_wanted =
                    |name: &String| asking.iter().any(|it| it.namespace == *name && it.is_wanted(&entry));
                changes.keys.retain(|name, _| is_wanted(name));
            }
            Some(changes)
        });
        [(cluster.to_owned(), changes)].into()
    }

    const LOOKS: Looks<Option<Changes>> =
        Looks { queue: |known| known.clusters.queue(4), keys: |known| known.clusters.keys(), at: look };

    proptest! {
        #[test]
        fn whoever_writes_a_map_has_seen_the_last_of_what_decides_its_keys(events in events()) {
            let [last, now] = seen(&events, &LOOKS, &[]);
            for (cluster, changes) in now {
                let (Some(changes), seen) = (changes, &last[&cluster]) else { continue };
                // One without keys is for hosts to see that none is left: who waits for that asks every few seconds.
                if !changes.is_anything() {
                    continue;
                }
                prop_assert!(seen.is_some(), "{changes:?}");
                // What was seen beyond that was written before it changed.
                let seen = seen.iter().flat_map(|seen| &seen.keys).collect::<BTreeMap<_, _>>();
                let is_seen = |(name, twin): (&String, _)| seen.get(name) == Some(&twin);
                prop_assert!(changes.keys.iter().all(is_seen), "{changes:?} {seen:?}");
            }
        }
    }
}
