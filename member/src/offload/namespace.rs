//! Offloading Namespaces, at home: watches NamespaceOffloadings, Namespaces, virtual nodes, and our own maps; writes the keys of its
//! Namespace into the maps of the clusters that are selected, the finalizer of the NamespaceOffloading, and label
//! `liqo.io/scheduling-enabled` of the Namespace, the NamespaceOffloading that label `liqo.io/enabled` asks for; deletes keys, by which
//! hosts delete twins, and that NamespaceOffloading. Safe to run twice: keys are a function of
//! the selector and the virtual nodes, and only differences are sent.
//!
//! A key goes because somebody decided it: the NamespaceOffloading is deleted, or does not select that cluster any more. What merely
//! vanished (a Node, an OffloadPeer, a CRD, a map) leaves the keys as they are, and a map that vanished is put back whole.

mod enabled;

use api::{
    label as general,
    offload::{
        label,
        map::NamespaceMapSpec,
        names,
        namespace::{NamespaceOffloading, OFFLOADING_REQUIRED, PodOffloadingStrategy},
        phase::summary,
        twin::check_offloaded,
        view::NamespaceOffloadingView,
    },
    view::Lenient,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kit::{
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::{
    index::{ClusterEntry, NAMESPACE, NODE, NamespaceEntry, STATUS},
    knowledge::{Clusters, Knowledge},
    selection::{Invalid, Key, key, name},
    view::{Namespace, OwnMap},
    withdrawn,
};

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Namespaces {
    pub(super) knowledge: Knowledge,
    /// Reads from this cluster.
    pub(super) local: Client,
    pub(super) local_writer: Writer,
    pub(super) leader_writer: Writer,
}

impl Namespaces {
    /// Brings what one Namespace asks of other clusters up to date.
    pub(super) async fn reconcile(self, namespace: String) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.namespaces.get(&namespace) else { return Ok(Outcome::Done) };
        if let Some(change) = enabled::change(&entry) {
            self.follow_label(&namespace, change).await?;
        }
        let Some(offloading) = &entry.offloading else { return Ok(Outcome::Done) };
        match offloading.metadata.deletion_timestamp {
            Some(_) => self.unoffload(&namespace, &entry, offloading).await?,
            None => self.offload(&namespace, &entry, offloading).await?,
        }
        Ok(Outcome::Done)
    }

    /// Makes the NamespaceOffloading that the label asks for, or deletes the one that it asked for.
    async fn follow_label(&self, namespace: &str, change: enabled::Change<'_>) -> Result<(), Error> {
        let system = self.knowledge.system_with(namespace);
        match change {
            enabled::Change::Make if check_offloaded(namespace, &system).is_ok() => {
                self.local_writer.put(None, &enabled::made(namespace)).await.map(drop)
            }
            enabled::Change::Make => Ok(()),
            enabled::Change::Delete(made) => self.local_writer.delete(made, false).await,
        }
    }

    async fn offload(
        &self,
        namespace: &str,
        entry: &NamespaceEntry,
        offloading: &NamespaceOffloadingView,
    ) -> Result<(), Error> {
        let clusters = self.knowledge.all_clusters();
        let Ok(name) = self.name(namespace, offloading) else { return Ok(()) };
        if !offloading.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER) {
            self.local_writer.hold(offloading, label::FINALIZER).await?;
        }
        // One cluster that cannot be reached by its map must not keep the others out.
        let mut done = Ok(());
        for (cluster, entry) in &clusters {
            let put = match key(offloading, entry) {
                Key::Want => self.put_key(&clusters, cluster, entry, namespace, Some(&name)).await,
                Key::Drop => self.put_key(&clusters, cluster, entry, namespace, None).await,
                Key::Keep => Ok(()),
            };
            done = done.and(put);
        }
        let is_offloaded = offloading.spec.0.as_ref().map(|spec| spec.pod_offloading_strategy);
        let labelled = match is_offloaded {
            Ok(strategy) => self.put_label(entry, strategy != PodOffloadingStrategy::Local).await,
            Err(_) => Ok(()),
        };
        done.and(labelled)
    }

    /// First the label, so that new Pods stay here; then the keys; when the hosts have nothing left, the finalizer.
    async fn unoffload(
        &self,
        namespace: &str,
        entry: &NamespaceEntry,
        offloading: &NamespaceOffloadingView,
    ) -> Result<(), Error> {
        if !offloading.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER) {
            return Ok(());
        }
        let since = offloading.metadata.creation_timestamp.as_ref();
        if !withdrawn::was_decided::<NamespaceOffloading>(&self.local, since).await? {
            tracing::warn!(namespace, "the CRD of NamespaceOffloadings is being deleted: the twins stay");
            // Or the webhook would refuse every new Pod there.
            self.put_label(entry, false).await?;
            return self.release(offloading).await;
        }
        self.put_label(entry, false).await?;
        let clusters = self.knowledge.all_clusters();
        let mut done = Ok(());
        for (cluster, entry) in &clusters {
            done = done.and(self.put_key(&clusters, cluster, entry, namespace, None).await);
        }
        done?;
        let clusters = self.knowledge.all_clusters();
        match summary(&self.knowledge.hosts(&clusters, namespace), true).clusters.is_empty() {
            true => self.release(offloading).await,
            false => Ok(()),
        }
    }

    async fn release(&self, offloading: &NamespaceOffloadingView) -> Result<(), Error> {
        self.local_writer.release(offloading, &[label::FINALIZER]).await
    }

    /// Name of its twins, if it may have any.
    fn name(&self, namespace: &str, offloading: &NamespaceOffloadingView) -> Result<String, Invalid> {
        let system = self.knowledge.system_with(namespace);
        name(offloading, namespace, &self.knowledge.us.cluster, &system)
    }

    /// Writes the key of a Namespace into our map for a cluster, or takes it out.
    async fn put_key(
        &self,
        clusters: &Clusters,
        cluster: &str,
        entry: &ClusterEntry,
        namespace: &str,
        twin: Option<&str>,
    ) -> Result<(), Error> {
        let store = &self.knowledge.clusters;
        match (&entry.own_map, entry.wanted()) {
            (Some(map), Some(spec)) => {
                if spec.desired_mapping.get(namespace).map(String::as_str) == twin {
                    return Ok(());
                }
                let patch = json!({"spec": {"desiredMapping": {namespace: twin}}});
                store.write(NODE, map, self.leader_writer.merge(map, None, patch)).await?;
                self.knowledge.namespaces.enqueue([(namespace.to_owned(), STATUS)].into());
                Ok(())
            }
            (_, _) if twin.is_none() => Ok(()),
            (have, _) => {
                let want = self.whole(clusters, cluster);
                store.put_ours(&self.leader_writer, NODE, (have.as_ref(), &want), |_| true).await?;
                self.knowledge.enqueue_offloaded(STATUS);
                Ok(())
            }
        }
    }

    /// Our map for a cluster as it has to be, where nothing is left of it.
    fn whole(&self, clusters: &Clusters, cluster: &str) -> OwnMap {
        let us = &self.knowledge.us;
        let entry = clusters.get(cluster);
        let of = |namespace: String| {
            let offloading = self.knowledge.namespaces.get(&namespace)?.offloading.clone()?;
            if offloading.metadata.deletion_timestamp.is_some() {
                return None;
            }
            let name = match (self.name(&namespace, &offloading), key(&offloading, entry?)) {
                (Ok(name), Key::Want) => Some(name),
                (Ok(_), Key::Drop) => None,
                (Err(_), _) | (_, Key::Keep) => had(&offloading, cluster),
            };
            name.map(|name| (namespace, name))
        };
        let spec = NamespaceMapSpec {
            origin: us.cluster.clone(),
            destination: cluster.to_owned(),
            desired_mapping: self.knowledge.namespaces.keys().into_iter().filter_map(of).collect(),
        };
        let metadata = ObjectMeta {
            name: Some(names::namespace_map(&us.cluster, cluster)),
            namespace: Some(us.common_area.clone()),
            ..ObjectMeta::default()
        };
        OwnMap { metadata, spec: Lenient(Ok(Some(spec))), status: Lenient::default() }
    }

    /// Sets the label by which the webhook is asked, or takes it off.
    async fn put_label(&self, entry: &NamespaceEntry, is_on: bool) -> Result<(), Error> {
        let Some(namespace) = &entry.namespace else { return Ok(()) };
        let has_it = namespace.label(label::SCHEDULING_ENABLED) == Some(general::TRUE);
        if has_it == is_on || is_on && namespace.is_going() {
            return Ok(());
        }
        let value: Value = if is_on { general::TRUE.into() } else { Value::Null };
        // Bound to its version: what somebody else changes meanwhile is told.
        let version = namespace.resource_version();
        let patch =
            json!({"metadata": {"resourceVersion": version, "labels": {label::SCHEDULING_ENABLED: value}}});
        let merge = self.local_writer.merge::<Namespace>(namespace, None, patch);
        match self.knowledge.namespaces.write(NAMESPACE, namespace, merge).await {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The twin that the NamespaceOffloading had in a cluster, as its own status says.
fn had(offloading: &NamespaceOffloadingView, cluster: &str) -> Option<String> {
    let status = offloading.status.0.as_ref().ok()?;
    let conditions = status.remote_namespaces_conditions.get(cluster)?;
    let was_selected = conditions.iter().any(|c| c.type_ == OFFLOADING_REQUIRED && c.status == "True");
    status.remote_namespace_name.clone().filter(|_| was_selected)
}
