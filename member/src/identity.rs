//! Who this member is in the Common Area, and how it reaches the leader.

use std::collections::BTreeMap;

use api::membership::{Membership, Wire};
use k8s_openapi::ByteString;
use kit::client;
use kube::Client;

/// Identity of this member in the Common Area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Our cluster ID.
    pub(crate) cluster: String,
    /// Namespace of the leader's cluster that holds the records.
    pub(crate) common_area: String,
}

/// The leader of a ClusterSet, and how this member reaches it.
#[derive(Clone)]
pub(crate) struct Target {
    /// Who we are there.
    pub(crate) us: Identity,
    /// Name of the ClusterSet.
    pub(crate) cluster_set: String,
    /// ID of the leader's cluster, if the ClusterSet names it.
    pub(crate) leader: Option<String>,
    /// Whose leader it is, once that was noted.
    pub(crate) wire: Option<Wire>,
    /// URL of the leader's API server.
    pub(crate) server: String,
    /// Name of the Secret with the credential.
    pub(crate) secret: String,
    credential: BTreeMap<String, ByteString>,
}

/// Equal targets need no new session. `leader` is only repeated in the announce and the status, and `wire` does not change once it
/// is noted.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        let address =
            |target: &Self| (target.cluster_set.clone(), target.server.clone(), target.secret.clone());
        self.us == other.us && address(self) == address(other) && self.credential == other.credential
    }
}

impl Target {
    /// The leader of a noted membership, with the content of its Secret.
    pub(crate) fn noted(note: &Membership, credential: BTreeMap<String, ByteString>) -> Self {
        Self {
            us: Identity { cluster: note.cluster_id.clone(), common_area: note.common_area.clone() },
            cluster_set: note.cluster_set.clone(),
            leader: None,
            wire: Some(note.wire),
            server: note.server.clone(),
            secret: note.secret.clone(),
            credential,
        }
    }

    /// Whether it is the leader of `note`, perhaps with another server or Secret.
    pub(crate) fn is_of(&self, note: &Membership) -> bool {
        (&self.cluster_set, &self.us.cluster, &self.us.common_area)
            == (&note.cluster_set, &note.cluster_id, &note.common_area)
    }

    /// Whether it is the leader of `note`, with the same server and Secret.
    pub(crate) fn is_same(&self, note: &Membership) -> bool {
        self.is_of(note) && (&self.server, &self.secret) == (&note.server, &note.secret)
    }

    /// A client for the leader's API server.
    pub(crate) fn client(&self) -> Result<Client, client::Error> {
        client::remote(&self.server, &self.credential)
    }
}
