//! What is known of each Namespace of this cluster.

use std::time::Instant;

use api::{
    label::TRUE,
    offload::{
        label::SCHEDULING_ENABLED,
        namespace::{NAME, OFFLOADING_REQUIRED, PodOffloadingStrategy, READY},
        twin,
        view::NamespaceOffloadingView,
    },
};
use kit::{
    index::{Entry, Part, Readers},
    queue::Party,
};
use kube::ResourceExt;

use super::{NAMESPACE, STATUS, replace};
use crate::offload::view::{Namespace, TwinAccount, TwinBinding};

/// Everything known of a Namespace of this cluster.
#[derive(Clone, Default)]
pub(crate) struct NamespaceEntry {
    pub(crate) namespace: Option<Namespace>,
    pub(crate) offloading: Option<NamespaceOffloadingView>,
    /// uid of the NamespaceOffloading that is found to be deleted by decision, and whose Namespace takes no more Pods of others.
    pub(crate) withdrawn: Option<String>,
    /// Since when its status could say more of what is on its way.
    pub(crate) unsaid_since: Option<Instant>,
    /// When its status was written last.
    pub(crate) said_at: Option<Instant>,
    /// If it is a twin: what lets us make Pods in it.
    pub(crate) binding: Option<TwinBinding>,
    /// Whether it has the ServiceAccount that Pods run as which name none.
    pub(crate) has_account: bool,
}

impl NamespaceEntry {
    /// Its NamespaceOffloading, unless that is being deleted.
    pub(crate) fn asks(&self) -> Option<&NamespaceOffloadingView> {
        self.offloading.as_ref().filter(|offloading| offloading.metadata.deletion_timestamp.is_none())
    }

    /// Whether the webhook is asked about its Pods, where that is needed.
    pub(crate) fn is_labelled(&self) -> bool {
        let strategy = self.asks().and_then(|it| Some(it.spec.0.as_ref().ok()?.pod_offloading_strategy));
        let has_label =
            || self.namespace.as_ref().is_some_and(|it| it.label(SCHEDULING_ENABLED) == Some(TRUE));
        strategy.is_none_or(|strategy| strategy == PodOffloadingStrategy::Local) || has_label()
    }

    /// Whether its NamespaceOffloading is known to be deleted by decision.
    pub(crate) fn is_withdrawn(&self) -> bool {
        let uid = self.offloading.as_ref().and_then(ResourceExt::uid);
        uid.is_some() && uid == self.withdrawn
    }

    /// The twin that it had in a cluster, as the status of its NamespaceOffloading says.
    pub(crate) fn had(&self, cluster: &str) -> Option<&str> {
        let status = self.offloading.as_ref()?.status.0.as_ref().ok()?;
        let conditions = status.remote_namespaces_conditions.get(cluster)?;
        let was_selected = conditions.iter().any(|c| c.type_ == OFFLOADING_REQUIRED && c.status == "True");
        status.remote_namespace_name.as_deref().filter(|_| was_selected)
    }

    /// Whether a cluster was ever asked for a twin, as the status says.
    pub(crate) fn has_asked(&self, cluster: &str) -> bool {
        let status = self.offloading.as_ref().and_then(|offloading| offloading.status.0.as_ref().ok());
        let conditions = status.and_then(|status| status.remote_namespaces_conditions.get(cluster));
        conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == READY))
    }
}

impl Entry for NamespaceEntry {
    fn is_empty(&self) -> bool {
        self.namespace.is_none() && self.offloading.is_none() && self.binding.is_none() && !self.has_account
    }

    /// The hosts of which its NamespaceOffloading says something.
    fn party(&self) -> Party {
        let status = self.offloading.as_ref().and_then(|offloading| offloading.status.0.as_ref().ok());
        Party::of(status.into_iter().flat_map(|status| status.remote_namespaces_conditions.keys()))
    }
}

impl Part<String, NamespaceEntry> for Namespace {
    fn key(&self) -> Option<String> {
        Some(self.name_any())
    }

    fn put(self, entry: &mut NamespaceEntry) -> Readers {
        NAMESPACE.and(STATUS).when(replace(&mut entry.namespace, self))
    }

    fn take(entry: &mut NamespaceEntry, _: &str) -> Readers {
        entry.namespace = None;
        NAMESPACE.and(STATUS)
    }
}

impl Part<String, NamespaceEntry> for NamespaceOffloadingView {
    fn key(&self) -> Option<String> {
        self.namespace().filter(|_| self.name_any() == NAME)
    }

    fn put(self, entry: &mut NamespaceEntry) -> Readers {
        if entry.withdrawn.is_some() && entry.withdrawn != self.uid() {
            // What was decided of another one says nothing of this.
            entry.withdrawn = None;
        }
        NAMESPACE.and(STATUS).when(replace(&mut entry.offloading, self))
    }

    fn take(entry: &mut NamespaceEntry, _: &str) -> Readers {
        entry.offloading = None;
        NAMESPACE.and(STATUS)
    }
}

/// Those of twins are read by the controller of maps, which the knowledge asks.
impl Part<String, NamespaceEntry> for TwinBinding {
    fn key(&self) -> Option<String> {
        self.namespace().filter(|_| self.name_any() == twin::BINDING)
    }

    fn put(self, entry: &mut NamespaceEntry) -> Readers {
        entry.binding = Some(self);
        Readers::NONE
    }

    fn take(entry: &mut NamespaceEntry, _: &str) -> Readers {
        entry.binding = None;
        Readers::NONE
    }
}

/// As with [`TwinBinding`].
impl Part<String, NamespaceEntry> for TwinAccount {
    fn key(&self) -> Option<String> {
        self.namespace().filter(|_| self.name_any() == twin::ACCOUNT)
    }

    fn put(self, entry: &mut NamespaceEntry) -> Readers {
        entry.has_account = true;
        Readers::NONE
    }

    fn take(entry: &mut NamespaceEntry, _: &str) -> Readers {
        entry.has_account = false;
        Readers::NONE
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_of_one_host_do_not_wait_for_those_of_another() {
        let of = |host: &str| {
            let condition = json!({"type": "Ready", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-01T12:00:00Z"});
            let status = json!({"remoteNamespacesConditions": {host: [condition]}});
            let offloading = json!({"metadata": {"name": "offloading"}, "spec": {}, "status": status});
            let offloading = serde_json::from_value(offloading).unwrap();
            NamespaceEntry { offloading, ..NamespaceEntry::default() }.party()
        };
        assert_eq!(of("east"), of("east"));
        assert_ne!(of("east"), of("north"));
    }

    #[test]
    fn what_was_decided_of_one_says_nothing_of_the_next() {
        let mut entry = NamespaceEntry { withdrawn: Some("u1".into()), ..NamespaceEntry::default() };
        let offloading = |uid: &str| -> NamespaceOffloadingView {
            let metadata = json!({"name": "offloading", "namespace": "shop", "uid": uid});
            serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap()
        };
        offloading("u1").put(&mut entry);
        NamespaceOffloadingView::take(&mut entry, "");
        assert_eq!(entry.withdrawn.as_deref(), Some("u1"));
        offloading("u2").put(&mut entry);
        assert_eq!(entry.withdrawn, None);
    }
}
