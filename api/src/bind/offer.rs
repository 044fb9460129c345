//! What a provider offers: `APIServiceExportTemplate`, `Collection`, `Cluster`; and who asks for a contract: `BindableResourcesRequest`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time};
use kube::{CustomResource, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    condition::Condition,
    duration::GoDuration,
    export::Phase,
    label,
    resource::{
        InformerScope, Isolation, NamespaceName, PermissionClaim, Resource, SchemaUpdatePolicy, SecretKey,
    },
};

/// APIServiceExportTemplate offers APIs to consumers, together.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "APIServiceExportTemplate",
    plural = "apiserviceexporttemplates",
    status = "ConditionsStatus",
    derive = "PartialEq",
    category = "kube-bind",
    printcolumn(name = "Resources", type_ = "string", json_path = ".spec.resources[*].resource"),
    printcolumn(
        name = "PermissionClaims",
        type_ = "string",
        json_path = ".spec.permissionClaims[*].resource"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct APIServiceExportTemplateSpec {
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Scope of the APIs, for people.
    pub scope: InformerScope,
    /// The APIs.
    #[schemars(length(min = 1))]
    pub resources: Vec<Resource>,
    /// What goes along with their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permission_claims: Vec<PermissionClaim>,
    /// Namespaces of the consumer that are to be there from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceName>,
    /// Whether schemas follow those of the provider.
    #[serde(default)]
    pub schema_update_policy: SchemaUpdatePolicy,
}

impl APIServiceExportTemplate {
    /// How the objects of its consumers are kept apart; nothing where it is as the provider does it.
    ///
    /// # Errors
    /// A sentence, where it says a word that is none: somebody who mistypes it wants another one than the provider's.
    pub fn isolation(&self) -> Result<Option<Isolation>, String> {
        let Some(said) = self.annotations().get(label::ISOLATION) else { return Ok(None) };
        Isolation::of_word(said).map(Some).ok_or_else(|| {
            format!(
                "APIServiceExportTemplate {} has an isolation that is none: annotation {} must be Prefixed, Namespaced or None, and is {said:?}",
                self.name_any(),
                label::ISOLATION,
            )
        })
    }
}

/// A status of conditions alone.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct ConditionsStatus {
    /// What is said of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Collection groups templates for people.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "Collection",
    status = "ConditionsStatus",
    derive = "PartialEq",
    category = "kube-bind",
    printcolumn(name = "Description", type_ = "string", json_path = ".spec.description"),
    printcolumn(name = "Templates", type_ = "string", json_path = ".spec.templates[*].name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct CollectionSpec {
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its templates.
    #[schemars(length(min = 1))]
    pub templates: Vec<TemplateRef>,
}

/// A template by its name.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct TemplateRef {
    /// Its name.
    pub name: String,
}

/// Cluster stands for the provider itself. There is one, called `default`.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "Cluster",
    status = "ConditionsStatus",
    derive = "PartialEq",
    category = "kube-bind",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    )
)]
pub struct ClusterSpec {}

/// BindableResourcesRequest asks a provider for a contract: a cluster namespace, and the credential for it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "BindableResourcesRequest",
    plural = "bindableresourcesrequests",
    namespaced,
    status = "BindableResourcesRequestStatus",
    derive = "PartialEq",
    category = "kube-bindings",
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.templateRef.name"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BindableResourcesRequestSpec {
    /// The template that the consumer wants. It is granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateRef>,
    /// Who the consumer is.
    pub cluster_identity: ClusterIdentity,
    /// Who asks.
    pub author: String,
    /// Where the answer is to be; in a Secret named after the request if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<SecretKey>,
    /// How long the request stays after it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_after_finished: Option<GoDuration>,
}

/// Who a consumer is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// The same for the same cluster, always: the uid of its Namespace `kube-system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretty_name: Option<String>,
}

/// What became of a BindableResourcesRequest.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindableResourcesRequestStatus {
    /// How far it is.
    #[serde(default)]
    pub phase: Phase,
    /// The cluster namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Where the answer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<SecretKey>,
    /// When it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// `Ready`. Other than in the other kinds these are Kubernetes' own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<MetaCondition>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_template_says_an_isolation_or_nothing() {
        let isolation = |annotations: Value| {
            let metadata = json!({"name": "db", "annotations": annotations});
            let all = json!({"metadata": metadata, "spec": {"scope": "Cluster", "resources": []}});
            serde_json::from_value::<APIServiceExportTemplate>(all).unwrap().isolation()
        };
        assert_eq!(isolation(json!({})), Ok(None));
        for (said, is) in [
            ("none", Isolation::None),
            ("Namespaced", Isolation::Namespaced),
            ("PREFIXED", Isolation::Prefixed),
        ] {
            assert_eq!(isolation(json!({label::ISOLATION: said})), Ok(Some(is)));
        }
        for wrong in ["Non", "", "prefixed "] {
            let why = isolation(json!({label::ISOLATION: wrong})).unwrap_err();
            assert!(why.contains("db") && why.contains(&format!("{wrong:?}")), "{why}");
        }
    }
}
