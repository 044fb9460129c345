//! Our maps, at home: watches NamespaceOffloadings, virtual nodes and our own NamespaceMaps; writes into the map of each cluster the keys
//! of all Namespaces that select it, and takes out those of which somebody decided that, by which the host deletes the twins. Safe to run
//! twice: keys are a function of NamespaceOffloadings and virtual nodes, and only differences are sent.
//!
//! All that waits for one host goes in one patch of single keys, since with each write the whole map is stored and sent to its watchers.
//! A key comes when the finalizer is on its NamespaceOffloading. What merely vanished (a Node, an OffloadPeer, a CRD, a map) leaves the keys
//! as they are, and a map that vanished is put back whole.

mod keys;

use std::sync::Arc;

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

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct OwnMaps {
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
}

impl OwnMaps {
    /// Brings our map for one cluster up to date.
    pub(super) async fn reconcile(self, cluster: String) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.clusters.get(&cluster) else { return Ok(Outcome::Done) };
        let underway = self.knowledge.writing.begin(&cluster);
        let asking = self.asking();
        let changes = match (&entry.own_map, entry.wanted()) {
            (Some(map), Some(spec)) => {
                let changes = changes(&spec.desired_mapping, &asking, &entry);
                underway.has(changes.keys.keys().cloned());
                self.patch(map, &changes).await?;
                changes
            }
            (have, _) => {
                let changes = whole(&asking, &cluster, &entry);
                underway.has(changes.keys.keys().cloned());
                self.put(have.as_ref(), &cluster, &changes).await?;
                changes
            }
        };
        drop(underway);
        let touched = changes.keys.into_keys().map(|namespace| (namespace, NAMESPACE.and(STATUS)));
        self.knowledge.namespaces.enqueue(touched.collect());
        match changes.left_out {
            0 => Ok(Outcome::Done),
            count => Err(Error::Refused(format!(
                "the NamespaceMap for {cluster} has room for {ENTRIES_MAX} Namespaces, which leaves {count} out"
            ))),
        }
    }

    /// All Namespaces with a NamespaceOffloading.
    fn asking(&self) -> Vec<Asking> {
        let names = self.knowledge.namespaces.keys().into_iter();
        let all = names.filter_map(|name| self.knowledge.namespaces.get(&name).map(|entry| (name, entry)));
        all.filter_map(|(name, entry)| asking(&self.knowledge, name, entry)).collect()
    }

    async fn patch(&self, map: &OwnMap, changes: &Changes) -> Result<(), Error> {
        if changes.keys.is_empty() {
            return Ok(());
        }
        let patch = json!({"spec": {"desiredMapping": changes.keys}});
        self.knowledge.clusters.write(OWN_MAP, map, self.writer.merge(map, None, patch)).await.map(drop)
    }

    /// Makes the map, or puts it back; one that nobody wants anything of is not made.
    async fn put(&self, have: Option<&OwnMap>, cluster: &str, changes: &Changes) -> Result<(), Error> {
        if changes.keys.is_empty() {
            return Ok(());
        }
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

fn asking(knowledge: &Knowledge, namespace: String, entry: Arc<NamespaceEntry>) -> Option<Asking> {
    let name = knowledge.twins_name(&namespace, entry.offloading.as_ref()?).ok();
    Some(Asking { namespace, entry, name })
}

/// Asks for those maps that do not say of the Namespace what they have to.
pub(super) fn enqueue(knowledge: &Knowledge, namespace: &str) {
    let entry = knowledge.namespaces.get(&namespace.to_owned());
    let Some(asking) = entry.and_then(|entry| asking(knowledge, namespace.to_owned(), entry)) else { return };
    let differs = |entry: &ClusterEntry| match entry.wanted() {
        Some(spec) => asking.change(&spec.desired_mapping, entry).is_some(),
        None => asking.is_wanted(entry),
    };
    let clusters = knowledge.all_clusters().into_iter();
    let differing = clusters.filter(|(_, entry)| differs(entry)).map(|(cluster, _)| (cluster, OWN_MAP));
    knowledge.clusters.enqueue(differing.collect());
}
