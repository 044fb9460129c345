//! Who this member is in the Common Area, and how it reaches the leader.

use std::collections::BTreeMap;

use api::{
    membership::{Membership, Via, Wire},
    token::Claims,
};
use k8s_openapi::ByteString;
use kit::{
    certificate::certificates,
    client::{self, Dial},
};
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
    /// How it is reached.
    via: Via,
    credential: BTreeMap<String, ByteString>,
}

/// `leader` is only repeated in the announce and the status, and `wire` does not change once it is noted.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.is_there(other) && self.credential == other.credential
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
            via: note.via.clone(),
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
        self.is_of(note) && (&self.server, &self.secret, &self.via) == (&note.server, &note.secret, &note.via)
    }

    /// Whether who is in a session with this target goes on when it becomes the other one: the same leader, and another credential of the
    /// same account, with the same authorities and perhaps more. With what somebody puts in its place all begins anew, so that it is seen
    /// whether that works, and nothing goes on by a connection that an authority vouched for which is trusted no more.
    pub(crate) fn goes_on_as(&self, other: &Self) -> bool {
        self == other || self.has_account_of(other) && !self.trusts_less(other)
    }

    /// Whether all members may have to begin anew when who had this target gets the other one: their leader has lost an authority.
    pub(crate) fn is_of_all(&self, other: &Self) -> bool {
        self.has_account_of(other) && self.trusts_less(other)
    }

    /// Whether the other one is the same place, with a token of the same account.
    fn has_account_of(&self, other: &Self) -> bool {
        let uid = |target: &Self| target.token().and_then(Claims::of).and_then(|claims| claims.uid);
        self.is_there(other) && uid(self).is_some_and(|ours| uid(other) == Some(ours))
    }

    /// Whether the other one lacks an authority of this one.
    fn trusts_less(&self, other: &Self) -> bool {
        let authorities = |target: &Self| {
            let pem = target.credential.get(client::CA);
            pem.and_then(|pem| certificates(&pem.0).ok()).unwrap_or_default()
        };
        let theirs = authorities(other);
        authorities(self).iter().any(|one| !theirs.contains(one))
    }

    /// Whether it is at the same place, with whatever credential.
    fn is_there(&self, other: &Self) -> bool {
        let address = |target: &Self| {
            let Self { cluster_set, server, secret, via, .. } = target;
            (cluster_set.clone(), server.clone(), secret.clone(), via.clone())
        };
        self.us == other.us && address(self) == address(other)
    }

    /// What the Secret has.
    pub(crate) fn secret_data(&self) -> &BTreeMap<String, ByteString> {
        &self.credential
    }

    /// The same leader, with what a Secret has.
    pub(crate) fn with_credential(&self, credential: BTreeMap<String, ByteString>) -> Self {
        Self { credential, ..self.clone() }
    }

    /// The token, as far as it is one.
    pub(crate) fn token(&self) -> Option<&str> {
        let token = self.credential.get(client::TOKEN)?;
        std::str::from_utf8(&token.0).ok().map(str::trim)
    }

    /// A client for the leader's API server.
    pub(crate) fn client(&self, dial: &Dial) -> Result<Client, client::Error> {
        Ok(self.connect(dial)?.0)
    }

    /// A client for the leader's API server, and its credential, which may be replaced.
    pub(crate) fn connect(&self, dial: &Dial) -> Result<(Client, client::Credential), client::Error> {
        let credential = client::Credential::read(&self.credential)?;
        Ok((dial.client(&self.server, &credential, &self.via)?, credential))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn target(server: &str, authorities: &[&str], token: &str) -> Target {
        let text = |text: String| ByteString(text.into_bytes());
        let credential = [
            (client::CA.to_owned(), text(authorities.concat())),
            (client::TOKEN.to_owned(), text(token.to_owned())),
        ];
        Target {
            us: Identity { cluster: "east".into(), common_area: "clusterset-demo".into() },
            cluster_set: "demo".into(),
            leader: None,
            wire: None,
            server: server.into(),
            secret: "freeport-leader-demo".into(),
            via: Via::default(),
            credential: credential.into(),
        }
    }

    #[test]
    fn a_session_goes_on_with_another_token_of_the_same_account_alone() {
        let [old, new] = std::array::from_fn(|_| {
            let params = CertificateParams::new(Vec::<String>::new()).unwrap();
            params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
        });
        // Their claims are {"kubernetes.io":{"serviceaccount":{"uid":"u1"}}}, and the same with u2.
        let [ours, others] = ["InUxIn19fQ", "InUyIn19fQ"]
            .map(|uid| format!("h.eyJrdWJlcm5ldGVzLmlvIjp7InNlcnZpY2VhY2NvdW50Ijp7InVpZCI6{uid}.s"));
        let now = target("https://l", &[&old], &ours);
        let goes_on = |other: &Target| now.goes_on_as(other);
        assert!(goes_on(&target("https://l", &[&old], &format!("{ours}igned-again"))));
        assert!(goes_on(&target("https://l", &[&old, &new], &ours)));
        assert!(!goes_on(&target("https://l", &[&new], &ours)), "another authority was put there");
        let both = target("https://l", &[&old, &new], &ours);
        assert!(
            !both.goes_on_as(&now) && both.is_of_all(&now),
            "an authority was taken away, from all of them"
        );
        assert!(!both.is_of_all(&both) && !both.is_of_all(&target("https://l", &[&old], &others)));
        assert!(!goes_on(&target("https://l", &[&old], &others)));
        assert!(!goes_on(&target("https://l", &[&old], "a.b.c")));
        assert!(!goes_on(&target("https://m", &[&old], &ours)));
        let unknown = target("https://l", &[&old], "t");
        assert!(unknown.goes_on_as(&unknown) && !unknown.goes_on_as(&target("https://l", &[&old], "u")));
    }
}
