//! The credential of a contract, in a Secret of Namespace `kube-bind`.

use api::{
    bind::{identity, label::IDENTITY},
    label::{self, MEMBER},
    view::Meta,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kit::{
    boot::Env,
    client::kubeconfig,
    write::{Error, Writer},
};
use kube::ResourceExt;
use serde_json::json;

use super::{absence::cluster_uid, local::Local};

/// Why there is no contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("there is no Secret kube-bind/{0}")]
    NotFound(String),
    #[error("the Secret has no key kubeconfig")]
    NoKey,
    #[error(
        "credentials are read from Secrets of Namespace kube-bind, key kubeconfig, and the binding names {0}"
    )]
    Elsewhere(String),
    #[error(
        "the credential is of the cluster with uid {0}: nothing is synchronized; make this cluster a consumer of its own"
    )]
    OfAnotherCluster(String),
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] kubeconfig::Error),
}

impl Unusable {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "KubeconfigSecretNotFound",
            Self::NoKey | Self::Elsewhere(_) | Self::OfAnotherCluster(_) | Self::Kubeconfig(_) => {
                "KubeconfigSecretInvalid"
            }
        }
    }
}

/// What a Secret holds.
pub(crate) type Credential = Result<Vec<u8>, Unusable>;

/// Notes beside the credential whose it is; why not, if it is another cluster's: what that one has would seem to be gone here. Ours is
/// asked for its uid each time, since it may be another one under the same address.
pub(super) async fn claim(env: &Env, local: &Local, secret: &str) -> Result<Option<Unusable>, Error> {
    let Some(there) = local.known.with(|known| known.secrets.get(secret).cloned()) else { return Ok(None) };
    let us = cluster_uid(&env.client).await?;
    if let Some(noted) = there.annotations().get(label::CLUSTER_UID) {
        return Ok(of_another(noted, &us));
    }
    let patch = json!({"metadata": {"annotations": {label::CLUSTER_UID: us}}});
    let writer = Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone());
    writer.merge::<Secret>(&there, None, patch).await.map(|_| None)
}

/// Why this cluster namespace, to which the credential leads, is not for our cluster, if its identity says so. A note on the Secret says
/// nothing where the Secret was new to us.
pub(super) fn others_contract(us: &str, cluster_namespace: &Meta<Namespace>) -> Option<Unusable> {
    let identity = cluster_namespace.annotations().get(IDENTITY).map(String::as_str);
    identity::of_another(identity, us).map(|other| Unusable::OfAnotherCluster(other.to_owned()))
}

fn of_another(noted: &str, us: &str) -> Option<Unusable> {
    (noted != us).then(|| Unusable::OfAnotherCluster(noted.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b18_a_credential_is_of_the_cluster_that_it_was_made_for() {
        assert_eq!(of_another("u1", "u1"), None);
        assert_eq!(of_another("u1", "u2"), Some(Unusable::OfAnotherCluster("u1".into())));
    }
}
