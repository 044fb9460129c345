//! Writes, as daemons make them.

use e2e::cluster::Cluster;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::Value;

const MANAGER: &str = "floor";

/// Objects of a kind in a Namespace.
#[derive(Clone)]
pub(super) struct Objects(pub(super) Api<DynamicObject>);

impl Objects {
    pub(super) fn of<K>(cluster: &Cluster, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Self(Api::namespaced_with(cluster.client.clone(), namespace, &ApiResource::erase::<K>(&())))
    }

    pub(super) async fn create(&self, object: &Value) -> DynamicObject {
        let object = serde_json::from_value(object.clone()).unwrap();
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        self.0.create(&params, &object).await.unwrap()
    }

    pub(super) async fn patch(&self, object: &Value, patch: &Value) {
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.0.patch(name(object), &params, &Patch::Merge(patch)).await.unwrap();
    }

    pub(super) async fn apply_status(&self, object: &Value) {
        let params = PatchParams::apply(MANAGER).force();
        self.0.patch_status(name(object), &params, &Patch::Apply(object)).await.unwrap();
    }

    pub(super) async fn delete(&self, object: &Value) {
        self.0.delete(name(object), &DeleteParams::default()).await.unwrap();
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}
