//! What the daemon's Namespace says about belonging, and what there is to say about it: pure.

use std::{collections::BTreeMap, fmt};

use api::{
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus},
    condition::Verdict,
    name,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kit::{
    client,
    index::Change,
    view::{Lenient, lean},
};
use kube::{Client, Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use super::verdict::no;
use crate::service::export::Identity;

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
    /// URL of the leader's API server.
    pub server: String,
    /// Name of the Secret.
    pub secret: String,
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
        let invalid = |message: String| no("InvalidSpec", message);
        let spec = set.spec.0.as_ref().map_err(|error| invalid(format!("spec does not decode: {error}")))?;
        name::check_cluster_id(&spec.cluster_id)
            .map_err(|error| invalid(format!("spec.clusterID: {error}")))?;
        let leader = spec.leaders.first().ok_or_else(|| invalid("spec.leaders is empty".into()))?;
        let missing = |field: &str| invalid(format!("spec.{field} is missing"));
        let secret = leader.secret.clone().ok_or_else(|| missing("leaders[0].secret"))?;
        let credential =
            self.secrets.get(&secret).ok_or_else(|| no("SecretMissing", missing_secret(&secret)))?;
        Ok(Target {
            us: Identity {
                cluster: spec.cluster_id.clone(),
                common_area: spec.namespace.clone().ok_or_else(|| missing("namespace"))?,
            },
            cluster_set: set.name_any(),
            leader: leader.cluster_id.clone(),
            server: leader.server.clone().ok_or_else(|| missing("leaders[0].server"))?,
            secret,
            credential: credential.data.clone(),
        })
    }
}

/// A client for the leader, or why there is none.
pub(super) fn client(target: &Target) -> Result<Client, Verdict> {
    client::remote(&target.server, &target.credential).map_err(|error| {
        let secret = &target.secret;
        match error {
            client::Error::Server(_) => no("InvalidSpec", format!("spec.leaders[0].server: {error}")),
            client::Error::Missing(_) | client::Error::Malformed(..) => no(
                "InvalidSecret",
                format!("Secret {secret}: {error}. Join again for a new one (freeport join)"),
            ),
            client::Error::Local(_) | client::Error::Setup(_) => no("Disconnected", error.to_string()),
        }
    })
}

fn missing_secret(secret: &str) -> String {
    format!(
        "there is no Secret {secret} in this Namespace: create it with keys ca.crt and token, or join again (freeport join)"
    )
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(in crate::membership) fn desk(change: impl FnOnce(&mut Value)) -> Desk {
        let mut set: Value =
            serde_json::from_str(include_str!("../../../api/tests/golden/cluster-set-member.json")).unwrap();
        change(&mut set);
        let mut desk = Desk::default();
        fold(&mut desk.sets, Change::Apply(serde_json::from_value(set).unwrap()));
        let secret = json!({"metadata": {"name": "freeport-leader-token"}, "data": {"token": "c2VjcmV0"}});
        fold(&mut desk.secrets, Change::Apply(serde_json::from_value(secret).unwrap()));
        desk
    }

    pub(in crate::membership) fn target() -> Target {
        let desk = desk(|_| {});
        desk.target(desk.chosen().unwrap()).unwrap_or_else(|_| panic!())
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
        let verdict = client(&target()).err().unwrap();
        assert_eq!(verdict.reason, "InvalidSecret");
        assert!(verdict.message.contains("\"ca.crt\""), "{}", verdict.message);
    }

    #[test]
    fn the_oldest_cluster_set_is_ours() {
        let mut desk = desk(|s| s["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z"));
        let older = json!({"metadata": {"name": "zoo", "creationTimestamp": "2026-01-01T00:00:00Z"}});
        fold(&mut desk.sets, Change::Apply(serde_json::from_value(older).unwrap()));
        assert_eq!(desk.chosen().unwrap().name_any(), "zoo");
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
