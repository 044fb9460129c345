//! Containers of a Pod here, of which its host alone knows how they are: pure.

use api::offload::pod_status::{ContainerState, ContainerStatus, PodState, Terminated, Waiting};
use serde_json::Value;

use crate::offload::pod::view::BoundPod;

/// What the host says of what the Pod has.
pub(super) fn asked_for(pod: &BoundPod, mut said: PodState) -> PodState {
    let spec = pod.spec.read().unwrap_or_default();
    let keep = |statuses: &mut Vec<ContainerStatus>, field: &str| {
        let containers = spec[field].as_array();
        let is_there = |name: &str| containers.is_some_and(|all| all.iter().any(|one| one["name"] == name));
        statuses.retain(|status| is_there(&status.name));
    };
    keep(&mut said.container_statuses, "containers");
    keep(&mut said.init_container_statuses, "initContainers");
    said
}

/// The same, but containers that have ended here and may not run again stay so: the host may have made the Pod anew, and an API server
/// refuses a status as a whole that says that such a container runs.
pub(super) fn with_ended(pod: &BoundPod, have: &PodState, mut said: PodState) -> PodState {
    let spec = pod.spec.read().unwrap_or_default();
    let restarts = |code: i32| match spec["restartPolicy"].as_str() {
        Some("Never") => false,
        Some("OnFailure") => code != 0,
        _ => true,
    };
    let keep = |said: &mut Vec<ContainerStatus>, have: &[ContainerStatus], field: &str| {
        let has_own_rules = |name: &str| {
            let of_name = |one: &&Value| one["name"] == name;
            let container = spec[field].as_array().and_then(|all| all.iter().find(of_name));
            container.is_some_and(|one| {
                one.get("restartPolicy").is_some() || one.get("restartPolicyRules").is_some()
            })
        };
        for status in said.iter_mut().filter(|status| !has_own_rules(&status.name)) {
            let before = have.iter().find(|before| before.name == status.name);
            let ended = before.filter(|before| before.ended().is_some_and(|code| !restarts(code)));
            if let Some(ended) = ended.filter(|_| status.ended().is_none()) {
                *status = ended.clone();
            }
        }
    };
    keep(&mut said.container_statuses, &have.container_statuses, "containers");
    keep(&mut said.init_container_statuses, &have.init_container_statuses, "initContainers");
    said
}

/// Exit code of a container that was killed.
const KILLED: i32 = 137;

/// No container runs any more, for this reason: as a kubelet says of those that it does not find when it ends a Pod.
pub(super) fn end(state: &mut PodState, reason: &str) {
    for (status, terminated) in running(state, reason) {
        status.state = Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
    }
    // Nor does one run again that waited for that.
    for status in [&mut state.container_statuses, &mut state.init_container_statuses].into_iter().flatten() {
        let waits = status.state.as_ref().is_some_and(|state| state.waiting.is_some());
        if let Some(mut ended) = status.last_state.take_if(|last| waits && last.terminated.is_some()) {
            ended.terminated.iter_mut().for_each(|ended| ended.reason = Some(reason.to_owned()));
            status.state = Some(ended);
        }
    }
}

/// No container runs, for this reason, and all may run again.
pub(super) fn wait(state: &mut PodState, reason: &str) {
    for (status, terminated) in running(state, reason) {
        let waiting = Waiting { reason: Some(reason.to_owned()), message: None };
        status.state = Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() });
        status.last_state =
            Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
    }
}

/// Containers that are said to run, and how they have ended if they do not.
fn running<'a>(
    state: &'a mut PodState,
    reason: &'a str,
) -> impl Iterator<Item = (&'a mut ContainerStatus, Terminated)> {
    let all = [&mut state.container_statuses, &mut state.init_container_statuses];
    all.into_iter().flatten().filter_map(move |status| {
        let running = status.state.as_ref()?.running.clone()?;
        status.started = status.started.map(|_| false);
        let terminated = Terminated {
            exit_code: KILLED,
            reason: Some(reason.to_owned()),
            message: Some("nothing is known of its end".to_owned()),
            started_at: running.started_at,
            container_id: status.container_id.clone(),
            ..Terminated::default()
        };
        Some((status, terminated))
    })
}
