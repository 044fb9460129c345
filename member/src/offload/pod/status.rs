//! The status of a Pod here, from what its host says of it: pure.
//!
//! Of what a host says counts only what was asked for: containers that the Pod has, and addresses that a Pod can have.

mod containers;
mod refusal;

use api::{
    condition::Condition,
    offload::{
        pod_status::{ABORTED, PodCondition, PodState},
        shadow_pod::{ACCEPTED, ShadowPodStatus},
    },
    view::{QUOTE_MAX, shortened},
};
use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::containers::{asked_for, end, wait, with_ended};
use super::view::BoundPod;

/// Reason of a Pod that waits: it has no twin to run in yet.
const BACK_OFF: &str = "OffloadingBackOff";
/// Reason of a Pod that waits: something of it means nothing in another cluster.
const REFUSED: &str = "OffloadingRefused";

/// Reason of an Event: the host does not run the Pod.
const HOST_REFUSED: &str = "HostRefused";
/// Reason of an Event: the host claims an address that no Pod there can have.
const ADDRESS_REFUSED: &str = "AddressRefused";

const PENDING: &str = "Pending";
const FAILED: &str = "Failed";

/// Condition types of a Pod that a kubelet sets, and takes off.
const OF_THE_KUBELET: [&str; 6] = [
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodReadyToStartContainers",
    "PodResizePending",
    "PodResizeInProgress",
];
/// Of a Pod that has a Node; what its host says of that is not ours to say of the Pod here, which has one.
const SCHEDULED: &str = "PodScheduled";
/// Those that say whether it takes traffic.
const READY: [&str; 2] = ["Ready", "ContainersReady"];

/// Reason of `Ready` of a Pod whose containers are ready, as a kubelet gives it.
const GATES_NOT_READY: &str = "ReadinessGatesNotReady";

/// What a Pod is to say of itself, and what is told beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) state: PodState,
    pub(super) warning: Option<Warning>,
}

/// An Event that something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Warning {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Whether the Pod has ever been started by a host.
pub(super) fn has_started(have: &PodState) -> bool {
    have.start_time.is_some() || have.phase.as_deref().is_some_and(|phase| phase != PENDING)
}

/// It waits for something that may come.
pub(super) fn waits(have: &PodState, message: String) -> Option<Said> {
    says(have, PENDING, BACK_OFF, message, None)
}

/// It is so made that it cannot run elsewhere.
pub(super) fn refused(have: &PodState, message: String, now: Timestamp) -> Option<Said> {
    says(have, PENDING, REFUSED, message, Some(now))
}

/// It ran in a twin that is gone: its owner makes it anew.
pub(super) fn aborted(have: &PodState, host: &str) -> Option<Said> {
    let message = format!("its Namespace has no twin in cluster {host} any more");
    says(have, FAILED, ABORTED, message, None)
}

/// `refused`: since when at the latest, if it is refused.
fn says(
    have: &PodState,
    phase: &str,
    reason: &'static str,
    message: String,
    refused: Option<Timestamp>,
) -> Option<Said> {
    let mut state = PodState {
        phase: Some(phase.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message.clone()),
        ..have.clone()
    };
    unready(&mut state);
    if state.is_final() {
        end(&mut state, reason);
    }
    match refused {
        Some(now) => refusal::say(&mut state.conditions, reason, &message, now),
        None => refusal::take_back(&mut state.conditions),
    }
    let warning = (have.reason.as_deref() != Some(reason)).then_some(Warning { reason, message });
    (state != *have).then_some(Said { state, warning })
}

fn unready(state: &mut PodState) {
    let of_ready = |condition: &&mut PodCondition| READY.contains(&condition.type_.as_str());
    state.conditions.iter_mut().filter(of_ready).for_each(|condition| condition.status = "False".to_owned());
    state.container_statuses.iter_mut().for_each(|container| container.ready = false);
}

/// What the Pod is to say where its host says this, if that is something else than it says.
pub(super) fn mirrored(
    pod: &BoundPod,
    have: &PodState,
    said: &ShadowPodStatus,
    host: &str,
    services: &[IpNet],
    now: Timestamp,
) -> Option<Said> {
    let refused =
        said.conditions.iter().find(|condition| condition.type_ == ACCEPTED && condition.status == "False");
    let (mut state, impossible) = match (&said.pod, refused) {
        (None, None) => return None,
        (None, Some(refused)) => {
            let mut state = PodState { phase: Some(PENDING.to_owned()), ..have.clone() };
            wait(&mut state, &refused.reason);
            (state, vec![])
        }
        (Some(state), _) => {
            let state = with_ended(pod, have, asked_for(pod, state.clone()));
            state.bounded().with_possible_addresses(services)
        }
    };
    state.phase = state.phase.or_else(|| have.phase.clone());
    if have.is_final() && state.phase != have.phase {
        return None;
    }
    // A host that leaves says that it has ended, and nothing else.
    if state.is_final() {
        unready(&mut state);
        let reason = state.reason.clone().unwrap_or_else(|| ABORTED.to_owned());
        end(&mut state, &reason);
    }
    if let Some(refused) = refused.filter(|_| !state.is_final()) {
        state.reason = Some(refused.reason.clone());
        state.message = Some(shortened(refused.message.clone(), QUOTE_MAX));
        unready(&mut state);
    }
    let unscheduled = state.conditions.iter().find(|c| c.type_ == SCHEDULED && c.status == "False");
    if let Some(condition) =
        unscheduled.filter(|_| refused.is_none() && state.phase.as_deref() == Some(PENDING))
    {
        let words = condition.message.clone().unwrap_or_default();
        state.reason.clone_from(&condition.reason);
        state.message = Some(shortened(format!("in cluster {host}: {words}"), QUOTE_MAX));
    }
    state.conditions = merged(&have.conditions, state.conditions);
    gated(pod, &have.conditions, &mut state.conditions, now);
    match refused.filter(|_| !state.is_final()) {
        Some(Condition { reason, message, .. }) => {
            let message = shortened(message.clone(), QUOTE_MAX);
            refusal::say(&mut state.conditions, reason, &message, now);
        }
        None => refusal::take_back(&mut state.conditions),
    }
    let warning = warning(have, refused, &impossible, host);
    (state != *have).then_some(Said { state, warning })
}

