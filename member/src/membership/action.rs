//! What has to be done about the membership of this cluster. Pure.

use api::{
    about,
    cluster_claim::{CLUSTER_SET, ID},
    condition::Verdict,
    membership::Membership,
    name,
};
use kube::ResourceExt;

use super::{
    absence::Absence,
    note::{Note, Order},
    object::Set,
    state::MembershipState,
    verdict::{contradicted, no},
};
use crate::identity::Target;

/// What has to be done about the membership of this cluster.
#[derive(Clone, PartialEq)]
pub(super) enum Action {
    /// There is no ClusterSet, and nothing to leave: imports stay.
    Nothing,
    /// Something is wrong with this ClusterSet: imports stay.
    Wait { set: String, verdict: Verdict },
    /// Run a session with this leader.
    Connect { target: Target, note: Membership },
    /// The noted ClusterSet is gone: find out whether somebody decided that.
    FindOut(Membership),
    /// Leave what was noted, as far as the note can be read.
    Leave { noted: Option<Membership>, order: Order },
}

impl MembershipState {
    /// What has to be done.
    pub(super) fn action(&self) -> Action {
        let noted = self.noted();
        if let Some(order) = self.note().and_then(Note::order) {
            return Action::Leave { noted, order };
        }
        match (self.chosen(), noted) {
            (Some(set), noted) => match joining(self, set, noted.as_ref()) {
                Ok((target, note)) => Action::Connect { target, note },
                Err(verdict) => Action::Wait { set: set.name_any(), verdict },
            },
            (None, None) => Action::Nothing,
            (None, Some(noted)) => match (&self.absence, self.noted_target(&noted)) {
                (Some(Absence::Vanished(_)), Some(target)) => Action::Connect { target, note: noted },
                (Some(Absence::Vanished(_)), None) => Action::Nothing,
                (Some(Absence::Decided), _) => Action::Leave { noted: Some(noted), order: Order::Withdraw },
                (None, _) => Action::FindOut(noted),
            },
        }
    }
}

fn invalid(message: String) -> Verdict {
    no("InvalidSpec", message)
}

/// Where `set` leads, and what is to be noted of it; or why it leads nowhere.
fn joining(
    state: &MembershipState,
    set: &Set,
    noted: Option<&Membership>,
) -> Result<(Target, Membership), Verdict> {
    let spec = set.spec.0.as_ref().map_err(|error| invalid(format!("spec cannot be read: {error}")))?;
    let leader = spec.leaders.first().ok_or_else(|| invalid("spec.leaders is empty".into()))?;
    let missing = |field: &str| invalid(format!("spec.{field} is missing"));
    let note = Membership {
        cluster_set: set.name_any(),
        created: set.created(),
        cluster_id: cluster_id(state, set, &spec.cluster_id, noted)?,
        common_area: spec.namespace.clone().ok_or_else(|| missing("namespace"))?,
        server: leader.server.clone().ok_or_else(|| missing("leaders[0].server"))?,
        secret: leader.secret.clone().ok_or_else(|| missing("leaders[0].secret"))?,
        via: set.via(),
        wire: noted.map(|noted| noted.wire).unwrap_or_default(),
        ranges: noted.map(|noted| noted.ranges.clone()).unwrap_or_default(),
    };
    if let Some(noted) = noted.filter(|noted| !is_same(noted, &note)) {
        return Err(identity_changed(noted));
    }
    if let Some(why) = state.contradiction(&note).filter(|_| noted.is_none()) {
        return Err(contradicted(&why));
    }
    let mut target = state.noted_target(&note).ok_or_else(|| missing_secret(&note.secret))?;
    target.leader.clone_from(&leader.cluster_id);
    target.wire = noted.map(|noted| noted.wire);
    Ok((target, note))
}

/// The ID of this cluster: the ClusterSet says it in `spec`, and where it does not, a ClusterClaim, or else a ClusterProperty.
fn cluster_id(
    state: &MembershipState,
    set: &Set,
    spec: &str,
    noted: Option<&Membership>,
) -> Result<String, Verdict> {
    let checked = |id: &str, place: &str| match name::check_cluster_id(id) {
        Ok(()) => Ok(id.to_owned()),
        Err(error) => Err(invalid(format!("{place}: {error}"))),
    };
    if !spec.is_empty() {
        return checked(spec, "spec.clusterID");
    }
    let said = state.claimed_id().map(|id| (id, format!("ClusterClaim {ID}")));
    // Anybody may write one: of a member that is one already it says nothing, see `contradiction`.
    let said = said.or_else(|| {
        let id = state.says_itself(about::CLUSTER_ID).filter(|_| noted.is_none())?;
        Some((id, format!("ClusterProperty {}", about::CLUSTER_ID)))
    });
    let (claimed, place) = match (said, noted) {
        (Some(said), _) => said,
        // A claim that vanished changes nothing: the ID cannot change anyway.
        (None, Some(noted)) => return Ok(noted.cluster_id.clone()),
        (None, None) => {
            let message = format!(
                "this cluster has no ID: set spec.clusterID, or create ClusterClaim {ID} in this Namespace, or ClusterProperty {}",
                about::CLUSTER_ID
            );
            return Err(invalid(message));
        }
    };
    if let Some(other) = state.claimed_set().filter(|claimed| **claimed != *set.name_any()) {
        let message = format!(
            "spec.clusterID is empty, and ClusterClaim {CLUSTER_SET} says that this cluster belongs to ClusterSet {other:?}"
        );
        return Err(invalid(message));
    }
    checked(claimed, &format!("spec.clusterID is empty, and {place}"))
}

/// Whether two notes are of one membership: server and Secret may change, the identity may not.
fn is_same(one: &Membership, other: &Membership) -> bool {
    let identity =
        |note: &Membership| (note.cluster_set.clone(), note.cluster_id.clone(), note.common_area.clone());
    identity(one) == identity(other)
}

fn identity_changed(noted: &Membership) -> Verdict {
    let Membership { cluster_set, cluster_id, common_area, .. } = noted;
    let message = format!(
        "this cluster belongs to ClusterSet {cluster_set} as {cluster_id}, with Common Area {common_area}. These three cannot \
         change: run `freeport leave`, then join again. Imports stay as they are"
    );
    no("IdentityChanged", message)
}

fn missing_secret(secret: &str) -> Verdict {
    let message = format!(
        "this Namespace has no Secret {secret}: create it with keys ca.crt and token, or run freeport join again"
    );
    no("SecretMissing", message)
}

#[cfg(test)]
mod tests;
