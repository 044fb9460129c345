//! Pods that are bound to a virtual node, and their records.

use api::{
    offload::{
        pod_status::PodState,
        shadow_pod::{SEALED_MAX, ShadowPod, ShadowPodSpec, ShadowPodStatus},
        travel::{CannotTravel, read_spec},
    },
    view::{Lenient, Measured, QUOTE_MAX, annotated, lean, shortened},
};
use k8s_openapi::api::core::v1 as core;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json, value::RawValue};

/// Most bytes of what a host says of a Pod, sentences cut. All of a host's statuses are kept, so of one that says more the containers are
/// left out.
const STATUS_MAX: usize = 64 << 10;

/// A Pod that is bound to a virtual node, as its API server has it: what travels of it is decided on the raw JSON.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = core::Pod)]
pub(crate) struct BoundPod {
    #[serde(deserialize_with = "annotated")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Text,
    #[serde(default)]
    pub(crate) status: Measured<Value>,
}

/// JSON as it came, and no more than can travel: whoever may make Pods here may make them of a megabyte, which takes hundreds when it is
/// read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text(Result<Box<str>, usize>);

impl Text {
    /// What it says.
    pub(crate) fn read(&self) -> Result<Value, CannotTravel> {
        read_spec(self.0.as_ref().map_err(|bytes| CannotTravel::Spec(*bytes))?)
    }
}

impl Default for Text {
    fn default() -> Self {
        Self(Ok("null".into()))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let bytes = text.get().len();
        Ok(Self(if bytes > SEALED_MAX { Err(bytes) } else { Ok(text.get().into()) }))
    }
}

impl BoundPod {
    /// Whether it is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What travels is part of this. None where it cannot be read.
    pub(crate) fn content(&self) -> Result<Value, CannotTravel> {
        let spec = self.spec.read()?;
        let metadata = json!({"labels": self.labels(), "annotations": self.annotations()});
        Ok(json!({"metadata": metadata, "spec": spec}))
    }

    /// Its status, as it is on the wire; nothing of one that cannot be read.
    pub(crate) fn said(&self) -> &Value {
        self.status.content.as_ref().unwrap_or(&Value::Null)
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
    /// What the host says: at most [`STATUS_MAX`].
    #[serde(default, skip_serializing, deserialize_with = "bounded")]
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

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Lenient<ShadowPodStatus>, D::Error> {
    let mut status = Lenient::<ShadowPodStatus>::deserialize(deserializer)?;
    let Ok(said) = &mut status.0 else { return Ok(status) };
    said.pod = said.pod.take().map(|pod| pod.bounded());
    for condition in &mut said.conditions {
        condition.message = shortened(std::mem::take(&mut condition.message), QUOTE_MAX);
    }
    let is_too_long =
        |said: &ShadowPodStatus| serde_json::to_vec(said).map_or(usize::MAX, |text| text.len()) > STATUS_MAX;
    if is_too_long(said) {
        said.pod = said.pod.take().map(|pod| PodState {
            container_statuses: vec![],
            init_container_statuses: vec![],
            ..pod
        });
    }
    if is_too_long(said) {
        (said.pod, said.conditions) = (None, vec![]);
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a4_of_a_pod_that_is_too_large_to_travel_nothing_is_kept_but_that() {
        let of = |variables: usize| -> BoundPod {
            let env = format!("[{}{{}}]", r#"{"name":"A"},"#.repeat(variables));
            let pod =
                format!(r#"{{"metadata": {{"name": "p"}}, "spec": {{"containers": [{{"env": {env}}}]}}}}"#);
            serde_json::from_str(&pod).unwrap()
        };
        assert_eq!(of(10).content().unwrap()["spec"]["containers"][0]["env"][9]["name"], "A");
        let large = of(100_000);
        assert!(matches!(large.spec, Text(Err(bytes)) if bytes > 1_000_000));
        assert!(large.content().unwrap_err().to_string().contains("no more than 65536 travel"));
    }

    #[test]
    fn a_host_says_no_more_of_a_pod_than_there_is_room_for() {
        let read = |statuses: usize, words: usize| {
            let terminated = json!({"exitCode": 1, "message": "x".repeat(words)});
            let status = json!({"name": "c", "image": "i".repeat(400), "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": terminated}});
            let said = json!({"pod": {"phase": "Running", "containerStatuses": vec![status; statuses]}});
            let record: OwnShadowPod =
                serde_json::from_value(json!({"metadata": {"name": "s"}, "status": said})).unwrap();
            record.said().and_then(|said| said.pod.clone())
        };
        let said = read(20, 32 << 10).unwrap();
        let terminated = said.container_statuses[7].state.as_ref().unwrap().terminated.as_ref().unwrap();
        assert!(terminated.message.as_ref().unwrap().len() < 2 * QUOTE_MAX);
        let said = read(100, 32 << 10).unwrap();
        assert_eq!((said.phase.as_deref(), said.container_statuses.len()), (Some("Running"), 0));
    }
}
