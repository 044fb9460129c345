//! Pods that are bound to a virtual node, and their records.

use api::{
    offload::shadow_pod::{ShadowPod, ShadowPodSpec, ShadowPodStatus},
    view::{Lenient, annotated, lean},
};
use k8s_openapi::api::core::v1 as core;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A Pod that is bound to a virtual node, as its API server has it: what travels of it is decided on the raw JSON.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = core::Pod)]
pub(crate) struct BoundPod {
    #[serde(deserialize_with = "annotated")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Lenient<Value>,
    #[serde(default)]
    pub(crate) status: Lenient<Value>,
}

impl BoundPod {
    /// Whether it is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What travels is part of this. None where it cannot be read.
    pub(crate) fn content(&self) -> Result<Value, &str> {
        let spec = self.spec.0.as_ref().map_err(String::as_str)?;
        let metadata = json!({"labels": self.labels(), "annotations": self.annotations()});
        Ok(json!({"metadata": metadata, "spec": spec}))
    }

    /// Its status, as it is on the wire; nothing of one that cannot be read.
    pub(crate) fn said(&self) -> &Value {
        self.status.0.as_ref().unwrap_or(&Value::Null)
    }
}

/// A ShadowPod whose origin we are.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ShadowPod)]
pub(crate) struct OwnShadowPod {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What we want.
    #[serde(default)]
    pub(crate) spec: Lenient<Option<ShadowPodSpec>>,
    /// What the host says.
    #[serde(default, skip_serializing)]
    pub(crate) status: Lenient<ShadowPodStatus>,
}

impl OwnShadowPod {
    /// What we want, as far as it decodes and is named as what it says.
    pub(crate) fn wanted(&self) -> Option<&ShadowPodSpec> {
        self.spec.0.as_ref().ok()?.as_ref().filter(|spec| spec.name() == self.name_any())
    }

    /// What the host says, as far as it decodes.
    pub(crate) fn said(&self) -> Option<&ShadowPodStatus> {
        self.status.0.as_ref().ok()
    }

    /// Whether the host says that it has deleted the Pod as it was told.
    pub(crate) fn is_done(&self) -> bool {
        self.wanted().is_some_and(|spec| spec.deletion.is_some())
            && self.said().is_some_and(|said| said.deleted)
    }
}
