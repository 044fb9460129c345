//! The CustomResourceDefinitions, generated from the types.

pub mod bind;
mod bounds;
mod installed;
mod lacks;
pub mod offload;
mod version;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use self::bounds::{bounded, bounded_with_status};
pub use self::{
    installed::{Installed, Version},
    lacks::lacks,
    version::SchemaVersion,
};
use crate::{
    about::ClusterProperty,
    announce::MemberClusterAnnounce,
    cluster_claim::ClusterClaim,
    cluster_set::ClusterSet,
    mcs::{ServiceExport, ServiceImport},
    report::ClusterReport,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};

/// CRDs a leader's cluster needs.
pub fn leader() -> Vec<CustomResourceDefinition> {
    [
        ClusterSet::crd(),
        ClusterClaim::crd(),
        bounded(MemberClusterAnnounce::crd()),
        bounded(ResourceExport::crd()),
        ResourceImport::crd(),
        bounded_with_status(ClusterReport::crd()),
    ]
    .map(plain)
    .into()
}

/// CRDs of all that clusters exchange, whatever the features that are in use.
pub fn records() -> Vec<CustomResourceDefinition> {
    leader().into_iter().chain(offload::leader()).collect()
}

/// CRDs of all that users of a member's cluster write and read, whatever the features that are in use.
pub fn local() -> Vec<CustomResourceDefinition> {
    member().into_iter().chain(offload::member()).collect()
}

/// CRDs a member's cluster needs.
pub fn member() -> Vec<CustomResourceDefinition> {
    [
        ClusterSet::crd(),
        ClusterClaim::crd(),
        of_release(ServiceExport::crd()),
        of_release(ServiceImport::crd()),
        approved(with_beta(ClusterProperty::crd())),
    ]
    .map(plain)
    .into()
}

/// Without what our Rust types bring along and upstream's schemas do not have. A default in particular would put words into the mouth
/// of whoever left a field out.
fn plain(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    described(crd, |schema| {
        schema.default = None;
        schema.nullable = None;
    })
}

/// Upstream's schemas do not demand a `spec`, and a ServiceExport usually has none. `kubectl explain` begins with what the
/// kind is for, which the derive leaves on `spec`. Every schema inside is changed by `change`.
fn described(
    mut crd: CustomResourceDefinition,
    change: fn(&mut JSONSchemaProps),
) -> CustomResourceDefinition {
    for schema in schemas(&mut crd) {
        throughout(schema, change);
        let about = schema.properties.as_ref().and_then(|p| p.get("spec")?.description.clone());
        schema.description = about.or(schema.description.take());
        let required = schema.required.take().unwrap_or_default();
        schema.required = Some(required.into_iter().filter(|field| field != "spec").collect())
            .filter(|r: &Vec<_>| !r.is_empty());
    }
    crd
}

/// The schema of each version.
fn schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let versions = crd.spec.versions.iter_mut();
    versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
}

fn throughout(schema: &mut JSONSchemaProps, change: fn(&mut JSONSchemaProps)) {
    change(schema);
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(|inner| throughout(inner, change));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        throughout(items, change);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        throughout(values, change);
    }
}

/// Annotation without which an API server takes no CRD of a group of Kubernetes' own, and where this one was approved.
const APPROVED: (&str, &str) =
    ("api-approved.kubernetes.io", "https://github.com/kubernetes/enhancements/pull/3084");

fn approved(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let (key, place) = APPROVED;
    crd.metadata.annotations.get_or_insert_default().insert(key.into(), place.into());
    crd
}

/// As the release of the MCS API it is of: labelled with its version.
fn of_release(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.metadata.labels.get_or_insert_default().extend(version::labels());
    with_beta(crd)
}

/// Serves `v1beta1` beside `v1alpha1` with the same schema, and stores it.
fn with_beta(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    if let Some(mut beta) = crd.spec.versions.first().cloned() {
        beta.name = "v1beta1".into();
        for alpha in &mut crd.spec.versions {
            alpha.storage = false;
        }
        crd.spec.versions.push(beta);
    }
    crd
}
