//! `APIServiceBinding` and `APIServiceBindingBundle`: a consumer uses what a provider lets it use. `ClusterBinding`: a contract, as both
//! sides see it.

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON, apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    condition::Condition,
    duration::GoDuration,
    offer::ConditionsStatus,
    resource::{ClusterSecretKey, PermissionClaim, SecretKey},
};

/// APIServiceBinding installs the APIs of the APIServiceExport of its name, and keeps their objects in step with the provider.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "APIServiceBinding",
    plural = "apiservicebindings",
    status = "APIServiceBindingStatus",
    derive = "PartialEq",
    shortname = "sb",
    category = "kube-bindings",
    printcolumn(name = "Provider", type_ = "string", json_path = ".status.providerPrettyName"),
    printcolumn(
        name = "Resources",
        type_ = "string",
        json_path = ".metadata.annotations.kube-bind\\.io/resources"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct APIServiceBindingSpec {
    /// The credential of the contract.
    #[x_kube(validation = "self == oldSelf")]
    pub kubeconfig_secret_ref: ClusterSecretKey,
}

/// How it stands with an APIServiceBinding.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIServiceBindingStatus {
    /// What people call the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_pretty_name: Option<String>,
    /// The APIs that were bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub bound_schemas: Vec<BoundSchemaReference>,
    /// What goes along with their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permission_claims: Vec<PermissionClaim>,
    /// `SecretValid`, `InformersSynced`, `Heartbeating`, `Connected`, `SchemaInSync` and `Ready`; `Synced` is Freeport's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A BoundSchema, by its API.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct BoundSchemaReference {
    /// Group of the API; empty for Kubernetes' own.
    #[serde(default)]
    #[schemars(regex(pattern = r"^(|[a-z0-9]([-a-z0-9]*[a-z0-9](\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)$"))]
    pub group: String,
    /// Plural name of the resource.
    #[schemars(regex(pattern = r"^[a-z][-a-z0-9]*[a-z0-9]$"))]
    pub resource: String,
}

/// APIServiceBindingBundle binds all that a contract lets a consumer use.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "APIServiceBindingBundle",
    plural = "apiservicebindingbundles",
    status = "ConditionsStatus",
    derive = "PartialEq",
    shortname = "sbb",
    category = "kube-bindings",
    printcolumn(name = "Provider", type_ = "string", json_path = ".status.providerPrettyName"),
    printcolumn(
        name = "Resources",
        type_ = "string",
        json_path = ".metadata.annotations.kube-bind\\.io/resources"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct APIServiceBindingBundleSpec {
    /// The credential of the contract.
    #[x_kube(validation = "self == oldSelf")]
    pub kubeconfig_secret_ref: ClusterSecretKey,
}

/// ClusterBinding is a contract. There is one in a cluster namespace, called `cluster`.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "ClusterBinding",
    plural = "clusterbindings",
    namespaced,
    status = "ClusterBindingStatus",
    derive = "PartialEq",
    category = "kube-bindings",
    validation = Rule::new("self.metadata.name == \"cluster\"").message("cluster binding name should be cluster"),
    printcolumn(name = "Konnector Version", type_ = "string", json_path = ".status.konnectorVersion"),
    printcolumn(name = "Last Heartbeat", type_ = "date", json_path = ".status.lastHeartbeatTime"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBindingSpec {
    /// The credential of the contract, in the cluster namespace.
    #[x_kube(validation = "self == oldSelf")]
    pub kubeconfig_secret_ref: SecretKey,
    /// What people call the provider.
    #[schemars(length(min = 1))]
    pub provider_pretty_name: String,
    /// Whatever the provider wants to note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::preserved_object")]
    pub service_provider_spec: Option<JSON>,
}

/// What the consumer says of a contract.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBindingStatus {
    /// When the konnector was heard last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,
    /// Within which time it will be heard again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_interval: Option<GoDuration>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub konnector_version: Option<String>,
    /// The Secret with the credential at the consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_secret_ref: Option<SecretName>,
    /// `SecretValid`, `ValidVersion`, `Healthy` and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A Secret.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct SecretName {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its Namespace.
    #[schemars(length(min = 1))]
    pub namespace: String,
}
