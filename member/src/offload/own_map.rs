//! Our maps, at home: watches NamespaceOffloadings, virtual nodes and our own NamespaceMaps; writes into the map of each cluster the keys
//! of all Namespaces that select it, and withdraws those of which somebody decided that, by which the host deletes the twins; removes the
//! withdrawals that the host has carried out. Safe to run twice: keys are a function of NamespaceOffloadings, virtual nodes and what the host
//! says, and only differences are sent.
//!
//! All that waits for one host goes in one patch of single keys, since with each write the whole map is stored and sent to its watchers.
//! A key comes when the finalizer is on its NamespaceOffloading. If something is merely missing (a Node, an OffloadPeer, a CRD, a map), the
//! keys stay as they are. A map that is missing is written again.

mod keys;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

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
use serde_json::{Value, json};

use self::keys::{Asking, Change, Changes, changes, has_ended};
use super::{
    index::{ClusterEntry, NAMESPACE, NamespaceEntry, OWN_MAP, STATUS},
    knowledge::Knowledge,
    pace::Pace,
    view::OwnMap,
};
use crate::home::Lost;

/// When a map that is full is looked at again.
const AGAIN: Duration = Duration::from_secs(30);

/// How often in half a minute twins are withdrawn that only their host names: it may name some as often as it likes.
pub(super) const CLAIMS: u32 = 20;

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct OwnMaps {
    pub(super) knowledge: Knowledge,
    /// What a restore of this cluster has lost.
    pub(super) lost: Option<Lost>,
    pub(super) writer: Writer,
    /// How often twins are withdrawn that only their host names.
    pub(super) pace: Pace,
}

