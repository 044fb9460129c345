//! The objects Freeport installs, built by pure functions.
//!
//! | module | objects |
//! |---|---|
//! | [`crds`] | CustomResourceDefinitions |
//! | [`leader`] | what the leader needs once in its cluster |
//! | [`area`] | a Common Area, with the leader's Role in it |
//! | [`access`] | a member's way into a Common Area: ServiceAccount, Role, token |
//! | [`member`] | what the member needs in its own cluster |
//!
//! The Deployments of the daemons will join [`leader`] and [`member`]; so far both run outside the clusters.

pub mod access;
pub mod area;
pub mod crds;
pub mod leader;
pub mod member;
mod rights;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Namespace, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt, core::discovery::ApiResource};
use serde::Serialize;
use serde_json::{Value, json};

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
        serde_yaml::to_string(&self.body)
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

/// Namespace [`SYSTEM`].
fn system_namespace() -> Object {
    Object::new(&Namespace { metadata: named(SYSTEM), ..Namespace::default() })
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
