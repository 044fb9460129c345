//! Offloading Namespaces, at home: watches NamespaceOffloadings and Namespaces; writes the finalizer of the NamespaceOffloading, label
//! `liqo.io/scheduling-enabled` of the Namespace, and the NamespaceOffloading that label `liqo.io/enabled` asks for; deletes that one, and lets
//! go of one whose twins are gone. Which keys follow from it is for [`own_map`] to write. Safe to run twice: only differences are sent.
//!
//! A NamespaceOffloading is believed to be deleted because somebody decided it; one that goes with its CRD leaves the twins where they are.

mod enabled;

use std::time::{Duration, Instant};

use api::{
    label as general,
    offload::{
        label,
        namespace::{NamespaceOffloading, PodOffloadingStrategy},
        twin::check_offloaded,
        view::NamespaceOffloadingView,
    },
};
use jiff::Timestamp;
use kit::{
    events::Events,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};

use super::{
    index::{NAMESPACE, NamespaceEntry},
    knowledge::{Knowledge, is_overdue},
    own_map,
    selection::is_held,
    view::Namespace,
    withdrawn,
};

/// How soon is looked again whether a key is still on its way.
const SOON: Duration = Duration::from_millis(100);
/// How soon it is looked at again whether hosts that have no Lease are waited for.
const AGAIN: Duration = Duration::from_secs(5);

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Namespaces {
    pub(super) knowledge: Knowledge,
    /// Reads from this cluster.
    pub(super) local: Client,
    pub(super) local_writer: Writer,
    pub(super) events: Events,
}

impl Namespaces {
    /// Brings what one Namespace asks of other clusters up to date.
    pub(super) async fn reconcile(self, namespace: String) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.namespaces.get(&namespace) else {
            own_map::enqueue(&self.knowledge, &namespace);
            return Ok(Outcome::Done);
        };
        if let Some(change) = enabled::change(&entry) {
            self.follow_label(&namespace, change).await?;
        }
        match course(&entry) {
            Course::Offload(offloading) => {
                self.offload(&namespace, &entry, offloading).await.map(|()| Outcome::Done)
            }
            Course::Unoffload(offloading) => self.unoffload(&namespace, &entry, offloading).await,
            Course::Nothing => {
                ask_maps(&self.knowledge, &namespace, &entry);
                Ok(Outcome::Done)
            }
        }
    }

    /// Makes the NamespaceOffloading that the label asks for, or deletes the one that it asked for.
    async fn follow_label(&self, namespace: &str, change: enabled::Change<'_>) -> Result<(), Error> {
        let system = self.knowledge.system_with(namespace);
        match change {
            enabled::Change::Make => match check_offloaded(namespace, &system) {
                Ok(()) => {
                    let made = self.local_writer.put(None, &enabled::made(namespace)).await.map(drop);
                    if let Some(words) = made.as_ref().err().and_then(Error::refusal) {
                        let message = format!("its NamespaceOffloading is refused: {words}");
                        self.warn(namespace, "Refused", &message);
                    }
                    made
                }
                Err(error) => {
                    self.warn(namespace, error.reason(), &error.to_string());
                    Ok(())
                }
            },
            enabled::Change::Delete(made) => self.local_writer.delete(made, false).await,
        }
    }

    /// Says on a Namespace why it has no NamespaceOffloading.
    fn warn(&self, namespace: &str, reason: &str, message: &str) {
        let there = enabled::made(namespace).object_ref(&());
        let object = self.knowledge.namespace(namespace).map_or(there, |there| there.object_ref(&()));
        self.events.warn(object, "Offload", reason, message);
    }

    /// First the finalizer, so that no twin is forgotten; then the keys, and the label.
    async fn offload(
        &self,
        namespace: &str,
        entry: &NamespaceEntry,
        offloading: &NamespaceOffloadingView,
    ) -> Result<(), Error> {
        let is_valid = self.knowledge.twins_name(namespace, offloading).is_ok();
        let labelled = entry.namespace.as_ref().and_then(|it| it.label(label::SCHEDULING_ENABLED));
        // The label is taken off before one goes, also where it offloads nothing: without one, the webhook refuses every Pod.
        if !is_held(offloading) && (is_valid || labelled == Some(general::TRUE)) {
            let hold = self.local_writer.hold(offloading, label::FINALIZER);
            self.knowledge.namespaces.write(NAMESPACE, offloading, hold).await?;
        }
        if !is_valid {
            return Ok(());
        }
        ask_maps(&self.knowledge, namespace, entry);
        match offloading.spec.0.as_ref().map(|spec| spec.pod_offloading_strategy) {
            Ok(strategy) => self.put_label(entry, strategy != PodOffloadingStrategy::Local).await,
            Err(_) => Ok(()),
        }
    }

    /// First the label, so that new Pods stay here, if somebody decided this; then the keys; when the hosts have nothing left, the finalizer.
    async fn unoffload(
        &self,
        namespace: &str,
        entry: &NamespaceEntry,
        offloading: &NamespaceOffloadingView,
    ) -> Result<Outcome, Error> {
        if !entry.is_withdrawn() {
            let since = offloading.metadata.creation_timestamp.as_ref();
            if !withdrawn::was_decided::<NamespaceOffloading>(&self.local, since).await? {
                // The label stays, too: without it new Pods would run here that are to run elsewhere. With it, the webhook refuses them.
                tracing::warn!(namespace, "the CRD of NamespaceOffloadings is being deleted: the twins stay");
                return self.release(offloading).await.map(|()| Outcome::Done);
            }
        }
        // Where it stays, the webhook would refuse every new Pod.
        self.put_label(entry, false).await?;
        ask_maps(&self.knowledge, namespace, entry);
        // Before the maps are looked at, since it ends with what it writes in them.
        if self.knowledge.writing.may_have(namespace) {
            return Ok(Outcome::Requeue(SOON));
        }
        let is_overdue = is_overdue(offloading, Timestamp::now());
        if !self.knowledge.where_left(namespace, is_overdue, Instant::now()).is_empty() {
            return Ok(Outcome::Requeue(AGAIN));
        }
        self.release(offloading).await?;
        Ok(Outcome::Done)
    }

    async fn release(&self, offloading: &NamespaceOffloadingView) -> Result<(), Error> {
        self.local_writer.release(offloading, &[label::FINALIZER]).await
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

/// What becomes of what a Namespace asks of other clusters.
enum Course<'a> {
    Offload(&'a NamespaceOffloadingView),
    /// It is being deleted, and waits for us.
    Unoffload(&'a NamespaceOffloadingView),
    Nothing,
}

fn course(entry: &NamespaceEntry) -> Course<'_> {
    match &entry.offloading {
        Some(offloading) if offloading.metadata.deletion_timestamp.is_none() => Course::Offload(offloading),
        Some(offloading) if is_held(offloading) => Course::Unoffload(offloading),
        _ => Course::Nothing,
    }
}

/// Asks for those maps that do not say what the Namespace asks for, or that somebody decided that it asks for nothing any more, and for those
/// in which a withdrawal has ended.
pub(super) fn ask_maps(knowledge: &Knowledge, namespace: &str, entry: &NamespaceEntry) {
    match course(entry) {
        Course::Offload(_) | Course::Nothing => {}
        Course::Unoffload(offloading) => {
            knowledge.namespaces.note(&namespace.to_owned(), |entry| entry.withdrawn = offloading.uid());
        }
    }
    own_map::enqueue(knowledge, namespace);
}
