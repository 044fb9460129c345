//! A CRD as a [`BoundSchema`](super::bound_schema), and back: pure.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceValidation, JSON,
    JSONSchemaProps, WebhookClientConfig, WebhookConversion,
};
use kube::core::{ApiResource, ObjectMeta};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{
    bound_schema::{
        BoundSchemaSpec, BoundVersion, Conversion, ConversionClient, ConversionStrategy, ConversionWebhook,
    },
    resource::{CORE, InformerScope, Isolation},
};

/// Why a CRD cannot be carried to a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotCarried {
    /// The webhook would be looked for in the cluster of the consumer.
    #[error("its objects are converted by a webhook that is a Service of the provider's cluster")]
    ConversionByService,
    /// No structural schema says so.
    #[error("it sets preserveUnknownFields, which a BoundSchema cannot express")]
    PreservesUnknownFields,
    /// Objects without a Namespace cannot be in one.
    #[error("it is cluster-scoped, and isolation Namespaced keeps objects in a Namespace")]
    ClusterScoped,
    /// A BoundSchema takes only names of Kubernetes' form.
    #[error("a BoundSchema cannot have version {0}, only versions such as v1 or v1alpha1")]
    Version(String),
    /// No schema, or none that decodes.
    #[error("the schema of version {0} cannot be read")]
    Schema(String),
}

/// A CRD of the provider as it is to be at a consumer, and what of it is left out.
///
/// # Errors
/// [`NotCarried`] where that would be another API.
pub fn bound(
    crd: &CustomResourceDefinitionSpec,
    isolation: Isolation,
    informer_scope: InformerScope,
) -> Result<(BoundSchemaSpec, Vec<String>), NotCarried> {
    if crd.preserve_unknown_fields == Some(true) {
        return Err(NotCarried::PreservesUnknownFields);
    }
    let scope = match (crd.scope.as_str(), isolation) {
        ("Namespaced", Isolation::Namespaced) => InformerScope::Cluster,
        ("Namespaced", _) => InformerScope::Namespaced,
        (_, Isolation::Namespaced) => return Err(NotCarried::ClusterScoped),
        _ => InformerScope::Cluster,
    };
    let versions: Result<Vec<_>, _> = crd.versions.iter().map(version).collect();
    let selects = crd.versions.iter().filter(|version| version.selectable_fields.is_some());
    let left_out = selects.map(|version| format!("selectableFields of version {}", version.name)).collect();
    let schema = BoundSchemaSpec {
        informer_scope,
        group: crd.group.clone(),
        names: crd.names.clone(),
        scope,
        versions: versions?,
        conversion: crd.conversion.as_ref().map(conversion).transpose()?,
    };
    Ok((schema, left_out))
}

fn version(of: &CustomResourceDefinitionVersion) -> Result<BoundVersion, NotCarried> {
    if !is_version(&of.name) {
        return Err(NotCarried::Version(of.name.clone()));
    }
    let schema = of.schema.as_ref().map(|schema| json!(schema));
    Ok(BoundVersion {
        name: of.name.clone(),
        served: of.served,
        storage: of.storage,
        deprecated: of.deprecated,
        deprecation_warning: of.deprecation_warning.clone(),
        schema: JSON(schema.ok_or_else(|| NotCarried::Schema(of.name.clone()))?),
        subresources: of.subresources.clone(),
        additional_printer_columns: of.additional_printer_columns.clone().unwrap_or_default(),
    })
}

/// As in the pattern of [`BoundVersion::name`]: `v1`, `v1alpha1`.
fn is_version(name: &str) -> bool {
    let is_number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit())
            && text.bytes().next().is_some_and(|first| first != b'0')
    };
    let Some(rest) = name.strip_prefix('v') else { return false };
    let Some(at) = rest.find(|char: char| char.is_ascii_lowercase()) else { return is_number(rest) };
    let (major, stage) = rest.split_at(at);
    is_number(major) && is_number(stage.trim_start_matches(|char: char| char.is_ascii_lowercase()))
}

