//! How far a Deployment is rolled out, and waiting for it.

use std::time::{Duration, Instant};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerState, Pod},
};
use kube::{Api, ResourceExt, api::ListParams};

use crate::{Error, cluster::Cluster};

const PAUSE: Duration = Duration::from_millis(500);

/// Calls `probe` until it is done. `waiting` gets each new message about what is missing; after `limit` the answer is the last one.
pub(crate) async fn wait<T>(
    limit: Duration,
    probe: impl AsyncFn() -> Result<Result<T, String>, Error>,
    mut waiting: impl FnMut(&str),
) -> Result<Result<T, String>, Error> {
    let (begun, mut told) = (Instant::now(), String::new());
    loop {
        let message = match probe().await? {
            Ok(done) => return Ok(Ok(done)),
            Err(message) => message,
        };
        if message != told {
            waiting(&message);
            told.clone_from(&message);
        }
        if begun.elapsed() >= limit {
            return Ok(Err(message));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What is missing until the Deployment is rolled out, and why as far as Pods may be read; none if it is.
pub(crate) async fn missing(cluster: &Cluster, namespace: &str, name: &str) -> Result<Option<String>, Error> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespace);
    let doing = format!("read Deployment {namespace}/{name}");
    let Some(deployment) = cluster.request(doing, deployments.get_opt(name)).await? else {
        return Ok(Some(format!("Deployment {namespace}/{name} does not exist")));
    };
    let Some(missing) = incomplete(&deployment) else { return Ok(None) };
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let labels = deployment.spec.selector.match_labels.unwrap_or_default();
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let its = ListParams::default().labels(&labels.join(","));
    let pods = cluster.request("list its Pods", pods.list(&its)).await;
    // Without the right to list Pods the reason is left out.
    let why = pods.ok().and_then(|pods| hindrance(&pods.items));
    let why = why.map_or_else(String::new, |why| format!("; {why}"));
    Ok(Some(format!("Deployment {namespace}/{name}: {missing}{why}")))
}

/// What a Deployment lacks until all its Pods, and no others, are of its current generation and available.
fn incomplete(deployment: &Deployment) -> Option<String> {
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        return Some("its controller has not processed it yet".into());
    }
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let [all, updated, available] =
        [status.replicas, status.updated_replicas, status.available_replicas].map(Option::unwrap_or_default);
    let missing = if updated < wanted {
        format!("{updated} of {wanted} Pods are new")
    } else if all > updated {
        format!("old Pods that have not ended yet: {}", all - updated)
    } else if available < updated || all != wanted {
        format!("{available} of {wanted} Pods are available")
    } else {
        return None;
    };
    // If no Pod could be created, only this condition says why.
    let conditions = status.conditions.into_iter().flatten();
    let failure = conditions
        .filter(|c| c.type_.as_deref() == Some("ReplicaFailure") && c.status.as_deref() == Some("True"))
        .find_map(|condition| condition.message);
    Some(failure.map_or(missing.clone(), |failure| format!("{missing}; {failure}")))
}

/// Whether there are Pods of its current generation and no others. Where old Pods end first, new ones show that they have ended.
pub(crate) fn is_all_new(deployment: &Deployment) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    let new = status.updated_replicas.unwrap_or_default();
    status.observed_generation >= deployment.metadata.generation && new > 0 && status.replicas == Some(new)
}

/// What keeps the newest Pod from running, as far as it says.
fn hindrance(pods: &[Pod]) -> Option<String> {
    let pod = pods.iter().max_by_key(|pod| pod.creation_timestamp())?;
    let (name, status) = (pod.name_any(), pod.status.as_ref()?);
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let waits = containers.filter_map(|container| waiting(container.state.as_ref()?)).next();
    let scheduling = || {
        let mut conditions = status.conditions.iter().flatten();
        let refused = conditions.find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
        Some(reason(refused.reason.as_deref(), refused.message.as_deref()))
    };
    let phase = || Some(status.phase.clone()?).filter(|phase| phase != "Running");
    let why = waits.or_else(scheduling).or_else(phase)?;
    Some(format!("Pod {name}: {why}"))
}

