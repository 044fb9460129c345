//! Nodes: one whose Lease is not renewed is not known to be ready. One that is not ready has taints, and its Pods are not ready.

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::api::{State, rfc3339};

/// A Node that has not renewed its Lease for this time is not known to be ready.
const GRACE: Duration = Duration::from_secs(50);
/// The same of a Node that has never reported whether it is ready.
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// Namespace of the Leases.
const LEASES: &str = "kube-node-lease";
/// Conditions that are unknown of a silent Node.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// Taint of a Node that is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a Node of which that is not known.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Checks all Nodes.
pub(super) fn check(state: &mut State) {
    let names: Vec<_> = state.objects("", "nodes").map(|((_, name), _)| name.clone()).collect();
    state.memory.heartbeats.retain(|name, _| names.contains(name));
    for name in names {
        check_heartbeat(state, &name);
        set_taints(state, &name);
        mark_pods(state, &name);
    }
}

fn node(state: &State, name: &str) -> Value {
    let found = state.get("", "nodes", &(String::new(), name.to_owned()));
    found.map(|node| node.value.clone()).unwrap_or_default()
}

fn merge(state: &mut State, name: &str, subresource: &str, patch: &Value) {
    if let Some(kind) = state.kind("", "nodes") {
        state.merge(&kind, &(String::new(), name.to_owned()), subresource, patch);
    }
}

/// Whether the object's condition `Ready` is True; empty if it has none.
fn ready(object: &Value) -> &str {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    ready.next().and_then(|ready| ready["status"].as_str()).unwrap_or_default()
}

/// Writes that nothing is known of a Node whose Lease is not renewed.
fn check_heartbeat(state: &mut State, name: &str) {
    let lease = state.get("coordination.k8s.io", "leases", &(LEASES.to_owned(), name.to_owned()));
    let renewed = lease.map(|lease| lease.value["spec"]["renewTime"].clone()).unwrap_or_default();
    let now = Instant::now();
    let seen = state.memory.heartbeats.entry(name.to_owned()).or_insert((Value::Null, now));
    if seen.0 != renewed {
        *seen = (renewed, now);
    }
    let silent = now - seen.1;
    let node = node(state, name);
    let grace = if ready(&node).is_empty() { STARTUP_GRACE } else { GRACE };
    if silent <= grace {
        return;
    }
    let mut conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let at = rfc3339(0);
    for type_ in CONDITIONS {
        match conditions.iter_mut().find(|condition| condition["type"] == type_) {
            Some(condition) if condition["status"] == "Unknown" => {}
            Some(condition) => {
                condition["status"] = json!("Unknown");
                condition["reason"] = json!("NodeStatusUnknown");
                condition["message"] = json!("Kubelet stopped posting node status.");
                condition["lastTransitionTime"] = json!(at);
            }
            None => conditions.push(json!({
                "type": type_, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.", "lastTransitionTime": at,
                "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
            })),
        }
    }
    merge(state, name, "status", &json!({"status": {"conditions": conditions}}));
}

/// Gives a Node the taints of what its condition `Ready` reports.
fn set_taints(state: &mut State, name: &str) {
    let node = node(state, name);
    let had = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let wanted = match ready(&node) {
        "True" => None,
        "Unknown" => Some(UNREACHABLE),
        // Nothing is reported yet: it keeps the taint with which it was created.
        "" => return,
        _ => Some(NOT_READY),
    };
    let is_ours = |taint: &Value| taint["key"] == NOT_READY || taint["key"] == UNREACHABLE;
    let mut taints: Vec<_> = had
        .iter()
        .filter(|taint| !is_ours(taint) || wanted.is_some_and(|key| taint["key"] == key))
        .cloned()
        .collect();
    for (key, effect) in wanted.into_iter().flat_map(|key| [(key, "NoSchedule"), (key, "NoExecute")]) {
        if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": rfc3339(0)}));
        }
    }
    if taints != had {
        merge(state, name, "", &json!({"spec": {"taints": taints}}));
    }
}

