//! Deployments: each has a ReplicaSet, which keeps as many Pods as the Deployment wants. A changed template changes new Pods alone.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{Kind, Object, State};

/// Creates and deletes what Deployments want.
pub(super) fn scale(state: &mut State) {
    let (Some(sets), Some(pods)) = (state.kind("apps", "replicasets"), state.kind("", "pods")) else {
        return;
    };
    let deployments: Vec<_> = living(state, "apps", "deployments");
    for deployment in deployments {
        let spec = &deployment["spec"];
        let wanted = json!({"replicas": spec["replicas"].as_u64().unwrap_or(1), "selector": spec["selector"], "template": spec["template"]});
        let metadata = &deployment["metadata"];
        let key = (text(&metadata["namespace"]), text(&metadata["name"]));
        match state.get("apps", "replicasets", &key).cloned() {
            Some(set) if set.value["spec"] == wanted => {}
            Some(_) => state.merge(&sets, &key, "", &json!({"spec": wanted})),
            None => make(state, &sets, &deployment, &json!({"name": key.1, "namespace": key.0}), &wanted),
        }
    }
    for set in living(state, "apps", "replicasets") {
        replicate(state, &pods, &set);
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Objects of a kind that are not being deleted, nor their Namespaces.
fn living(state: &State, group: &str, plural: &str) -> Vec<Value> {
    let is_alive = |object: &Arc<Object>| !object.is_terminating();
    let all = state.objects(group, plural).filter(|((namespace, _), object)| {
        let namespace = state.get("", "namespaces", &(String::new(), namespace.clone()));
        is_alive(object) && namespace.is_some_and(is_alive)
    });
    all.map(|(_, object)| object.value.clone()).collect()
}

/// Creates an object that `owner` controls.
fn make(state: &mut State, kind: &Kind, owner: &Value, metadata: &Value, spec: &Value) {
    let (mut metadata, of) = (metadata.clone(), &owner["metadata"]);
    metadata["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": of["name"], "uid": of["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let api_version = if kind.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", kind.group) };
    state.install(
        &json!({"apiVersion": api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}),
        false,
    );
}

/// Creates Pods that a ReplicaSet lacks, or deletes those that it has too many.
fn replicate(state: &mut State, pods: &Arc<Kind>, set: &Value) {
    let (metadata, spec) = (&set["metadata"], &set["spec"]);
    let namespace = text(&metadata["namespace"]);
    let is_active = |pod: &Value| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let active = state.within(pods, &namespace).filter(|(_, pod)| {
        let mut owners = pod.value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.any(|owner| owner["uid"] == metadata["uid"]) && !pod.is_terminating() && is_active(&pod.value)
    });
    let active: Vec<_> = active.map(|(key, _)| key.clone()).collect();
    let wanted = spec["replicas"].as_u64().and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(1);
    for key in active.iter().skip(wanted) {
        state.delete_key(pods, key);
    }
    for _ in active.len()..wanted {
        let template = &spec["template"];
        let mut of_pod =
            json!({"generateName": format!("{}-", text(&metadata["name"])), "namespace": namespace});
        of_pod["labels"] = template["metadata"]["labels"].clone();
        make(state, pods, set, &of_pod, &template["spec"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{patch, server};

    #[test]
    fn a_deployment_keeps_as_many_pods_as_it_wants() {
        let server = server();
        let labels = json!({"app": "web"});
        let template =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        server.install(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        }));
        server.tick();
        server.tick();
        let names = server.names("", "pods");
        assert_eq!(names.len(), 2);
        let path = format!("/api/v1/namespaces/shop/pods/{}/status", names[0]);
        patch(&server, "merge", &path, &json!({"status": {"phase": "Failed"}}));
        server.tick();
        assert_eq!(server.names("", "pods").len(), 3, "in place of the one that failed");
        let path = "/apis/apps/v1/namespaces/shop/deployments/web";
        patch(&server, "merge", path, &json!({"spec": {"replicas": 1}}));
        server.tick();
        assert_eq!(server.names("", "pods").len(), 2);
        server.remove("apps", "deployments", "shop", "web");
        (0..3).for_each(|_| server.tick());
        assert_eq!(server.names("", "pods"), Vec::<String>::new());
    }
}
