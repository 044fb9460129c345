//! The objects Freeport installs, built by pure functions.
//!
//! | module | objects |
//! |---|---|
//! | [`crds`] | CustomResourceDefinitions |
//! | [`leader`] | what the leader needs once in its cluster |
//! | [`area`] | a Common Area, with the leader's Role in it |
//! | [`access`] | a member's access to a Common Area: ServiceAccount, Role |
//! | [`member`] | what the member needs in its own cluster |
//! | [`observer`] | rights of people who only look, part of [`leader`], [`area`] and [`member`] |
//! | [`bind`] | what API binding needs, at a provider, at a consumer, and for each API |
//! | [`dns`] | what CoreDNS may do, to make names of imports |
//! | `fairness` | how much of its API server the members get, part of [`leader`] and [`area`] |
//! | [`offload`] | what offloading needs beside all that, where it is asked for |
//! | `policy` | what the API server itself refuses, part of [`leader`], [`member`], [`offload`] and [`bind`] |
//!
//! In [`leader`] and [`member`] the rights of a daemon are apart from its Deployment, for it may run outside the cluster.

pub mod access;
pub mod area;
pub mod bind;
pub mod crds;
mod deployment;
pub mod dns;
mod fairness;
pub mod leader;
pub mod member;
pub mod observer;
pub mod offload;
mod policy;
mod rights;
mod yaml;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Namespace, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt, core::discovery::ApiResource};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub use self::deployment::DEFAULT_IMAGE;
pub(crate) use self::deployment::{anew, disruption_budget, is_of_replicas, tells};
pub(crate) use self::member::PROBE;
pub(crate) use self::policy::drift::{PolicyDrift, drift};

/// Namespace of both daemons in each cluster.
pub const SYSTEM: &str = "freeport-system";

/// One object to install: where the API serves its kind, and its body as it is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Name.
    pub name: String,
    /// Namespace; none for kinds that live outside of Namespaces.
    pub namespace: Option<String>,
    /// The whole object, `apiVersion` and `kind` included.
    pub body: Value,
}

impl Object {
    /// Takes a typed object, which must carry a name.
    pub fn new<K>(object: &K) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        Self {
            resource: ApiResource::erase::<K>(&()),
            name: object.name_any(),
            namespace: object.namespace(),
            body: json!(object),
        }
    }

    /// The object as one YAML document.
    pub fn yaml(&self) -> Result<String, serde_yaml::Error> {
        yaml::document(&self.body)
    }

    /// The body as a type that reads what is used of it; none if that does not decode.
    pub(crate) fn view<V: DeserializeOwned>(&self) -> Option<V> {
        V::deserialize(&self.body).ok()
    }

    /// Its metadata, as far as it decodes.
    pub(crate) fn metadata(&self) -> ObjectMeta {
        self.body
            .get("metadata")
            .and_then(|metadata| ObjectMeta::deserialize(metadata).ok())
            .unwrap_or_default()
    }

    /// Whether the body carries the label that marks what Freeport installed.
    pub(crate) fn is_ours(&self) -> bool {
        let labels = self.metadata().labels.unwrap_or_default();
        labels.get(api::label::MANAGED_BY).is_some_and(|by| by == api::label::FREEPORT)
    }
}

/// `Kind name` or `Kind namespace/name`, as messages name an object.
impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.resource.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// What a Pod in a Namespace with this label may ask of its node (Kubernetes).
const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

/// Namespace [`SYSTEM`]. The API server refuses Pods there that ask for more than ours do.
pub(crate) fn system_namespace() -> Object {
    let mut metadata = named(SYSTEM);
    metadata.labels.get_or_insert_default().insert(POD_SECURITY.into(), "restricted".into());
    Object::new(&Namespace { metadata, ..Namespace::default() })
}

/// ServiceAccount `name` in [`SYSTEM`].
fn daemon_account(name: &str) -> Object {
    Object::new(&ServiceAccount { metadata: within(SYSTEM, name), ..ServiceAccount::default() })
}

/// Metadata of an object outside of Namespaces, labelled as ours.
fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), labels: Some(ours()), ..ObjectMeta::default() }
}

/// Metadata of an object in a Namespace, labelled as ours.
fn within(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.into()), ..named(name) }
}

/// The label that marks what Freeport installed.
fn ours() -> BTreeMap<String, String> {
    BTreeMap::from([(api::label::MANAGED_BY.into(), api::label::FREEPORT.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bears_another_label_is_not_ours() {
        let labelled = |labels: Value| {
            let body = json!({"metadata": {"name": "x", "labels": labels}});
            Object { body, ..system_namespace() }.is_ours()
        };
        assert!(system_namespace().is_ours());
        assert!(labelled(json!({"app.kubernetes.io/managed-by": "freeport", "a": "b"})));
        assert!(!labelled(json!({"app.kubernetes.io/managed-by": "Helm"})));
        assert!(!labelled(Value::Null));
    }
}
