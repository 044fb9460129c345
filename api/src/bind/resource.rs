//! What is offered and asked for: APIs, what goes along with them, and how they are kept apart.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Group of APIs whose resources have none, in names.
pub const CORE: &str = "core";

/// An API, and versions of it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct Resource {
    /// Group of the API; empty for Kubernetes' own.
    #[serde(default)]
    #[schemars(regex(pattern = r"^(|[a-z0-9]([-a-z0-9]*[a-z0-9](\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)$"))]
    pub group: String,
    /// Plural name of the resource.
    #[schemars(regex(pattern = r"^[a-z][-a-z0-9]*[a-z0-9]$"))]
    pub resource: String,
    /// Versions of the API; those that the provider serves if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
}

impl Resource {
    /// Name of its BoundSchema and CRD: `<plural>.<group>`.
    pub fn name(&self) -> String {
        let group = if self.group.is_empty() { CORE } else { &self.group };
        format!("{}.{group}", self.resource)
    }
}

/// Objects of another API that go along with those that are bound.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct PermissionClaim {
    /// Group of the API; empty for Kubernetes' own.
    #[serde(default)]
    #[schemars(regex(pattern = r"^(|[a-z0-9]([-a-z0-9]*[a-z0-9](\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)$"))]
    pub group: String,
    /// Plural name of the resource.
    #[schemars(regex(pattern = r"^[a-z][-a-z0-9]*[a-z0-9]$"))]
    pub resource: String,
    /// Which objects: those that any of its parts selects.
    pub selector: Selector,
}

/// Selects objects of a claim.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Objects of these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_resources: Vec<NamedResource>,
    /// Objects with these labels; an empty selector selects all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Objects that others name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
}

/// An object by its name.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct NamedResource {
    /// Its name.
    pub name: String,
    /// Its Namespace; in any if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Where objects of another API name those that are claimed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Group of the API; empty for Kubernetes' own.
    #[serde(default)]
    #[schemars(regex(pattern = r"^(|[a-z0-9]([-a-z0-9]*[a-z0-9](\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)$"))]
    pub group: String,
    /// Plural name of the resource.
    #[schemars(regex(pattern = r"^[a-z][-a-z0-9]*[a-z0-9]$"))]
    pub resource: String,
    /// Versions of the API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// Where the name is.
    pub json_path: ReferencePath,
}

/// Paths in an object, as gjson writes them.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct ReferencePath {
    /// To the name.
    pub name: String,
    /// To the Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// How much of the provider a konnector watches.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum InformerScope {
    /// All Namespaces.
    Cluster,
    /// Those that are assigned to the consumer.
    #[default]
    Namespaced,
}

/// How the objects of consumers are kept apart.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum Isolation {
    /// By a prefix of the name of the object or of its Namespace.
    #[default]
    Prefixed,
    /// Each consumer's in its cluster namespace; the API is cluster-scoped at the consumer.
    Namespaced,
    /// Not at all.
    None,
}

impl Isolation {
    /// As the API writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prefixed => "Prefixed",
            Self::Namespaced => "Namespaced",
            Self::None => "None",
        }
    }

    /// The isolation of this word, as flags and annotations have it.
    pub fn of_word(word: &str) -> Option<Self> {
        let all = [Self::Prefixed, Self::Namespaced, Self::None];
        all.into_iter().find(|isolation| isolation.word().eq_ignore_ascii_case(word))
    }
}

/// Whether a schema that the provider changes is changed at consumers.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum SchemaUpdatePolicy {
    /// It stays as it was when it was bound.
    #[default]
    Never,
    /// It follows.
    Always,
}

/// A Namespace of the consumer.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct NamespaceName {
    /// Its name.
    pub name: String,
}

/// A key of a Secret in the same Namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct SecretKey {
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The key in it.
    pub key: String,
}

/// A key of a Secret in some Namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct ClusterSecretKey {
    /// Namespace of the Secret.
    #[schemars(length(min = 1))]
    pub namespace: String,
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The key in it.
    pub key: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_named_after_its_api() {
        let of = |group: &str| {
            Resource { group: group.into(), resource: "mangodbs".into(), versions: vec![] }.name()
        };
        assert_eq!(
            (of("provider.example.com"), of("")),
            ("mangodbs.provider.example.com".into(), "mangodbs.core".into())
        );
    }
}