fn conversion(of: &CustomResourceConversion) -> Result<Conversion, NotCarried> {
    let webhook = of.webhook.as_ref().map(|webhook| {
        let client = webhook.client_config.as_ref();
        match client.is_some_and(|client| client.service.is_some()) {
            true => Err(NotCarried::ConversionByService),
            false => {
                let client_config = client
                    .cloned()
                    .map(|client| ConversionClient { url: client.url, ca_bundle: client.ca_bundle });
                let versions = webhook.conversion_review_versions.clone();
                Ok(ConversionWebhook { client_config, conversion_review_versions: versions })
            }
        }
    });
    let strategy = match of.strategy.as_str() {
        "Webhook" => ConversionStrategy::Webhook,
        _ => ConversionStrategy::None,
    };
    Ok(Conversion { strategy, webhook: webhook.transpose()? })
}

/// The CRD that a BoundSchema stands for, without an owner.
///
/// # Errors
/// [`NotCarried::Schema`] where a schema decodes in neither of the forms in which providers write it.
pub fn installed(schema: &BoundSchemaSpec) -> Result<CustomResourceDefinition, NotCarried> {
    let versions: Result<Vec<_>, _> = schema.versions.iter().map(installed_version).collect();
    let group = if schema.group.is_empty() { CORE } else { &schema.group };
    let metadata =
        ObjectMeta { name: Some(format!("{}.{group}", schema.names.plural)), ..ObjectMeta::default() };
    let spec = CustomResourceDefinitionSpec {
        group: schema.group.clone(),
        names: schema.names.clone(),
        scope: match schema.scope {
            InformerScope::Cluster => "Cluster".into(),
            InformerScope::Namespaced => "Namespaced".into(),
        },
        versions: versions?,
        conversion: schema.conversion.as_ref().map(|conversion| CustomResourceConversion {
            strategy: match conversion.strategy {
                ConversionStrategy::None => "None".to_owned(),
                ConversionStrategy::Webhook => "Webhook".to_owned(),
            },
            webhook: conversion.webhook.as_ref().map(|webhook| WebhookConversion {
                client_config: webhook.client_config.clone().map(|client| WebhookClientConfig {
                    url: client.url,
                    ca_bundle: client.ca_bundle,
                    service: None,
                }),
                conversion_review_versions: webhook.conversion_review_versions.clone(),
            }),
        }),
        preserve_unknown_fields: None,
    };
    Ok(CustomResourceDefinition { metadata, spec, status: None })
}

fn installed_version(of: &BoundVersion) -> Result<CustomResourceDefinitionVersion, NotCarried> {
    let columns = of.additional_printer_columns.clone();
    Ok(CustomResourceDefinitionVersion {
        name: of.name.clone(),
        served: of.served,
        storage: of.storage,
        deprecated: of.deprecated,
        deprecation_warning: of.deprecation_warning.clone(),
        schema: Some(validation(&of.schema.0).ok_or_else(|| NotCarried::Schema(of.name.clone()))?),
        subresources: Some(of.subresources.clone().unwrap_or_default()),
        additional_printer_columns: Some(columns).filter(|columns| !columns.is_empty()),
        selectable_fields: None,
    })
}

/// Providers write `openAPIV3Schema` with the schema in it, or the schema itself.
fn validation(schema: &Value) -> Option<CustomResourceValidation> {
    let inner = schema.get("openAPIV3Schema").unwrap_or(schema);
    let schema: JSONSchemaProps = serde_json::from_value(inner.clone()).ok()?;
    // An object of no form decodes as an empty schema.
    schema.type_.as_ref()?;
    Some(CustomResourceValidation { open_api_v3_schema: Some(schema) })
}

/// An API in the version in which its objects are kept in step: the first one that is served, of `versions` with whether they are.
pub fn synced<'a>(
    group: &str,
    names: &CustomResourceDefinitionNames,
    versions: impl IntoIterator<Item = (&'a str, bool)>,
) -> Option<ApiResource> {
    let (version, _) = versions.into_iter().find(|(_, is_served)| *is_served)?;
    Some(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
    })
}

/// Another one when a schema is.
pub fn hash<'a>(schemas: impl IntoIterator<Item = &'a BoundSchemaSpec>) -> String {
    let mut hasher = Sha256::new();
    for schema in schemas {
        hasher.update(json!(schema).to_string());
        hasher.update("\n");
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
