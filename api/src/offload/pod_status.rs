//! What travels of the status of a Pod: what its host alone knows. Named as in a Pod's `status`, so it can be put there as it is.
//!
//! Times are texts: a host may write some that an API server takes and we cannot hold.

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::address;
use crate::view::{QUOTE_MAX, shortened};

/// Reason of a Pod that failed because its twin is gone, or its host has left.
pub const ABORTED: &str = "OffloadingAborted";

/// Condition of a Pod at home, only ever `False`: this cluster or the host does not let it run there, for this reason.
pub const ACCEPTED: &str = "multicluster.freeport.dev/Accepted";

/// Phases that a Pod can have.
const PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];

/// Phases that a Pod does not leave.
const FINAL: [&str; 2] = ["Succeeded", "Failed"];

/// How a Pod is at its host. Not what belongs to the Pod at home (`qosClass`, `observedGeneration`, resource claims).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodState {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the host took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// As on a Pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PodCondition>,
    /// Of its containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub container_statuses: Vec<ContainerStatus>,
    /// Of its containers that run before the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Its addresses at the host: at most one for each IP family.
    #[serde(rename = "podIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub pod_ips: Vec<PodIp>,
}

impl PodState {
    /// How the Pod with this `status` is. What does not decode is left out, and the rest goes on.
    pub fn of(status: &Value) -> Self {
        let list = |field: &str| status.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |field: &str| status.get(field).and_then(Value::as_str).map(str::to_owned);
        Self {
            phase: text("phase").filter(|phase| PHASES.contains(&phase.as_str())),
            reason: text("reason"),
            message: text("message"),
            start_time: text("startTime"),
            conditions: decoded(list("conditions")),
            container_statuses: decoded(list("containerStatuses")),
            init_container_statuses: decoded(list("initContainerStatuses")),
            pod_ips: decoded(list("podIPs")),
        }
    }

    /// The same without addresses that no Pod of another cluster can have, and why each of those is left out. `services` are the
    /// ranges of this cluster's Services. An API server takes one address of each IP family.
    pub fn with_possible_addresses(mut self, services: &[IpNet]) -> (Self, Vec<String>) {
        let (mut families, mut refused) = (Vec::new(), Vec::new());
        self.pod_ips.retain(|PodIp { ip }| {
            let family = crate::family::of(ip);
            let why = match address::check(ip, services) {
                Ok(()) if families.contains(&family) => format!("{ip} is the second address of {family}"),
                Ok(()) => {
                    families.push(family);
                    return true;
                }
                Err(why) => why,
            };
            refused.push(why);
            false
        });
        (self, refused)
    }

    /// The same with what a cluster may say of its Pods and no more: a phase that there is, and sentences of [`QUOTE_MAX`] bytes.
    pub fn bounded(mut self) -> Self {
        self.phase = self.phase.filter(|phase| PHASES.contains(&phase.as_str()));
        let cut = |message: &mut Option<String>| {
            *message = message.take().map(|message| shortened(message, QUOTE_MAX));
        };
        cut(&mut self.message);
        self.conditions.iter_mut().for_each(|condition| cut(&mut condition.message));
        for status in [&mut self.container_statuses, &mut self.init_container_statuses].into_iter().flatten()
        {
            for state in [&mut status.state, &mut status.last_state].into_iter().flatten() {
                state.waiting.iter_mut().for_each(|waiting| cut(&mut waiting.message));
                state.terminated.iter_mut().for_each(|terminated| cut(&mut terminated.message));
            }
        }
        self
    }

    /// Whether the Pod has finished: it never runs again.
    pub fn is_final(&self) -> bool {
        self.phase.as_deref().is_some_and(|phase| FINAL.contains(&phase))
    }
}

fn decoded<T: DeserializeOwned>(list: &[Value]) -> Vec<T> {
    list.iter().filter_map(|item| T::deserialize(item).ok()).collect()
}

/// A condition of a Pod.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// Which question is answered.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
}

/// An address of a Pod.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(default)]
pub struct PodIp {
    /// The address.
    pub ip: String,
}

/// How a container is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Name of the container.
    pub name: String,
    /// The image it runs.
    pub image: String,
    /// The image's digest.
    #[serde(rename = "imageID")]
    pub image_id: String,
    /// ID that the host's container runtime gave it.
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Whether it takes traffic.
    pub ready: bool,
    /// Whether it has started, and its startup probe has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
    /// How often it was started again.
    pub restart_count: i32,
    /// What it does now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ContainerState>,
    /// How it ended the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_state: Option<ContainerState>,
}

impl ContainerStatus {
    /// With which code it has ended, if it has.
    pub fn ended(&self) -> Option<i32> {
        Some(self.state.as_ref()?.terminated.as_ref()?.exit_code)
    }
}

/// What a container does: one of the three.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerState {
    /// It waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// It runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Running>,
    /// It has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
}

/// A container that waits.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Waiting {
    /// For what, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For what, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A container that runs.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
}

/// A container that has ended.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Exit code.
    pub exit_code: i32,
    /// Signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence, or what it wrote before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub message: Option<String>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// ID that the host's container runtime gave it.
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_travels_of_a_status_is_what_the_host_knows() {
        let status = json!({
            "phase": "Running", "qosClass": "Burstable", "observedGeneration": 3, "hostIP": "192.0.2.1", "podIP": "10.1.0.7",
            "podIPs": [{"ip": "10.1.0.7"}, 7], "resourceClaimStatuses": [{"name": "gpu"}],
            "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null, "observedGeneration": 3}, {"status": 1}],
            "containerStatuses": [{"name": "web", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "9999-12-31T23:59:59Z"}}, "allocatedResources": {"cpu": "1"}}],
        });
        let want = json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "web", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "9999-12-31T23:59:59Z"}}}],
            "podIPs": [{"ip": "10.1.0.7"}],
        });
        assert_eq!(json!(PodState::of(&status)), want);
        for odd in [json!(null), json!([]), json!({"phase": "Dancing", "conditions": 7, "podIPs": null})] {
            assert_eq!(PodState::of(&odd), PodState::default(), "{odd}");
        }
    }

    #[test]
    fn what_is_said_without_end_is_cut() {
        let long = "x".repeat(100_000);
        let state = json!({
            "phase": "Dancing", "message": long, "conditions": [{"type": "Ready", "status": "True", "message": long}],
            "containerStatuses": [{"name": "web", "lastState": {"terminated": {"exitCode": 1, "message": long}}}],
        });
        let state: PodState = serde_json::from_value(state).unwrap();
        let state = state.bounded();
        assert_eq!(state.phase, None);
        assert!(json!(state).to_string().len() < 4 * QUOTE_MAX, "{state:?}");
    }

    #[test]
    fn an_address_that_cannot_be_is_left_out_and_said() {
        let ips = ["10.1.0.7", "127.0.0.1", "10.1.0.8", "fd00::7"];
        let state = PodState { pod_ips: ips.map(|ip| PodIp { ip: ip.into() }).into(), ..PodState::default() };
        let (state, refused) = state.with_possible_addresses(&[]);
        assert_eq!(json!(state), json!({"podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd00::7"}]}));
        assert_eq!(refused, ["127.0.0.1 is a loopback address", "10.1.0.8 is the second address of IPv4"]);
    }
}
