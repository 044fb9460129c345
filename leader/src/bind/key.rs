//! Which object of a consumer: one in a cluster namespace.

use std::fmt;

use api::bind::label;
use kit::queue::Party;
use kube::{Resource, ResourceExt};

/// An object in a cluster namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) cluster_namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn of<P: Resource>(object: &P) -> Self {
        Self {
            cluster_namespace: object.meta().namespace.clone().unwrap_or_default(),
            name: object.name_any(),
        }
    }

    /// The APIServiceNamespace that a Namespace was made for.
    pub(super) fn made_for<P: Resource>(namespace: &P) -> Option<Self> {
        let (cluster_namespace, name) =
            namespace.annotations().get(label::API_SERVICE_NAMESPACE)?.split_once('/')?;
        Some(Self { cluster_namespace: cluster_namespace.to_owned(), name: name.to_owned() })
    }

    /// In the turn of its consumer, so that nobody waits behind all objects of another one.
    pub(super) fn in_turn(self) -> (Self, Party) {
        let party = Party::of([&self.cluster_namespace]);
        (self, party)
    }

    pub(super) fn pair(&self) -> (String, String) {
        (self.cluster_namespace.clone(), self.name.clone())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster_namespace, self.name)
    }
}