/// What a container waits for, or how it ended.
fn waiting(state: &ContainerState) -> Option<String> {
    if let Some(waiting) = &state.waiting {
        return Some(reason(waiting.reason.as_deref(), waiting.message.as_deref()));
    }
    let ended = state.terminated.as_ref()?;
    Some(format!(
        "{}, exit code {}",
        reason(ended.reason.as_deref(), ended.message.as_deref()),
        ended.exit_code
    ))
}

/// In one line, whatever a container runtime writes.
fn reason(word: Option<&str>, sentence: Option<&str>) -> String {
    let words = [word.or(Some("waiting")), sentence];
    let said: Vec<&str> = words.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    said.join(": ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn deployment(generation: i64, status: &Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"generation": generation},
            "spec": {"replicas": 1, "selector": {}, "template": {}},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_deployment_is_done_when_all_its_pods_are_of_its_generation_and_no_others_are_left() {
        let done =
            json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert_eq!(incomplete(&deployment(2, &done)), None);
        assert_eq!(incomplete(&deployment(1, &done)), None);
        let older = incomplete(&deployment(3, &done)).unwrap();
        assert_eq!(older, "its controller has not processed it yet");
        for (status, says) in [
            (json!({}), "its controller has not processed it yet"),
            (json!({"observedGeneration": 2}), "0 of 1 Pods are new"),
            (json!({"observedGeneration": 2, "replicas": 1, "availableReplicas": 1}), "0 of 1 Pods are new"),
            (
                json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}),
                "old Pods that have not ended yet: 1",
            ),
            (
                json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}),
                "0 of 1 Pods are available",
            ),
        ] {
            assert_eq!(incomplete(&deployment(2, &status)).unwrap(), says);
        }
    }

    #[test]
    fn new_pods_show_that_the_old_ones_have_ended() {
        for (status, is) in [
            (json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}), true),
            (json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}), false),
            (json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1}), false),
            (json!({"observedGeneration": 2}), false),
        ] {
            assert_eq!(is_all_new(&deployment(2, &status)), is, "{status}");
        }
    }

    #[test]
    fn pods_that_cannot_be_made_say_why() {
        let failure = json!({"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"});
        let status = json!({"observedGeneration": 1, "conditions": [failure]});
        assert_eq!(incomplete(&deployment(1, &status)).unwrap(), "0 of 1 Pods are new; exceeded quota");
    }

    #[test]
    fn the_newest_pod_says_what_keeps_it() {
        let pod = |name: &str, created: &str, status: Value| -> Pod {
            let metadata = json!({"name": name, "creationTimestamp": created});
            serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
        };
        let (then, now) = ("2026-11-01T12:00:00Z", "2026-11-01T12:01:00Z");
        let state = |state: Value| {
            let container = json!({"name": "c", "image": "i", "imageID": "", "ready": false,
                "restartCount": 0, "state": state});
            json!({"phase": "Pending", "containerStatuses": [container]})
        };
        let pull = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such\nimage"}});
        let old = pod("old", then, json!({"phase": "Pending"}));
        let said = hindrance(&[pod("new", now, state(pull)), old]).unwrap();
        assert_eq!(said, "Pod new: ImagePullBackOff: no such image");
        let ended = json!({"terminated": {"reason": "Error", "exitCode": 2}});
        assert_eq!(hindrance(&[pod("p", now, state(ended))]).unwrap(), "Pod p: Error, exit code 2");
        let unscheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes"});
        let pending = json!({"phase": "Pending", "conditions": [unscheduled]});
        assert_eq!(hindrance(&[pod("p", now, pending)]).unwrap(), "Pod p: Unschedulable: 0/3 nodes");
        assert_eq!(hindrance(&[pod("p", now, json!({"phase": "Pending"}))]).unwrap(), "Pod p: Pending");
        assert_eq!(hindrance(&[pod("p", now, json!({"phase": "Running"}))]), None);
        assert_eq!(hindrance(&[]), None);
    }
}
