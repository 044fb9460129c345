//! A leader to link to, and the credential for it.

use std::{collections::BTreeMap, fmt};

use api::view::lean;
use api::{
    condition::Verdict,
    membership::{Membership, Wire},
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kit::client;
use kube::{Client, Resource, api::ObjectMeta};
use serde::Deserialize;

use super::verdict::no;
use crate::identity::Identity;

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

/// A leader to link to.
#[derive(Clone)]
pub struct Target {
    /// Who we are there.
    pub us: Identity,
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// ID of the leader's cluster, as far as the ClusterSet says it.
    pub leader: Option<String>,
    /// Whose leader it is, once that was noted.
    pub wire: Option<Wire>,
    /// URL of the leader's API server.
    pub server: String,
    /// Name of the Secret.
    pub secret: String,
    credential: BTreeMap<String, ByteString>,
}

/// The same link: who leads is only told, so it does not matter that a note does not say it; and whose leader it is does not change
/// by being noted.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        let way = |target: &Self| (target.cluster_set.clone(), target.server.clone(), target.secret.clone());
        self.us == other.us && way(self) == way(other) && self.credential == other.credential
    }
}

impl Target {
    /// Where a noted membership leads.
    pub(super) fn noted(note: &Membership, credential: &Credential) -> Self {
        Self {
            us: Identity { cluster: note.cluster_id.clone(), common_area: note.common_area.clone() },
            cluster_set: note.cluster_set.clone(),
            leader: None,
            wire: Some(note.wire),
            server: note.server.clone(),
            secret: note.secret.clone(),
            credential: credential.data.clone(),
        }
    }

    /// Whether it leads where `note` does, perhaps by another way.
    pub(super) fn is_of(&self, note: &Membership) -> bool {
        (&self.cluster_set, &self.us.cluster, &self.us.common_area)
            == (&note.cluster_set, &note.cluster_id, &note.common_area)
    }

    /// Whether it leads where `note` does, by the same way.
    pub(super) fn is_by(&self, note: &Membership) -> bool {
        self.is_of(note) && (&self.server, &self.secret) == (&note.server, &note.secret)
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
