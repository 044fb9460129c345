//! Queues of the API server: each consumer has one of its own, and the leader makes no others.

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::rights::{
    attempt::{Attempt, Do},
    bind::attempt,
};

/// What it must not do to them.
pub(super) fn attempts(cns: &str) -> Vec<Attempt> {
    let flow = |name: &str, change: &dyn Fn(&mut Value)| {
        let subject =
            json!({"kind": "ServiceAccount", "serviceAccount": {"name": "kube-binder", "namespace": name}});
        let all = json!(["*"]);
        let rule = json!({"apiGroups": all, "resources": all, "verbs": all, "namespaces": all, "clusterScope": true});
        let mut flow = json!({"metadata": {"name": name}, "spec": {
            "priorityLevelConfiguration": {"name": "freeport-members"}, "matchingPrecedence": 8000,
            "rules": [{"subjects": [subject], "resourceRules": [rule]}],
        }});
        change(&mut flow["spec"]);
        Do::DryCreate(flow)
    };
    let (kind, says) = (ApiResource::erase::<FlowSchema>(&()), "/kube-binder on level freeport-members");
    let attempt = |what, todo, says| attempt(what, &kind, todo, says);
    let group = json!({"kind": "Group", "group": {"name": "system:serviceaccounts"}});
    vec![
        attempt(
            "a level without queues",
            flow("x", &|spec| spec["priorityLevelConfiguration"]["name"] = json!("exempt")),
            says,
        ),
        attempt("before all others", flow("x", &|spec| spec["matchingPrecedence"] = json!(10)), says),
        attempt("everybody", flow("x", &|spec| spec["rules"][0]["subjects"][0] = group.clone()), says),
        attempt(
            "another consumer",
            flow("x", &|spec| {
                spec["rules"][0]["subjects"][0]["serviceAccount"]["namespace"] = json!("other");
            }),
            says,
        ),
        attempt("a queue goes", Do::Delete(cns.to_owned()), ""),
    ]
}
