//! The CustomResourceDefinitions, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::{
    announce::MemberClusterAnnounce,
    cluster_set::ClusterSet,
    mcs::{ServiceExport, ServiceImport},
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};

/// CRDs a leader's cluster needs.
pub fn leader() -> Vec<CustomResourceDefinition> {
    vec![
        ClusterSet::crd(),
        MemberClusterAnnounce::crd(),
        ResourceExport::crd(),
        ResourceImport::crd(),
    ]
}

/// CRDs a member's cluster needs.
pub fn member() -> Vec<CustomResourceDefinition> {
    vec![
        ClusterSet::crd(),
        beta_too(ServiceExport::crd()),
        beta_too(ServiceImport::crd()),
    ]
}

/// Serves `v1beta1` beside `v1alpha1` with the same schema, and stores it, as the MCS API does since its v0.5.
fn beta_too(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    if let Some(mut beta) = crd.spec.versions.first().cloned() {
        beta.name = "v1beta1".into();
        for alpha in &mut crd.spec.versions {
            alpha.storage = false;
        }
        crd.spec.versions.push(beta);
    }
    crd
}

/// An object whose fields are not ours to describe: kept as it is.
pub(crate) fn preserved_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
