//! The note of our membership: a ConfigMap of the daemon's Namespace, so that leaving is known of, and can go on, whatever
//! happens to the ClusterSet and to us.

use std::collections::BTreeMap;

use api::view::lean;
use api::{
    label,
    membership::{self, Membership},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kit::write::Error;
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

use super::{
    Belonging,
    absence::{self, Absence},
    leave::Work,
    status, tell,
};

/// The ConfigMap as we own it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ConfigMap)]
pub(super) struct Note {
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub data: BTreeMap<String, String>,
}

/// How to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Withdraw at the leader first.
    Withdraw,
    /// The leader is not asked.
    Force,
}

impl Note {
    /// The note of a membership.
    pub fn of(namespace: &str, membership: &Membership) -> Self {
        let metadata = ObjectMeta {
            name: Some(membership::NAME.into()),
            namespace: Some(namespace.into()),
            labels: Some([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Self { metadata, data: membership.data() }
    }

    /// The same note, saying that the membership is to end.
    pub fn leaving(mut self) -> Self {
        self.data.insert(membership::LEAVE_KEY.into(), membership::LEAVE.into());
        self
    }

    /// What is noted, if it can be read.
    pub fn membership(&self) -> Option<Membership> {
        Membership::from_data(&self.data)
    }

    /// Whether and how to leave. A word we do not know is taken for the way that does less harm.
    pub fn order(&self) -> Option<Order> {
        let word = self.data.get(membership::LEAVE_KEY)?;
        Some(if word == membership::LEAVE_FORCED { Order::Force } else { Order::Withdraw })
    }
}

impl Belonging {
    /// Notes the membership that has begun, then lets the link begin; whether that is done. A note that says to leave stays as
    /// it is.
    pub(super) async fn note_down(&self) -> bool {
        let (begun, have) = self.desk.with(|desk| (desk.begun.clone(), desk.note().cloned()));
        let Some(begun) = begun else { return true };
        let is_noted = have.as_ref().and_then(Note::membership).as_ref() == Some(&begun);
        if have.as_ref().is_some_and(|have| have.order().is_some()) {
            return true;
        }
        if have.is_none() {
            match absence::look(&self.env, &begun).await {
                Ok(None | Some(Absence::Vanished(_))) => {}
                Ok(Some(Absence::Decided)) => return self.give_up(&begun),
                Err(error) => {
                    tracing::warn!(%error, "whether the ClusterSet is still there cannot be found out, asking again");
                    return false;
                }
            }
        }
        if !is_noted && !self.write_note(have.as_ref(), &Note::of(&self.env.namespace, &begun)).await {
            return false;
        }
        // A link by another way is noted as such once it is there.
        if let Some(running) = self.running.as_ref().filter(|running| running.target.is_by(&begun)) {
            running.begin();
        }
        true
    }

    /// The ClusterSet is deleted, though our watch has not told so yet: to take part on its word would undo a leave that has just
    /// ended.
    fn give_up(&self, begun: &Membership) -> bool {
        tracing::info!(cluster_set = begun.cluster_set, "it is deleted already");
        self.desk.with(|desk| drop(desk.sets.remove(&begun.cluster_set)));
        false
    }

    /// Writes the note; whether that is done.
    pub(super) async fn write_note(&self, have: Option<&Note>, want: &Note) -> bool {
        match self.writer.put(have, want).await {
            Ok(Some(note)) => self.desk.with(|desk| desk.answered_note(note)),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the membership could not be noted, trying again");
                return false;
            }
        }
        true
    }

    /// Nothing but the note is left. A ClusterSet that is still there learns that it is not to be joined again.
    pub(super) async fn forget(&self, note: Note, work: Work) -> bool {
        let set = self.desk.with(|desk| work.noted.as_ref().and_then(|noted| desk.set_of(noted).cloned()));
        let told = match set {
            Some(set) => {
                tell::status(&self.env, &self.desk, &self.writer, &set, &status::left().into()).await
            }
            None => true,
        };
        if !told {
            return false;
        }
        self.desk.with(|desk| desk.begun = None);
        match self.writer.delete(&note, true).await {
            Ok(()) => true,
            Err(Error::Stale) => false,
            Err(error) => {
                tracing::warn!(%error, "the note of the membership that was left could not be deleted, trying again");
                false
            }
        }
    }
}
