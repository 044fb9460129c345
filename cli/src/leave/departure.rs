//! What a member's cluster holds of its membership.

use std::collections::BTreeSet;

use api::condition::AntreaCondition;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::{
    objects::{Object, member},
    view::{ClusterSetView, Note},
};

/// What a member's cluster holds of its membership.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Traces {
    /// ClusterSets in the member's Namespace. A cluster belongs to one set, but nothing keeps a person from making two.
    pub(super) sets: Vec<Object>,
    /// The member's note about its membership; none if it never connected, or has left.
    pub(super) note: Option<Object>,
    /// The Secrets in the member's Namespace that Freeport made.
    pub(super) secrets: Vec<Object>,
}

impl Traces {
    /// Without a ClusterSet and a note there is nothing to leave.
    pub(super) fn is_member(&self) -> bool {
        !self.sets.is_empty() || self.note.is_some()
    }

    /// Set and ID under which the leader knows the cluster. The note counts first, for the member acted on it. A ClusterSet without
    /// clusterID has its ID in a ClusterClaim, which is not read here.
    pub(super) fn identity(&self) -> Option<(String, String)> {
        let noted = self.noted().and_then(|note| note.cluster_set.zip(note.cluster_id));
        let of_set = |set: &Object| {
            let view = set.view::<ClusterSetView>()?;
            Some((set.name.clone(), view.cluster_id()?.to_owned()))
        };
        noted.or_else(|| self.sets.iter().find_map(of_set))
    }

    /// What the note says.
    pub(super) fn noted(&self) -> Option<Note> {
        self.note.as_ref().and_then(read)
    }

    /// Whether another cluster uses our ID, as far as our member found out.
    pub(super) fn shares_its_id(&self) -> bool {
        self.is_duplicate(|_| true)
    }

    /// Whether that one was there first: the ID is its own. A copy has the uid of the original, so that alone does not tell them apart.
    pub(super) fn came_second(&self) -> bool {
        self.is_duplicate(|status| status == "False")
    }

    fn is_duplicate(&self, status: impl Fn(&str) -> bool) -> bool {
        let views = self.sets.iter().filter_map(|set| set.view::<ClusterSetView>());
        let is_it = |c: &AntreaCondition| {
            c.reason.as_deref() == Some("DuplicateClusterID") && c.status.as_deref().is_some_and(&status)
        };
        views.into_iter().any(|set| set.conditions().iter().any(is_it))
    }

    /// Names of Secrets with a credential for a leader: those of the sets that are left, and what earlier memberships may
    /// have left behind.
    pub(super) fn credentials(&self) -> BTreeSet<String> {
        let noted = self.noted().and_then(|note| note.cluster_set);
        let sets = self.sets.iter().map(|set| set.name.clone()).chain(noted);
        let prefix = member::secret_name("");
        let left = self.secrets.iter().map(|secret| &secret.name).filter(|name| name.starts_with(&prefix));
        sets.map(|set| member::secret_name(&set)).chain(left.cloned()).collect()
    }
}

/// What a member's note says.
pub(super) fn read(note: &Object) -> Option<Note> {
    note.view::<ConfigMap>().map(|note| Note::read(&note))
}

#[cfg(test)]
mod tests {
    use api::{cluster_set::ClusterSet, membership};
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    use super::*;
    use crate::{eraser::called, objects::SYSTEM};

    fn set(name: &str, id: &str) -> Object {
        let body = json!({"metadata": {"name": name}, "spec": {"clusterID": id, "leaders": []}});
        Object { body, ..called::<ClusterSet>(SYSTEM, name) }
    }

    fn note(set: &str, id: &str) -> Object {
        let body = json!({"data": {"clusterSet": set, "clusterID": id}});
        Object { body, ..called::<ConfigMap>(SYSTEM, membership::NAME) }
    }

    #[test]
    fn without_set_and_note_there_is_nothing_to_leave_but_a_secret() {
        let names = ["freeport-leader-old", "other"];
        let secrets = names.map(|name| called::<Secret>(SYSTEM, name)).into();
        let traces = Traces { secrets, ..Traces::default() };
        assert!(!traces.is_member());
        assert_eq!(traces.identity(), None);
        assert_eq!(traces.credentials(), ["freeport-leader-old".to_owned()].into());
    }

    /// Issue 14, A8: a copy has the uid of the original, and must not take its access away.
    #[test]
    fn a8_who_came_second_has_no_right_to_the_id() {
        let said = |status: &str, reason: &str| {
            let mut set = set("demo", "east");
            set.body["status"] =
                json!({"conditions": [{"type": "Ready", "status": status, "reason": reason}]});
            let traces = Traces { sets: vec![set], ..Traces::default() };
            (traces.shares_its_id(), traces.came_second())
        };
        assert_eq!(said("False", "DuplicateClusterID"), (true, true));
        assert_eq!(said("True", "DuplicateClusterID"), (true, false), "the original leaves as ever");
        assert_eq!(said("False", "Disconnected"), (false, false));
    }

    #[test]
    fn the_note_says_who_we_were_even_when_the_set_is_gone() {
        let traces = Traces { note: Some(note("demo", "east")), ..Traces::default() };
        assert!(traces.is_member());
        assert_eq!(traces.identity(), Some(("demo".into(), "east".into())));
        assert_eq!(traces.credentials(), ["freeport-leader-demo".to_owned()].into());
    }

    #[test]
    fn a_member_that_never_connected_is_known_by_its_set() {
        let traces = Traces { sets: vec![set("demo", "east")], ..Traces::default() };
        assert_eq!(traces.identity(), Some(("demo".into(), "east".into())));
        let by_claim = Traces { sets: vec![set("demo", "")], ..Traces::default() };
        assert!(by_claim.is_member());
        assert_eq!(by_claim.identity(), None);
    }

    #[test]
    fn the_note_counts_before_the_set() {
        let traces =
            Traces { sets: vec![set("new", "west")], note: Some(note("demo", "east")), ..Traces::default() };
        assert_eq!(traces.identity(), Some(("demo".into(), "east".into())));
        let both = ["freeport-leader-demo", "freeport-leader-new"].map(str::to_owned);
        assert_eq!(traces.credentials(), both.into());
    }
}
