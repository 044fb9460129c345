//! The CustomResourceDefinitions, generated from the types.

mod bounds;
mod lacks;
mod version;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use self::bounds::bounded;
pub use self::{lacks::lacks, version::SchemaVersion};
use crate::{
    announce::MemberClusterAnnounce,
    cluster_claim::ClusterClaim,
    cluster_set::ClusterSet,
    mcs::{ServiceExport, ServiceImport},
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
    ]
    .map(described)
    .into()
}

/// CRDs a member's cluster needs.
pub fn member() -> Vec<CustomResourceDefinition> {
    [
        ClusterSet::crd(),
        ClusterClaim::crd(),
        of_release(ServiceExport::crd()),
        of_release(ServiceImport::crd()),
    ]
    .map(described)
    .into()
}

/// Upstream's schemas do not demand a `spec`, and a ServiceExport usually has none. `kubectl explain` begins with what the
/// kind is for, which the derive leaves on `spec`.
fn described(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas = crd
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for schema in schemas {
        plain(schema);
        let about = schema.properties.as_ref().and_then(|p| p.get("spec")?.description.clone());
        schema.description = about.or(schema.description.take());
        let required = schema.required.take().unwrap_or_default();
        schema.required = Some(required.into_iter().filter(|field| field != "spec").collect())
            .filter(|r: &Vec<_>| !r.is_empty());
    }
    crd
}

/// Takes out what our Rust types bring along and upstream's schemas do not have. A default in particular would put words
/// into the mouth of whoever left a field out.
fn plain(schema: &mut JSONSchemaProps) {
    schema.default = None;
    schema.nullable = None;
    schema.properties.iter_mut().flat_map(BTreeMap::values_mut).for_each(plain);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        plain(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        plain(values);
    }
}

/// As the release of the MCS API it is of: labelled with its version; serves `v1beta1` beside `v1alpha1` with the same schema, and
/// stores it.
fn of_release(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.metadata.labels.get_or_insert_default().extend(version::labels());
    if let Some(mut beta) = crd.spec.versions.first().cloned() {
        beta.name = "v1beta1".into();
        for alpha in &mut crd.spec.versions {
            alpha.storage = false;
        }
        crd.spec.versions.push(beta);
    }
    crd
}
