//! What lets this member make Pods in a twin: pure.

use api::{
    label as general,
    offload::twin::{BINDING, POD_ROLE},
};
use kube::api::ObjectMeta;
use serde_json::json;

use crate::offload::view::TwinBinding;

/// The RoleBinding of a twin, for the account of the member in Namespace `system`.
pub(super) fn wanted(twin: &str, system: &str) -> TwinBinding {
    TwinBinding {
        metadata: ObjectMeta {
            name: Some(BINDING.to_owned()),
            namespace: Some(twin.to_owned()),
            labels: Some([(general::MANAGED_BY.to_owned(), general::FREEPORT.to_owned())].into()),
            ..ObjectMeta::default()
        },
        role_ref: json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": POD_ROLE}),
        subjects: json!([{"kind": "ServiceAccount", "name": general::MEMBER, "namespace": system}]),
    }
}
