//! `APIServiceExport`: a consumer may use these APIs. `APIServiceExportRequest`: it asks for them. `APIServiceNamespace`: it uses them
//! in this Namespace.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    condition::Condition,
    resource::{InformerScope, Isolation, NamespaceName, PermissionClaim, Resource, SchemaUpdatePolicy},
};

/// APIServiceExport lets a consumer use APIs of the provider. The provider writes it into the cluster namespace of the consumer, and
/// the consumer binds it under the same name.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "APIServiceExport",
    plural = "apiserviceexports",
    namespaced,
    status = "APIServiceExportStatus",
    derive = "PartialEq",
    category = "kube-bindings",
    printcolumn(
        name = "Established",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Established\")].status",
        priority = 5
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct APIServiceExportSpec {
    /// The APIs.
    #[schemars(length(min = 1))]
    #[x_kube(validation = "self == oldSelf")]
    pub resources: Vec<Resource>,
    /// What goes along with their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(validation = "self == oldSelf")]
    pub permission_claims: Vec<PermissionClaim>,
    /// How much of the provider is watched.
    #[x_kube(validation = "self == oldSelf")]
    pub informer_scope: InformerScope,
    /// How objects of consumers are kept apart.
    #[x_kube(validation = "self == oldSelf")]
    pub isolation: Isolation,
    /// Not used any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = "self == oldSelf")]
    pub cluster_scoped_isolation: Option<Isolation>,
}

/// How it stands with an APIServiceExport.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct APIServiceExportStatus {
    /// `Connected` and `ConsumerInSync`, which the consumer writes, and `ProviderInSync`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// APIServiceExportRequest asks a provider for APIs. The consumer writes it into its cluster namespace.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "APIServiceExportRequest",
    plural = "apiserviceexportrequests",
    namespaced,
    status = "APIServiceExportRequestStatus",
    derive = "PartialEq",
    category = "kube-bindings",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct APIServiceExportRequestSpec {
    /// Whatever the provider wants to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::preserved_object")]
    #[x_kube(validation = "self == oldSelf")]
    pub parameters: Option<JSON>,
    /// The APIs.
    #[schemars(length(min = 1))]
    #[x_kube(validation = "self == oldSelf")]
    pub resources: Vec<Resource>,
    /// What goes along with their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(validation = "self == oldSelf")]
    pub permission_claims: Vec<PermissionClaim>,
    /// Namespaces of the consumer that are to be there from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(validation = "self == oldSelf")]
    pub namespaces: Vec<NamespaceName>,
    /// Whether schemas follow those of the provider.
    #[serde(default)]
    #[x_kube(validation = "self == oldSelf")]
    pub schema_update_policy: SchemaUpdatePolicy,
}

/// What became of an APIServiceExportRequest.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIServiceExportRequestStatus {
    /// How far it is.
    #[serde(default)]
    pub phase: Phase,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_message: Option<String>,
    /// `ExportsReady`, `PermissionClaim` and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How far a request is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum Phase {
    /// It is looked at.
    #[default]
    Pending,
    /// It will not be granted.
    Failed,
    /// It was granted.
    Succeeded,
}

/// APIServiceNamespace says that a consumer has objects in a Namespace, called as it is. The provider says which of its own Namespaces
/// their copies are in.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "APIServiceNamespace",
    plural = "apiservicenamespaces",
    namespaced,
    status = "APIServiceNamespaceStatus",
    derive = "PartialEq",
    category = "kube-bindings",
    printcolumn(name = "Namespace", type_ = "string", json_path = ".status.namespace"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct APIServiceNamespaceSpec {}

/// Which Namespace it is at the provider.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct APIServiceNamespaceStatus {
    /// Its name; none while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Why there is none (Freeport).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