fn warning(
    have: &PodState,
    refused: Option<&Condition>,
    impossible: &[String],
    host: &str,
) -> Option<Warning> {
    match refused {
        Some(refused) if have.reason.as_ref() != Some(&refused.reason) => {
            let words = shortened(format!("{}: {}", refused.reason, refused.message), QUOTE_MAX);
            Some(Warning {
                reason: HOST_REFUSED,
                message: format!("cluster {host} does not run it: {words}"),
            })
        }
        _ if !impossible.is_empty() => {
            let message = format!("left out of what cluster {host} says: {}", impossible.join("; "));
            Some(Warning { reason: ADDRESS_REFUSED, message: shortened(message, QUOTE_MAX) })
        }
        _ => None,
    }
}

/// The host's conditions in the place of ours of their types: those of its kubelet. All others are the home's, as its scheduler's is.
fn merged(have: &[PodCondition], mut said: Vec<PodCondition>) -> Vec<PodCondition> {
    said.retain(|condition| OF_THE_KUBELET.contains(&condition.type_.as_str()));
    said.sort_by(|a, b| a.type_.cmp(&b.type_));
    said.dedup_by(|a, b| a.type_ == b.type_);
    let mut all = Vec::new();
    for old in have {
        match said.iter().position(|new| new.type_ == old.type_) {
            Some(at) => all.push(said.remove(at)),
            None if OF_THE_KUBELET.contains(&old.type_.as_str()) => {}
            None => all.push(old.clone()),
        }
    }
    all.extend(said);
    all
}

/// Readiness gates stay at home with those who open them, so of the host's Ready counts only that its containers are.
fn gated(pod: &BoundPod, have: &[PodCondition], said: &mut [PodCondition], now: Timestamp) {
    let spec = pod.spec.read().unwrap_or_default();
    let gates = spec["readinessGates"].as_array().map_or(&[][..], Vec::as_slice);
    let gates = gates.iter().filter_map(|gate| gate["conditionType"].as_str());
    let is_open = |gate: &str| have.iter().any(|c| c.type_ == gate && c.status == "True");
    let (open, closed): (Vec<_>, Vec<_>) = gates.partition(|gate| is_open(gate));
    if open.is_empty() && closed.is_empty() {
        return;
    }
    let Some(ready) = said.iter_mut().find(|condition| condition.type_ == READY[0]) else { return };
    if !closed.is_empty() && ready.status == "True" {
        ready.status = "False".to_owned();
        ready.reason = Some(GATES_NOT_READY.to_owned());
        ready.message = Some(format!("these readiness gates are not True: {}", closed.join(", ")));
    }
    // It turns when a gate does, which the host does not know.
    let before =
        have.iter().find(|condition| condition.type_ == ready.type_ && condition.status == ready.status);
    ready.last_transition_time = match before {
        Some(before) => before.last_transition_time.clone(),
        None => Some(now.to_string()),
    };
}

/// The merge patch of the status that turns `have` into `want`, where the status as a whole is `raw`.
pub(super) fn patch(raw: &Value, have: &PodState, want: &PodState) -> Value {
    let (had, wanted) = (json!(have), json!(want));
    let mut patch = Map::new();
    for field in FIELDS {
        if had.get(field) != wanted.get(field) {
            patch.insert(field.to_owned(), wanted.get(field).cloned().unwrap_or(Value::Null));
        }
    }
    if patch.contains_key("conditions") {
        patch.insert("conditions".to_owned(), conditions(raw, have, want));
    }
    if patch.contains_key("podIPs") {
        patch.insert("podIP".to_owned(), json!(want.pod_ips.first().map(|first| &first.ip)));
    }
    Value::Object(patch)
}

/// What a [`PodState`] has, as it is called on the wire.
const FIELDS: [&str; 8] = [
    "phase",
    "reason",
    "message",
    "startTime",
    "conditions",
    "containerStatuses",
    "initContainerStatuses",
    "podIPs",
];

/// The list as a whole. Conditions that stay keep what we do not read of them.
fn conditions(raw: &Value, have: &PodState, want: &PodState) -> Value {
    let there = raw.get("conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let one = |condition: &PodCondition| {
        let stays = have.conditions.contains(condition);
        let as_it_is = there.iter().find(|old| stays && old["type"] == condition.type_.as_str());
        as_it_is.cloned().unwrap_or_else(|| json!(condition))
    };
    want.conditions.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