impl OwnMaps {
    /// Brings our map for one cluster up to date.
    pub(super) async fn reconcile(self, cluster: String) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.clusters.get(&cluster) else { return Ok(Outcome::Done) };
        let underway = self.knowledge.writing.begin(&cluster);
        let asking = all_asking(&self.knowledge);
        let changes = changes(&asking, &cluster, &entry, self.is_lost(&entry));
        if !changes.is_anything() {
            return Ok(Outcome::Done);
        }
        if changes.are_claims(&entry)
            && let Some(wait) = self.pace.wait(&cluster, Instant::now())
        {
            return Ok(Outcome::Requeue(wait));
        }
        underway.has(changes.keys.keys().cloned());
        let written = match (&entry.own_map, entry.wanted()) {
            (Some(_), Some(_)) if changes.keys.is_empty() => Ok(()),
            (Some(map), Some(spec)) => self.patch(map, spec, &changes).await,
            (have, _) => self.put(have.as_ref(), &cluster, &changes).await,
        };
        drop(underway);
        // The answer has what the host said meanwhile, which no watch tells any more.
        let after = self.knowledge.clusters.get(&cluster).unwrap_or_default();
        self.knowledge.own_map_changed(&cluster, &entry, &after);
        let touched = changes.keys.into_keys().map(|namespace| (namespace, NAMESPACE.and(STATUS)));
        self.knowledge.namespaces.enqueue(touched.collect());
        written?;
        Ok(match changes.left_out {
            0 if entry.said() != after.said() => Outcome::Requeue(Duration::ZERO),
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

    async fn patch(&self, map: &OwnMap, spec: &NamespaceMapSpec, changes: &Changes) -> Result<(), Error> {
        let patch = patch(spec, map.metadata.generation.unwrap_or_default(), changes);
        self.knowledge.clusters.write(OWN_MAP, map, self.writer.merge_kept(map, patch)).await.map(drop)
    }

    /// Creates the map, or replaces one that cannot be read.
    async fn put(&self, have: Option<&OwnMap>, cluster: &str, changes: &Changes) -> Result<(), Error> {
        let us = &self.knowledge.us;
        let generation = have.and_then(|map| map.metadata.generation).unwrap_or_default();
        let mut spec = NamespaceMapSpec {
            origin: us.cluster.clone(),
            destination: cluster.to_owned(),
            ..NamespaceMapSpec::default()
        };
        for (namespace, change) in &changes.keys {
            match change {
                Change::Desire(twin) => drop(spec.desired_mapping.insert(namespace.clone(), twin.clone())),
                Change::Withdraw => drop(spec.withdrawn.insert(namespace.clone(), generation)),
                Change::Remove => {}
            }
        }
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

/// The changes as a merge patch of a map with this spec and generation: a host of the last version deletes a twin whose key is not desired
/// any more.
fn patch(spec: &NamespaceMapSpec, generation: i64, changes: &Changes) -> Value {
    let (mut desired, mut withdrawn) = (serde_json::Map::new(), serde_json::Map::new());
    for (namespace, change) in &changes.keys {
        match change {
            Change::Desire(twin) => drop(desired.insert(namespace.clone(), json!(twin))),
            Change::Withdraw if spec.desired_mapping.contains_key(namespace) => {
                desired.insert(namespace.clone(), Value::Null);
            }
            Change::Withdraw | Change::Remove => {}
        }
        match change {
            Change::Withdraw => drop(withdrawn.insert(namespace.clone(), json!(generation))),
            Change::Desire(_) | Change::Remove if spec.withdrawn.contains_key(namespace) => {
                withdrawn.insert(namespace.clone(), Value::Null);
            }
            Change::Desire(_) | Change::Remove => {}
        }
    }
    let fields = [("desiredMapping", desired), ("withdrawn", withdrawn)];
    let fields = fields.into_iter().filter(|(_, keys)| !keys.is_empty());
    json!({"spec": fields.map(|(field, keys)| (field.to_owned(), Value::Object(keys))).collect::<serde_json::Map<_, _>>()})
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
    let differing = differing(knowledge, namespace).into_iter();
    knowledge.clusters.enqueue(differing.map(|cluster| (cluster, OWN_MAP)).collect());
}

/// Clusters whose maps do not say of the Namespace what they have to.
pub(super) fn differing(knowledge: &Knowledge, namespace: &str) -> Vec<String> {
    let entry = knowledge.namespaces.get(&namespace.to_owned());
    let asking = entry.and_then(|entry| asking(knowledge, namespace.to_owned(), entry));
    let asks = |id: &str, entry: &ClusterEntry| {
        asking.as_ref().is_some_and(|asking| match entry.wanted() {
            Some(_) => asking.change(id, entry).is_some(),
            None => asking.needs_map(id, entry),
        })
    };
    let differs = |id: &str, entry: &ClusterEntry| asks(id, entry) || has_ended(entry, namespace);
    let clusters = knowledge.all_clusters().into_iter();
    clusters.filter(|(id, entry)| differs(id, entry)).map(|(cluster, _)| cluster).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use kit::objects;

    use super::*;
    use crate::{
        identity::Identity,
        offload::arrivals::{Known, Looks, events, seen},
    };

    fn look(known: &Known, cluster: &str) -> BTreeMap<String, Changes> {
        let (entry, asking) = (known.all.clusters.get(&cluster.to_owned()), all_asking(&known.all));
        let changes = entry.map(|entry| {
            let mut changes = changes(&asking, cluster, &entry, false);
            // Of a map that is missing only what Namespaces ask for counts: a key that stays asks for nothing, and who waits for a withdrawal
            // asks every few seconds.
            if entry.wanted().is_none() {
                let is_asked = |name: &String, change: &Change| {
                    matches!(change, Change::Desire(_))
                        && asking.iter().any(|it| it.namespace == *name && it.needs_map(cluster, &entry))
                };
                changes.keys.retain(|name, change| is_asked(name, change));
            }
            changes
        });
        [(cluster.to_owned(), changes.unwrap_or_default())].into()
    }

    #[test]
    fn a_key_that_is_withdrawn_is_desired_no_more() {
        let spec = json!({"origin": "west", "destination": "east", "desiredMapping": {"shop": "shop-west", "db": "db"},
            "withdrawn": {"web": 2, "old": 3}});
        let spec: NamespaceMapSpec = serde_json::from_value(spec).unwrap();
        let one = |name: &str, change| (name.to_owned(), change);
        let keys = [
            one("shop", Change::Withdraw),
            one("web", Change::Desire("web-west".into())),
            one("old", Change::Remove),
            one("said", Change::Withdraw),
        ];
        let seen = patch(&spec, 7, &Changes { keys: keys.into(), left_out: 0 });
        let desired = json!({"shop": null, "web": "web-west"});
        let withdrawn = json!({"shop": 7, "web": null, "old": null, "said": 7});
        assert_eq!(seen, json!({"spec": {"desiredMapping": desired, "withdrawn": withdrawn}}));
        let new = Changes { keys: [one("new", Change::Desire("new-west".into()))].into(), left_out: 0 };
        assert_eq!(patch(&spec, 7, &new), json!({"spec": {"desiredMapping": {"new": "new-west"}}}));
    }

    #[test]
    fn a_withdrawal_that_has_ended_is_asked_about_also_where_nothing_is_known_of_its_namespace() {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let known = Knowledge::new(us, "freeport".into(), None);
        let map = |observed: i64| -> OwnMap {
            let metadata = json!({"name": "1.west.east", "namespace": "area", "generation": 7});
            let spec = json!({"origin": "west", "destination": "east", "desiredMapping": {}, "withdrawn": {"shop": 6}});
            let status = json!({"observedGeneration": observed, "currentMapping": {}});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
        };
        let asked = |observed| {
            known.change_own_maps(objects::Change::Apply(map(observed)));
            differing(&known, "shop")
        };
        assert_eq!(asked(6), Vec::<String>::new(), "the host has not seen it yet");
        assert_eq!(asked(7), ["east"]);
        assert_eq!(differing(&known, "db"), Vec::<String>::new());
    }

    const LOOKS: Looks<Changes> =
        Looks { queue: |known| known.clusters.queue(4), keys: |known| known.clusters.keys(), at: look };

    proptest! {
        #[test]
        fn whoever_writes_a_map_has_seen_the_last_of_what_decides_its_keys(events in events()) {
            let [last, now] = seen(&events, &LOOKS, &[]);
            for (cluster, changes) in now {
                // What was seen beyond that was written before it changed.
                let seen = &last[&cluster].keys;
                let is_seen = |(name, change): (&String, _)| seen.get(name) == Some(change);
                prop_assert!(changes.keys.iter().all(is_seen), "{changes:?} {seen:?}");
            }
        }
    }
}