/// Writes that the Pods of a Node that is not ready are not ready.
fn mark_pods(state: &mut State, name: &str) {
    if matches!(ready(&node(state, name)), "True" | "") {
        return;
    }
    let Some(kind) = state.kind("", "pods") else { return };
    let all = state.objects("", "pods").filter(|(_, pod)| pod.value["spec"]["nodeName"] == name);
    let ready: Vec<_> = all
        .filter(|(_, pod)| ready(&pod.value) == "True")
        .map(|(key, pod)| (key.clone(), pod.value["status"]["conditions"].clone()))
        .collect();
    for (key, mut conditions) in ready {
        for condition in conditions.as_array_mut().into_iter().flatten() {
            if condition["type"] == "Ready" {
                condition["status"] = json!("False");
                condition["lastTransitionTime"] = json!(rfc3339(0));
            }
        }
        state.merge(&kind, &key, "status", &json!({"status": {"conditions": conditions}}));
    }
}

/// Time at which a taint was added, if it is known.
pub(super) fn added(taint: &Value) -> Option<Timestamp> {
    taint["timeAdded"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::{
        api::{
            Server,
            testkit::{patch, server},
        },
        simulation::simulate,
    };

    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";

    fn ready_of(server: &Server, plural: &str) -> String {
        server.all("", plural).first().map(|object| ready(object).to_owned()).unwrap_or_default()
    }

    fn taints(server: &Server) -> Vec<String> {
        let nodes = server.all("", "nodes");
        let taints = nodes[0]["spec"]["taints"].as_array().into_iter().flatten();
        taints
            .map(|taint| format!("{} {}", taint["key"].as_str().unwrap(), taint["effect"].as_str().unwrap()))
            .collect()
    }

    /// A Node that is ready, with a Pod that is.
    fn with_node() -> std::sync::Arc<Server> {
        let server = server();
        let metadata = json!({"name": "n1", "namespace": LEASES});
        let spec = json!({"renewTime": "2026-01-01T00:00:00.000000Z"});
        server.install(
            &json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}),
        );
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        server.install(
            &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}),
        );
        let spec = json!({"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]});
        server.install(
            &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}, "spec": spec}),
        );
        let running =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        patch(&server, "merge", "/api/v1/namespaces/shop/pods/p/status", &running);
        server.tick();
        server
    }

    #[test]
    fn a_silent_node_is_not_known_to_be_ready() {
        simulate(1, || async {
            let server = with_node();
            assert_eq!((taints(&server).len(), ready_of(&server, "pods").as_str()), (0, "True"));
            sleep(GRACE - Duration::from_secs(1)).await;
            patch(&server, "merge", LEASE, &json!({"spec": {"renewTime": "2026-01-01T00:00:50.000000Z"}}));
            server.tick();
            sleep(GRACE).await;
            server.tick();
            assert_eq!(ready_of(&server, "nodes"), "True");
            sleep(Duration::from_secs(1)).await;
            server.tick();
            assert_eq!(
                (ready_of(&server, "nodes").as_str(), ready_of(&server, "pods").as_str()),
                ("Unknown", "False")
            );
            assert_eq!(
                taints(&server),
                [format!("{UNREACHABLE} NoSchedule"), format!("{UNREACHABLE} NoExecute")]
            );
        });
    }

    #[test]
    fn a_node_that_is_ready_again_loses_its_taints() {
        simulate(1, || async {
            let server = with_node();
            let says = |status: &str| {
                let status = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
                patch(&server, "merge", "/api/v1/nodes/n1/status", &status);
                server.tick();
            };
            says("False");
            assert_eq!(
                taints(&server),
                [format!("{NOT_READY} NoSchedule"), format!("{NOT_READY} NoExecute")]
            );
            let version = server.version();
            server.tick();
            assert_eq!(server.version(), version);
            says("True");
            assert_eq!(taints(&server), Vec::<String>::new());
        });
    }
}
