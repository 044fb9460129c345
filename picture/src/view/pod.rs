//! Pods of daemons.

use api::view::{Lenient, lean};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod, PodStatus};
use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;

/// A Pod of a daemon.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Pod)]
pub struct PodView {
    /// Without annotations.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// Its state.
    #[serde(default)]
    pub status: Lenient<PodStatus>,
}

/// Reasons of a container that waits for an image it will not get.
const NO_IMAGE: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"];

impl PodView {
    /// What its container waits for, or how it ended last: reason and message.
    pub fn state(&self) -> Option<(String, String)> {
        let status = self.status.0.as_ref().ok()?;
        let state =
            status.container_statuses.iter().flatten().find_map(|container| container.state.clone())?;
        let (reason, message) = match (state.waiting, state.terminated) {
            (Some(waiting), _) => (waiting.reason, waiting.message),
            (None, Some(ended)) => (ended.reason, ended.message),
            (None, None) => return None,
        };
        Some((reason.unwrap_or_default(), message.unwrap_or_default()))
    }

    /// How often its containers were restarted, and how the one that was restarted most ended last.
    pub fn restarts(&self) -> Option<(i32, Option<ContainerStateTerminated>)> {
        let status = self.status.0.as_ref().ok()?;
        let most =
            status.container_statuses.iter().flatten().max_by_key(|container| container.restart_count)?;
        let last = most.last_state.as_ref().and_then(|last| last.terminated.clone());
        Some((most.restart_count, last))
    }

    /// Whether its image cannot be pulled.
    pub fn lacks_image(&self) -> bool {
        self.state().is_some_and(|(reason, _)| NO_IMAGE.contains(&reason.as_str()))
    }
}
