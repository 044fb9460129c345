//! Admission that every kube-apiserver has: what it adds to new Pods and Nodes. Their fields belong to no manager.

use serde_json::{Value, json};

use super::{
    State,
    refusal::{Refusal, Result},
    request::Target,
};

/// Seconds that a Pod tolerates a Node that is not ready.
const TOLERATED: u64 = 300;
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Where containers find the token of their account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl State {
    /// Adds to a new object what API servers add.
    pub(super) fn complete(&mut self, target: &Target, new: &mut Value) -> Result<()> {
        if target.kind.is_core("nodes") {
            taint_new_node(new);
        }
        if target.kind.is_core("pods") {
            self.give_account(target, new)?;
            tolerate(&mut new["spec"]);
            set_if_missing(&mut new["spec"], "priority", &json!(0));
            set_if_missing(&mut new["spec"], "preemptionPolicy", &json!("PreemptLowerPriority"));
        }
        Ok(())
    }

    /// Gives a Pod its ServiceAccount, and its containers the token of that account unless somebody wants none.
    fn give_account(&mut self, target: &Target, pod: &mut Value) -> Result<()> {
        set_if_missing(&mut pod["spec"], "serviceAccountName", &json!("default"));
        let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default().to_owned();
        pod["spec"]["serviceAccount"] = json!(account);
        let Target { kind, namespace, name, .. } = target;
        let Some(found) = self.get("", "serviceaccounts", &(namespace.clone(), account.clone())) else {
            let why = format!(
                "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
            );
            let message = format!("pods {name:?} is forbidden: {why}");
            return Err(Refusal::new(403, "Forbidden", message).about(kind, name));
        };
        let asked = [&pod["spec"], &found.value].map(|from| from["automountServiceAccountToken"].as_bool());
        if asked.into_iter().flatten().next() == Some(false) {
            return Ok(());
        }
        let volume = format!("kube-api-access-{}", self.next_suffix());
        mount_token(&mut pod["spec"], &volume);
        Ok(())
    }
}

fn set_if_missing(object: &mut Value, key: &str, value: &Value) {
    if object[key].is_null() {
        object[key] = value.clone();
    }
}

fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(list) => list.push(item),
        None => *list = json!([item]),
    }
}

fn mount_token(spec: &mut Value, volume: &str) {
    for key in ["containers", "initContainers"] {
        for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            if mounts.clone().all(|mount| mount["mountPath"] != TOKEN_PATH) {
                let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH});
                push(&mut container["volumeMounts"], mount);
            }
        }
    }
    let namespace =
        json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]);
    push(
        &mut spec["volumes"],
        json!({"name": volume, "projected": {"sources": sources, "defaultMode": 420}}),
    );
}

/// Lets a Pod stay for a while on a Node that is not ready.
fn tolerate(spec: &mut Value) {
    for key in [NOT_READY, UNREACHABLE] {
        let mut all = spec["tolerations"].as_array().into_iter().flatten();
        let is_tolerated = all.any(|toleration| {
            let is_about = toleration["key"] == key || toleration["key"].as_str().is_none_or(str::is_empty);
            is_about
                && (toleration["effect"] == "NoExecute"
                    || toleration["effect"].as_str().is_none_or(str::is_empty))
        });
        if !is_tolerated {
            let toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED});
            push(&mut spec["tolerations"], toleration);
        }
    }
}

/// Keeps Pods from a Node until it is ready.
fn taint_new_node(node: &mut Value) {
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    if !taints.any(|of| of["key"] == taint["key"] && of["effect"] == taint["effect"]) {
        push(&mut node["spec"]["taints"], taint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{send, server};

    const PODS: &str = "/api/v1/namespaces/shop/pods";

    #[test]
    fn a_pod_has_an_account_and_its_token() {
        let server = server();
        let pod = |name: &str, more: Value| {
            let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            send(&server, "POST", PODS, &json!({"metadata": {"name": name}, "spec": spec}))
        };
        let (code, with) = pod("with", json!({}));
        assert_eq!((code, &with["spec"]["serviceAccountName"]), (201, &json!("default")));
        let volume = &with["spec"]["volumes"][0]["name"];
        assert!(volume.as_str().unwrap().starts_with("kube-api-access-"));
        assert_eq!(&with["spec"]["containers"][0]["volumeMounts"][0]["name"], volume);
        assert_eq!(with["spec"]["tolerations"].as_array().unwrap().len(), 2);
        let (_, without) = pod(
            "without",
            json!({"automountServiceAccountToken": false, "tolerations": [{"operator": "Exists"}]}),
        );
        assert!(without["spec"]["volumes"].is_null());
        assert_eq!(without["spec"]["tolerations"].as_array().unwrap().len(), 1);
        let (code, status) = pod("unknown", json!({"serviceAccountName": "missing"}));
        assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    }

    #[test]
    fn a_new_node_is_not_ready() {
        let (_, node) = send(&server(), "POST", "/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
        assert_eq!(node["spec"]["taints"], json!([{"key": NOT_READY, "effect": "NoSchedule"}]));
    }
}
