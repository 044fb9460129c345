//! `BoundSchema`: a CRD that travels as data.

use k8s_openapi::{
    ByteString,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceColumnDefinition, CustomResourceDefinitionNames, CustomResourceSubresources, JSON,
    },
};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{condition::Condition, resource::InformerScope};

/// BoundSchema is the CRD of a bound API, as it is to be at the consumer. The provider writes it into the cluster namespace.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kube-bind.io",
    version = "v1alpha2",
    kind = "BoundSchema",
    plural = "boundschemas",
    namespaced,
    status = "BoundSchemaStatus",
    derive = "PartialEq",
    shortname = "bs",
    category = "kube-bindings",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BoundSchemaSpec {
    /// How much of the provider is watched.
    pub informer_scope: InformerScope,
    /// Group of the API.
    pub group: String,
    /// Names of the API.
    pub names: CustomResourceDefinitionNames,
    /// Scope of the API at the consumer.
    pub scope: InformerScope,
    /// Versions of the API.
    #[schemars(length(min = 1))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub versions: Vec<BoundVersion>,
    /// How objects are converted between versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
}

/// A version of a bound API.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundVersion {
    /// Its name.
    #[schemars(regex(pattern = r"^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$"))]
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether it will go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// What is said to who uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation_warning: Option<String>,
    /// Its schema: `openAPIV3Schema` with the schema in it, or the schema itself.
    #[schemars(schema_with = "any_schema")]
    pub schema: JSON,
    /// Its subresources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresources: Option<CustomResourceSubresources>,
    /// Columns of `kubectl get`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub additional_printer_columns: Vec<CustomResourceColumnDefinition>,
}

/// How objects are converted between versions.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[x_kube(validation = Rule::new("(self.strategy == 'Webhook') == has(self.webhook)").message("a webhook if and only if the strategy is Webhook"))]
pub struct Conversion {
    /// By whom.
    pub strategy: ConversionStrategy,
    /// The webhook, if that is the strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<ConversionWebhook>,
}

/// Who converts objects between versions.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum ConversionStrategy {
    /// Nobody.
    #[default]
    None,
    /// A webhook.
    Webhook,
}

/// A webhook that converts objects.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversionWebhook {
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_config: Option<ConversionClient>,
    /// Versions of the question that it understands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversion_review_versions: Vec<String>,
}

/// Where a webhook is, whichever cluster asks it: a Service would be one of the consumer's.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversionClient {
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Authorities of it, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "byte"))]
    pub ca_bundle: Option<ByteString>,
}

/// What became of a BoundSchema at the consumer.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundSchemaStatus {
    /// Names that the API has there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_names: Option<CustomResourceDefinitionNames>,
    /// Versions in which objects are stored there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_versions: Option<Vec<String>>,
    /// Those of the CRD there, and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

fn any_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-map-type": "atomic",
    })
}
