//! Writes and deletes the note.

use api::{label, membership::Membership};
use kit::write::Error;
use kube::ResourceExt;
use serde_json::json;

use super::Control;
use crate::membership::{
    absence::{self, Absence},
    leave::Work,
    note::Note,
    status::write::write_status,
    verdict,
};

impl Control {
    /// Notes the membership that has begun, then lets the session begin to export and import; whether that is done. A note with the
    /// order to leave stays as it is.
    pub(super) async fn note_begun(&self) -> bool {
        let (begun, have) = self.state.with(|state| (state.begun.clone(), state.note().cloned()));
        let Some(begun) = begun else { return true };
        let is_noted = have.as_ref().and_then(Note::membership).as_ref() == Some(&begun);
        if have.as_ref().is_some_and(|have| have.order().is_some()) {
            return true;
        }
        if have.is_none() {
            match absence::find_out(&self.env, &begun).await {
                Ok(None | Some(Absence::Vanished(_))) => {}
                Ok(Some(Absence::Decided)) => return self.forget_cluster_set(&begun),
                Err(error) => {
                    tracing::warn!(%error, "cannot read the ClusterSet, trying again");
                    return false;
                }
            }
        }
        if !is_noted && !self.write_note(have.as_ref(), &Note::of(&self.env.namespace, &begun)).await {
            return false;
        }
        // A session with another server or Secret is noted once it is present at the leader.
        if let Some(running) = self.running.as_ref().filter(|running| running.target().is_same(&begun)) {
            running.begin();
        }
        true
    }

    /// The ClusterSet is deleted, and our watch has not told us yet. To take part in it would undo a leave that has just ended.
    fn forget_cluster_set(&self, begun: &Membership) -> bool {
        tracing::info!(cluster_set = begun.cluster_set, "the ClusterSet was deleted meanwhile");
        self.state.with(|state| {
            if let Some(set) = state.cluster_sets.get(&begun.cluster_set).cloned() {
                state.cluster_sets.deleted(&set);
            }
        });
        false
    }

    /// Writes the note; whether that is done.
    pub(super) async fn write_note(&self, have: Option<&Note>, want: &Note) -> bool {
        let lists = self.state.with(|state| state.notes.lists());
        match self.writer.put(have, want).await {
            Ok(Some(note)) => self.state.with(|state| state.notes.answered(note, lists)),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot write ConfigMap freeport-membership, trying again");
                return false;
            }
        }
        true
    }

    /// Leaving is done: deletes the note. If the ClusterSet still exists, its status first says that this cluster has left it, so
    /// that nobody joins it again by mistake.
    pub(super) async fn delete_note(&self, note: Note, work: Work) -> bool {
        let noted = work.noted.as_ref();
        let set = self.state.with(|state| noted.and_then(|noted| state.set_of(noted).cloned()));
        let is_written = match set {
            Some(set) => {
                write_status(&self.env, &self.state, &self.writer, &set, &verdict::left().into()).await
            }
            None => true,
        };
        if !is_written {
            return false;
        }
        self.state.with(|state| state.begun = None);
        match self.writer.delete(&note, true).await {
            Ok(()) => {
                self.state.with(|state| state.notes.deleted(&note));
                true
            }
            Err(Error::Stale) => false,
            Err(error) => {
                tracing::warn!(%error, "cannot delete ConfigMap freeport-membership, trying again");
                self.note_refused(&note).await;
                false
            }
        }
    }

    /// Writes on the note what is refused, for `freeport leave`, which waits for the end of the note.
    async fn note_refused(&self, note: &Note) {
        let metrics = &self.env.metrics;
        let message = metrics.refusals().message(&metrics.area());
        if message.is_none() || note.annotations().get(label::REFUSED) == message.as_ref() {
            return;
        }
        let patch = json!({"metadata": {"annotations": {label::REFUSED: message}}});
        if let Err(error) = self.writer.merge(note, None, patch).await {
            tracing::debug!(%error, "what is refused could not be noted");
        }
    }
}
