//! Pods: those that do not tolerate a taint of their Node are evicted, and those whose Node is missing are deleted.

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::nodes;
use crate::api::{State, rfc3339};

/// A Node has to be missing for this time before its Pods are deleted.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Evicts Pods from Nodes with taints that they do not tolerate, or not for so long.
pub(super) fn evict(state: &mut State) {
    let Some(kind) = state.kind("", "pods") else { return };
    let now = Timestamp::now();
    let tainted = state.objects("", "nodes").filter_map(|((_, name), node)| {
        let taints = node.value["spec"]["taints"].as_array()?.iter();
        let taints: Vec<_> = taints.filter(|taint| taint["effect"] == "NoExecute").cloned().collect();
        (!taints.is_empty()).then(|| (name.clone(), taints))
    });
    let tainted: Vec<_> = tainted.collect();
    let of = |pod: &Value| tainted.iter().find(|(name, _)| pod["spec"]["nodeName"] == name.as_str());
    let evicted = state.objects("", "pods").filter(|(_, pod)| {
        let is_over =
            |(_, taints): &(_, Vec<Value>)| taints.iter().any(|taint| !tolerates(&pod.value, taint, now));
        !pod.is_terminating() && of(&pod.value).is_some_and(is_over)
    });
    let evicted: Vec<_> = evicted.map(|(key, _)| key.clone()).collect();
    for key in evicted {
        state.delete_key(&kind, &key);
    }
}

/// Reports whether a Pod tolerates a taint until now.
fn tolerates(pod: &Value, taint: &Value, now: Timestamp) -> bool {
    let tolerations = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    let matching: Vec<_> = tolerations.filter(|toleration| matches(toleration, taint)).collect();
    let limits: Option<Vec<i64>> =
        matching.iter().map(|toleration| toleration["tolerationSeconds"].as_i64()).collect();
    match (limits, nodes::added(taint)) {
        _ if matching.is_empty() => false,
        (Some(limits), Some(added)) => {
            limits.into_iter().min().is_some_and(|limit| (now - added).get_seconds() < limit)
        }
        _ => true,
    }
}

fn matches(toleration: &Value, taint: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (key, effect) = (text(&toleration["key"]), text(&toleration["effect"]));
    let is_about =
        (key.is_empty() || taint["key"] == key) && (effect.is_empty() || taint["effect"] == effect);
    is_about && (toleration["operator"] == "Exists" || text(&toleration["value"]) == text(&taint["value"]))
}

/// Deletes Pods whose Node is missing for a while.
pub(super) fn collect(state: &mut State) {
    let Some(kind) = state.kind("", "pods") else { return };
    let is_present = |name: &str| state.get("", "nodes", &(String::new(), name.to_owned())).is_some();
    let orphans = state.objects("", "pods").filter_map(|(key, pod)| {
        let node =
            pod.value["spec"]["nodeName"].as_str().filter(|name| !name.is_empty() && !is_present(name))?;
        let is_over = matches!(pod.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        Some((key.clone(), node.to_owned(), is_over))
    });
    let orphans: Vec<_> = orphans.collect();
    let now = Instant::now();
    let missing = &mut state.memory.missing;
    missing.retain(|name, _| orphans.iter().any(|(_, node, _)| node == name));
    for (_, node, _) in &orphans {
        missing.entry(node.clone()).or_insert(now);
    }
    let missing = missing.clone();
    for (key, node, is_over) in orphans {
        if missing.get(&node).is_none_or(|since| now - *since < QUARANTINE) {
            continue;
        }
        if !is_over {
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists", "lastTransitionTime": rfc3339(0),
            });
            let pod = state.get("", "pods", &key);
            let mut conditions =
                pod.and_then(|pod| pod.value["status"]["conditions"].as_array().cloned()).unwrap_or_default();
            conditions.push(condition);
            state.merge(
                &kind,
                &key,
                "status",
                &json!({"status": {"phase": "Failed", "conditions": conditions}}),
            );
        }
        state.delete_key_at_once(&kind, &key);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::{
        api::testkit::{patch, server},
        simulation::simulate,
    };

    fn pod(name: &str, tolerations: &Value) -> Value {
        let spec = json!({"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], "tolerations": tolerations});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    }

    fn node(taints: &Value) -> Value {
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"taints": taints}, "status": status})
    }

    #[test]
    fn a_pod_that_does_not_tolerate_a_taint_is_evicted() {
        simulate(1, || async {
            let server = server();
            server.install(&node(&json!([{"key": "a", "value": "true", "effect": "NoExecute"}])));
            server.install(&pod("not", &json!([{"key": "a", "value": "false"}])));
            server.install(&pod("does", &json!([{"key": "a", "operator": "Exists"}])));
            server.tick();
            let going = server
                .all("", "pods")
                .into_iter()
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_string());
            assert_eq!(going.map(|pod| pod["metadata"]["name"].clone()).collect::<Vec<_>>(), ["not"]);
        });
    }

    #[test]
    fn a_pod_tolerates_a_taint_for_a_while() {
        simulate(1, || async {
            let server = server();
            server.install(&node(&json!([])));
            server.install(&pod("p", &json!([])));
            let silent = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
            patch(&server, "merge", "/api/v1/nodes/n1/status", &silent);
            server.tick();
            sleep(Duration::from_secs(290)).await;
            server.tick();
            assert!(server.all("", "pods")[0]["metadata"]["deletionTimestamp"].is_null(), "300 s by default");
            sleep(Duration::from_secs(20)).await;
            server.tick();
            assert!(server.all("", "pods")[0]["metadata"]["deletionTimestamp"].is_string());
        });
    }

    #[test]
    fn pods_of_a_missing_node_are_deleted_after_a_while() {
        simulate(1, || async {
            let server = server();
            server.install(&pod("p", &json!([])));
            server.tick();
            sleep(QUARANTINE / 2).await;
            server.install(&node(&json!([])));
            server.tick();
            server.remove("", "nodes", "", "n1");
            server.tick();
            sleep(QUARANTINE / 2 + Duration::from_secs(1)).await;
            server.tick();
            assert_eq!(server.names("", "pods"), ["p"], "the Node was present meanwhile");
            sleep(QUARANTINE / 2).await;
            server.tick();
            assert_eq!(server.names("", "pods"), Vec::<String>::new());
        });
    }
}
