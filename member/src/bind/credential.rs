//! The credential of a contract, in a Secret of Namespace `kube-bind`.

use kit::client::kubeconfig;

/// The key of a Secret that holds the credential.
pub(crate) const KEY: &str = "kubeconfig";

/// Why there is no contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("there is no Secret kube-bind/{0}")]
    NotFound(String),
    #[error("the Secret has no key kubeconfig")]
    NoKey,
    #[error(
        "the Secret was made for the cluster with uid {0}: nothing is synchronized; make this cluster a consumer of its own"
    )]
    OfAnotherCluster(String),
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] kubeconfig::Error),
}

impl Unusable {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "KubeconfigSecretNotFound",
            Self::NoKey | Self::OfAnotherCluster(_) | Self::Kubeconfig(_) => "KubeconfigSecretInvalid",
        }
    }
}

/// What a Secret holds.
pub(crate) type Credential = Result<Vec<u8>, Unusable>;
