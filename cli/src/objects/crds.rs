//! CustomResourceDefinitions, labelled so that an upgrade knows them from those somebody else installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{Object, ours};

/// CRDs of a cluster that leads.
pub fn leader() -> Vec<Object> {
    labelled(api::crd::leader())
}

/// CRDs of a cluster that is a member.
pub fn member() -> Vec<Object> {
    labelled(api::crd::member())
}

pub(super) fn labelled(crds: Vec<CustomResourceDefinition>) -> Vec<Object> {
    crds.into_iter()
        .map(|mut crd| {
            crd.metadata.labels.get_or_insert_default().extend(ours());
            Object::new(&crd)
        })
        .collect()
}
