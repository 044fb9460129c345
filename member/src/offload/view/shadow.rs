//! Pods of other clusters that run here: what their homes ask for, and the Pods that are there.

use api::{
    label as general,
    offload::{
        label,
        pod_status::PodState,
        requests::Requests,
        shadow_pod::{ShadowPod, ShadowPodSpec, ShadowPodStatus},
    },
    view::{Lenient, is_written_by, lean, ours_annotated, unlabelled},
};
use k8s_openapi::api::{core::v1 as core, rbac::v1 as rbac};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A ShadowPod whose destination we are.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = ShadowPod)]
pub(crate) struct PeerPod {
    #[serde(deserialize_with = "unlabelled")]
    pub(crate) metadata: ObjectMeta,
    /// What the home wants.
    #[serde(default)]
    pub(crate) spec: Lenient<Option<ShadowPodSpec>>,
    /// What we say.
    #[serde(default)]
    pub(crate) status: Lenient<ShadowPodStatus>,
    /// Whether `spec.sealed` is here.
    #[serde(skip)]
    content: Content,
}

/// Whether what a record is made of is kept. No API server says so: we decide it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Content {
    /// As it was read.
    #[default]
    Kept,
    /// There is no room for it.
    Over,
    /// There is room now: it has to be read again.
    Due,
}

impl PeerPod {
    /// The same, without what it is made of.
    pub(crate) fn without_content(mut self) -> Self {
        if let Ok(Some(spec)) = &mut self.spec.0 {
            spec.sealed = String::new();
        }
        self.content = Content::Over;
        self
    }

    /// There is room now for what it is made of.
    pub(crate) fn make_due(&mut self) {
        self.content = Content::Due;
    }

    /// Whether there is no room for what it is made of.
    pub(crate) fn is_over(&self) -> bool {
        self.content == Content::Over
    }

    /// Whether it has to be read again.
    pub(crate) fn is_due(&self) -> bool {
        self.content == Content::Due
    }

    /// Whether its Pod has finished, as this cluster has said.
    pub(crate) fn has_finished(&self) -> bool {
        self.status.0.as_ref().is_ok_and(|said| said.pod.as_ref().is_some_and(PodState::is_final))
    }

    /// What the home wants, as far as it decodes and is named as what it says.
    pub(crate) fn asked(&self) -> Option<&ShadowPodSpec> {
        self.spec.0.as_ref().ok()?.as_ref().filter(|spec| spec.name() == self.name_any())
    }
}

/// A Pod here that was made for a ShadowPod.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Pod)]
pub(crate) struct HostedPod {
    /// Labels say for which, annotations which of both are of the home.
    #[serde(deserialize_with = "ours_annotated")]
    pub(crate) metadata: ObjectMeta,
    /// What it requests.
    #[serde(default, rename = "spec", skip_serializing, deserialize_with = "requests")]
    pub(crate) requests: Requests,
    /// How it is.
    #[serde(default, skip_serializing, deserialize_with = "state")]
    pub(crate) status: PodState,
}

impl HostedPod {
    /// Whether it is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it says for which ShadowPod it was made.
    pub(crate) fn is_labelled(&self) -> bool {
        self.labels().contains_key(label::ORIGIN_UID)
    }

    /// Reports whether this member wrote it.
    pub(crate) fn is_made_here(&self) -> bool {
        is_written_by(&self.metadata, general::MEMBER)
    }

    /// Whether it was made for this ShadowPod, given that its Namespace is a twin of that home. Somebody may have
    /// taken labels off; then what we once wrote is this one.
    pub(crate) fn is_of(&self, spec: &ShadowPodSpec) -> bool {
        match self.labels().get(label::ORIGIN_UID) {
            Some(uid) => {
                *uid == spec.uid && self.labels().get(label::ORIGIN).is_none_or(|home| *home == spec.origin)
            }
            None => is_written_by(&self.metadata, general::MEMBER),
        }
    }
}

/// A Pod to be made. Of the answer no more is kept than of any other.
#[derive(Resource, Clone, Debug, Serialize, Deserialize)]
#[resource(inherit = core::Pod)]
pub(crate) struct NewPod {
    #[serde(deserialize_with = "ours_annotated")]
    pub(crate) metadata: ObjectMeta,
    /// As it is on the wire: fields that we do not know are for the API server.
    pub(crate) spec: Value,
    #[serde(default, skip_serializing, deserialize_with = "state")]
    status: PodState,
}

impl From<NewPod> for HostedPod {
    fn from(made: NewPod) -> Self {
        Self { metadata: made.metadata, requests: Requests::of_pod(&made.spec), status: made.status }
    }
}

fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PodState, D::Error> {
    let status = Lenient::<Value>::deserialize(deserializer)?;
    Ok(PodState::of(&status.0.unwrap_or_default()))
}

fn requests<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Requests, D::Error> {
    let spec = Lenient::<Value>::deserialize(deserializer)?;
    Ok(Requests::of_pod(&spec.0.unwrap_or_default()))
}

/// What lets this member make Pods in a twin.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = rbac::RoleBinding)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TwinBinding {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// The ClusterRole.
    #[serde(default)]
    pub(crate) role_ref: Value,
    /// Who has it.
    #[serde(default)]
    pub(crate) subjects: Value,
}

/// The ServiceAccount of a Namespace that Pods run as which name none: Pods can be made when it is there.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = core::ServiceAccount)]
pub(crate) struct TwinAccount {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
}
