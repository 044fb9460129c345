//! What the daemon's Namespace says about belonging, and what there is to say about it: pure.

use std::{collections::BTreeMap, fmt};

use api::{
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus, ClusterStatus, READY},
    condition::{AntreaCondition, Status, Verdict},
    name,
};
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::Time};
use kit::{
    client,
    index::Change,
    view::{Lenient, lean},
};
use kube::{Client, Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use crate::{link::State, service::export::Identity};

/// A ClusterSet of the daemon's Namespace.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterSet)]
pub(super) struct Set {
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    #[serde(default = "nothing")]
    pub spec: Lenient<ClusterSetSpec>,
    #[serde(default)]
    pub status: Lenient<ClusterSetStatus>,
}

fn nothing() -> Lenient<ClusterSetSpec> {
    Lenient(Err("it has no spec".into()))
}

/// A Secret of the daemon's Namespace.
#[derive(Resource, Clone, Deserialize)]
#[resource(inherit = Secret)]
pub(super) struct Credential {
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, ByteString>,
}

/// Says nothing of what is in it.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

/// What the daemon's Namespace says about belonging.
#[derive(Default)]
pub(super) struct Desk {
    pub sets: BTreeMap<String, Set>,
    pub secrets: BTreeMap<String, Credential>,
}

/// Takes in what a watch told.
pub(super) fn fold<P: Resource>(map: &mut BTreeMap<String, P>, change: Change<P>) {
    match change {
        Change::Apply(object) => drop(map.insert(object.name_any(), object)),
        Change::Remove(object) => drop(map.remove(&object.name_any())),
        Change::Reset(objects) => {
            *map = objects.into_iter().map(|object| (object.name_any(), object)).collect()
        }
    }
}

/// A leader to link to.
#[derive(Clone, PartialEq)]
pub struct Target {
    /// Who we are there.
    pub us: Identity,
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// ID of the leader's cluster, as far as the ClusterSet says it.
    pub leader: Option<String>,
    server: String,
    credential: BTreeMap<String, ByteString>,
}

impl Desk {
    /// The ClusterSet we belong to: the oldest, since a member belongs to one.
    pub fn chosen(&self) -> Option<&Set> {
        let live = self.sets.values().filter(|set| set.metadata.deletion_timestamp.is_none());
        live.min_by_key(|set| (set.metadata.creation_timestamp.as_ref().map(|t| t.0), set.name_any()))
    }

    /// Where `set` leads, or what keeps it from leading anywhere.
    pub fn target(&self, set: &Set) -> Result<Target, Verdict> {
        let no = |reason: &str, message: String| Verdict::new(READY, Status::False, reason, message);
        let invalid = |message: String| no("InvalidSpec", message);
        let spec = set.spec.0.as_ref().map_err(|error| invalid(format!("spec does not decode: {error}")))?;
        name::check_cluster_id(&spec.cluster_id)
            .map_err(|error| invalid(format!("spec.clusterID: {error}")))?;
        let leader = spec.leaders.first().ok_or_else(|| invalid("spec.leaders is empty".into()))?;
        let missing = |field: &str| invalid(format!("spec.{field} is missing"));
        let secret = leader.secret.clone().ok_or_else(|| missing("leaders[0].secret"))?;
        let credential = self
            .secrets
            .get(&secret)
            .ok_or_else(|| no("SecretMissing", format!("there is no Secret {secret} in this Namespace")))?;
        Ok(Target {
            us: Identity {
                cluster: spec.cluster_id.clone(),
                common_area: spec.namespace.clone().ok_or_else(|| missing("namespace"))?,
            },
            cluster_set: set.name_any(),
            leader: leader.cluster_id.clone(),
            server: leader.server.clone().ok_or_else(|| missing("leaders[0].server"))?,
            credential: credential.data.clone(),
        })
    }
}

/// A client for the leader, or why there is none.
pub(super) fn client(target: &Target) -> Result<Client, Verdict> {
    client::remote(&target.server, &target.credential).map_err(|error| {
        let reason = match error {
            client::Error::Server(_) => "InvalidSpec",
            _ => "InvalidSecret",
        };
        Verdict::new(READY, Status::False, reason, error.to_string())
    })
}

/// What the state of the link means for the ClusterSet.
pub(super) fn verdict(state: &State) -> Verdict {
    match state {
        State::Connecting => {
            Verdict::new(READY, Status::Unknown, "Connecting", "no answer from the leader yet")
        }
        State::Connected => Verdict::new(READY, Status::True, "Connected", "exports and imports flow"),
        State::Blind { unlisted } => {
            let message = format!("nothing is exported or imported until this can be listed: {unlisted}");
            Verdict::new(READY, Status::False, "CannotWatch", message)
        }
        State::Lost { error } => {
            let message = format!("the leader cannot be reached, imports stay as they are: {error}");
            Verdict::new(READY, Status::False, "Disconnected", message)
        }
        State::IdTaken { holder } => {
            let message = format!(
                "another cluster uses this cluster ID and is alive (holder {holder}); nothing is exported"
            );
            Verdict::new(READY, Status::False, "DuplicateClusterID", message)
        }
    }
}

/// The status of a ClusterSet of which there is `verdict` to say.
pub(super) fn desired(set: &Set, verdict: &Verdict, now: &Time) -> ClusterSetStatus {
    let have = set.status.0.clone().unwrap_or_default();
    let ready = AntreaCondition::of(verdict, &have.conditions, now);
    let leader = set.spec.0.as_ref().ok().and_then(|spec| spec.leaders.first()?.cluster_id.clone());
    ClusterSetStatus {
        total_clusters: Some(1),
        ready_clusters: Some(i32::from(verdict.status == Status::True)),
        cluster_statuses: vec![ClusterStatus { cluster_id: leader, conditions: vec![ready.clone()] }],
        conditions: vec![ready],
        observed_generation: set.metadata.generation,
    }
}

/// What a status says stands while we only just set out to ask the leader again.
pub(super) fn stands(set: &Set, verdict: &Verdict) -> bool {
    let said = set.status.0.as_ref().is_ok_and(|status| {
        !status.conditions.is_empty() && status.observed_generation == set.metadata.generation
    });
    said && *verdict == self::verdict(&State::Connecting)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn desk(change: impl FnOnce(&mut Value)) -> Desk {
        let mut set: Value =
            serde_json::from_str(include_str!("../../../api/tests/golden/cluster-set-member.json")).unwrap();
        change(&mut set);
        let mut desk = Desk::default();
        fold(&mut desk.sets, Change::Apply(serde_json::from_value(set).unwrap()));
        let secret = json!({"metadata": {"name": "freeport-leader-token"}, "data": {"token": "c2VjcmV0"}});
        fold(&mut desk.secrets, Change::Apply(serde_json::from_value(secret).unwrap()));
        desk
    }

    fn reason(change: impl FnOnce(&mut Value)) -> String {
        let desk = desk(change);
        desk.target(desk.chosen().unwrap()).err().map_or_else(|| "fine".into(), |verdict| verdict.reason)
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(reason(|_| {}), "fine");
        assert_eq!(reason(|s| s["spec"]["clusterID"] = json!("Not an ID")), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["leaders"] = json!([])), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["leaders"] = json!("x")), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["namespace"] = Value::Null), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["leaders"][0]["secret"] = json!("other")), "SecretMissing");
        let desk = desk(|_| {});
        let target = desk.target(desk.chosen().unwrap()).unwrap_or_else(|_| panic!());
        assert_eq!(client(&target).err().unwrap().reason, "InvalidSecret", "no ca.crt");
    }

    #[test]
    fn the_oldest_cluster_set_is_ours() {
        let mut desk = desk(|s| s["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z"));
        let older = json!({"metadata": {"name": "zoo", "creationTimestamp": "2026-01-01T00:00:00Z"}});
        fold(&mut desk.sets, Change::Apply(serde_json::from_value(older).unwrap()));
        assert_eq!(desk.chosen().unwrap().name_any(), "zoo");
    }

    #[test]
    fn the_status_says_it_and_saying_it_again_changes_nothing() {
        let desk = desk(|_| {});
        let set = desk.chosen().unwrap();
        let now = Time("2026-11-02T00:00:00Z".parse().unwrap());
        let connected = desired(set, &verdict(&State::Connected), &now);
        assert_eq!(connected.ready_clusters, Some(1));
        assert_eq!(
            connected.conditions[0].last_transition_time,
            set.status.0.as_ref().unwrap().conditions[0].last_transition_time
        );
        let lost = desired(set, &verdict(&State::Lost { error: "refused".into() }), &now);
        assert_eq!(
            (lost.ready_clusters, lost.conditions[0].reason.as_deref()),
            (Some(0), Some("Disconnected"))
        );
    }

    #[test]
    fn a_secret_never_shows() {
        let desk = desk(|_| {});
        assert!(
            !format!("{:?}", desk.secrets).contains("c2VjcmV0")
                && !format!("{:?}", desk.secrets).contains("115")
        );
    }
}
