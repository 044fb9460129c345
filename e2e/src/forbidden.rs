//! What an administrator forbids, by a policy of the API server: a write that is refused for what it says.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Forbids what `spec` of a policy says. The API server takes a moment to know it.
pub async fn forbid(cluster: &Cluster, name: &str, spec: Value) {
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let _: ValidatingAdmissionPolicy = cluster.create_cluster_wide(policy).await;
    let binding =
        json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    let _: ValidatingAdmissionPolicyBinding = cluster.create_cluster_wide(binding).await;
}

/// Takes that back. It holds for a moment longer.
pub async fn permit(cluster: &Cluster, name: &str) {
    let delete = DeleteParams::default();
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(cluster.client.clone());
    drop(bindings.delete(name, &delete).await.unwrap());
    let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client.clone());
    drop(policies.delete(name, &delete).await.unwrap());
}
