//! What the daemon's Namespace says about the membership of this cluster. Pure.

use api::{
    cluster_claim::{CLUSTER_SET, ID},
    membership::{self, Membership},
};
use kit::objects::Objects;
use kube::ResourceExt;

use super::{
    absence::Absence,
    note::Note,
    object::{Claim, Credential, Property, Set},
};
use crate::identity::Target;

/// What the daemon's Namespace says about the membership of this cluster.
#[derive(Default)]
pub(super) struct MembershipState {
    pub(super) cluster_sets: Objects<Set>,
    pub(super) secrets: Objects<Credential>,
    pub(super) claims: Objects<Claim>,
    /// What this cluster says about itself, whoever wrote it.
    pub(super) properties: Objects<Property>,
    /// Our note: one, or none.
    pub(super) notes: Objects<Note>,
    /// The membership to be noted: a session is present at the leader, and the note is perhaps not written yet.
    pub(super) begun: Option<Membership>,
    /// Why the noted ClusterSet is gone, once that was found out.
    pub(super) absence: Option<Absence>,
}

impl MembershipState {
    /// Before the note is written nothing has begun: if the ClusterSet is deleted first, there is nothing to leave.
    pub(super) fn forget_unnoted(&mut self) {
        if self.note().is_none() && self.chosen().is_none() {
            self.begun = None;
        }
    }

    /// The note, if there is one.
    pub(super) fn note(&self) -> Option<&Note> {
        self.notes.get(membership::NAME)
    }

    /// The membership that has begun, whether its note is written or not.
    pub(super) fn noted(&self) -> Option<Membership> {
        self.note().and_then(Note::membership).or_else(|| self.begun.clone())
    }

    /// The membership in which features run alone while there is no session: the noted one, unless it is being left.
    pub(super) fn alone(&self) -> Option<Membership> {
        self.note().filter(|note| note.order().is_none()).and_then(Note::membership)
    }

    /// The ClusterSet this cluster belongs to: the noted one, else the oldest that it has not left. A cluster belongs to one.
    pub(super) fn chosen(&self) -> Option<&Set> {
        match self.noted() {
            Some(noted) => self.cluster_sets.get(&noted.cluster_set).filter(|set| set.is_live()),
            None => {
                let age =
                    |set: &&Set| (set.metadata.creation_timestamp.as_ref().map(|t| t.0), set.name_any());
                self.cluster_sets.iter().filter(|set| set.is_live() && !set.is_left()).min_by_key(age)
            }
        }
    }

    /// The very ClusterSet that was noted, if it still exists.
    pub(super) fn set_of(&self, noted: &Membership) -> Option<&Set> {
        let set = self.cluster_sets.get(&noted.cluster_set)?;
        (set.is_live() && set.created() == noted.created).then_some(set)
    }

    /// Where a noted membership leads, as long as its Secret exists.
    pub(super) fn noted_target(&self, noted: &Membership) -> Option<Target> {
        let credential = self.secrets.get(&noted.secret)?;
        Some(Target::noted(noted, credential.data.clone()))
    }

    /// The ID of this cluster by its ClusterClaim.
    pub(super) fn claimed_id(&self) -> Option<&str> {
        self.claims.get(ID).map(Claim::value)
    }

    /// The ClusterSet that this cluster belongs to by its ClusterClaim.
    pub(super) fn claimed_set(&self) -> Option<&str> {
        self.claims.get(CLUSTER_SET).map(Claim::value)
    }
}
