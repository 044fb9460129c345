//! What offloading installs.

use cli::objects::{DEFAULT_IMAGE, Object, member, offload};
use serde_json::json;

use crate::{all, is_looked_at, only};

#[test]
fn all_a_member_may_write_for_offloading_is_looked_at() {
    let policy = only(offload::member(), "ValidatingAdmissionPolicy freeport-offload");
    let mut writes = Vec::new();
    for role in ["ClusterRole ", "Role freeport-system/", "Role kube-node-lease/"] {
        let granted = only(offload::member(), &format!("{role}{}", offload::ROLE));
        for rule in granted["rules"].as_array().unwrap() {
            let reads = ["get", "list", "watch"];
            if rule["verbs"].as_array().unwrap().iter().any(|verb| !reads.contains(&verb.as_str().unwrap())) {
                writes.push((rule["apiGroups"][0].clone(), rule["resources"][0].clone()));
            }
        }
    }
    // The status of what administrators write, by the nature of the subresource; a webhook configuration, at which the API server lets
    // no policy look; and a ClusterRole, which it binds and does not write.
    let others = ["offloadpeers/status", "mutatingwebhookconfigurations", "clusterroles"];
    writes.retain(|(_, resource)| !others.iter().any(|other| resource == other));
    assert!(writes.len() >= 10, "{writes:?}");
    for (group, resource) in writes {
        assert!(is_looked_at(&policy, &group, &resource), "{resource}");
    }
}

#[test]
fn in_twins_the_member_writes_pods_and_nothing_else() {
    let role = only(offload::member(), "ClusterRole freeport-offload-pods");
    let wanted = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "patch", "delete"]}]);
    assert_eq!(role["rules"], wanted);
    let bound = |object: &Object| object.body["roleRef"]["name"] == "freeport-offload-pods";
    assert!(!all().iter().any(bound), "only twins have it");
}

#[test]
fn the_webhook_reads_namespace_offloadings_and_nothing_else() {
    let role = only(offload::member(), "ClusterRole freeport-webhook");
    let wanted = json!([{
        "apiGroups": ["offloading.liqo.io"], "resources": ["namespaceoffloadings"], "verbs": ["get", "list", "watch"],
    }]);
    assert_eq!(role["rules"], wanted);
    let bound = |object: &Object| {
        let subjects = object.body["subjects"].as_array();
        subjects.into_iter().flatten().any(|subject| subject["name"] == "freeport-webhook")
    };
    let bindings: Vec<String> = all().iter().filter(|&object| bound(object)).map(Object::to_string).collect();
    assert_eq!(bindings, ["ClusterRoleBinding freeport-webhook"]);
}

#[test]
fn the_api_server_asks_the_webhook_about_new_pods_of_offloaded_namespaces_alone() {
    let configuration = only(offload::all(DEFAULT_IMAGE), "MutatingWebhookConfiguration freeport-webhook");
    let [webhook] = configuration["webhooks"].as_array().unwrap().as_slice() else {
        panic!("{configuration}")
    };
    let service = json!({"namespace": "freeport-system", "name": "freeport-webhook", "path": "/mutate/pod", "port": 443});
    let wanted = json!({
        "name": "pod.mutate.liqo.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"], "scope": "Namespaced",
        }],
        "namespaceSelector": {"matchLabels": {"liqo.io/scheduling-enabled": "true"}},
        "sideEffects": "None", "timeoutSeconds": 3, "failurePolicy": "Fail",
    });
    assert_eq!(*webhook, wanted);
    let outside = offload::webhook::configuration(Some("https://127.0.0.1:8443/mutate/pod")).body;
    assert_eq!(outside["webhooks"][0]["clientConfig"], json!({"url": "https://127.0.0.1:8443/mutate/pod"}));
}

#[test]
fn the_webhooks_pods_are_two_and_apart_and_ask_their_nodes_for_nothing() {
    let deployment = only(offload::all("registry/a:1"), "Deployment freeport-system/freeport-webhook");
    let spec = &deployment["spec"];
    assert_eq!((&spec["replicas"], &spec["strategy"]["type"]), (&json!(2), &json!("RollingUpdate")));
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["topologySpreadConstraints"][0]["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{pod}");
    let items = json!([{"key": "tls.crt", "path": "tls.crt"}, {"key": "tls.key", "path": "tls.key"}]);
    let secret = json!({"secretName": "freeport-webhook-tls", "items": items});
    let volumes = json!([{"name": "freeport-webhook-tls", "secret": secret}]);
    assert_eq!(pod["volumes"], volumes, "and no key of the authority");
    let security = &pod["containers"][0]["securityContext"];
    assert_eq!(
        (&security["readOnlyRootFilesystem"], &security["allowPrivilegeEscalation"]),
        (&json!(true), &json!(false))
    );
    let budget = only(offload::all("registry/a:1"), "PodDisruptionBudget freeport-system/freeport-webhook");
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
    assert_eq!(budget["spec"]["selector"], spec["selector"]);
}

#[test]
fn a_member_takes_part_in_offloading_when_it_is_told() {
    let env = |offload| {
        let deployment =
            only(member::workload("a:1", 1, offload, &[]), "Deployment freeport-system/freeport-member");
        deployment["spec"]["template"]["spec"]["containers"][0]["env"].clone()
    };
    let told = json!({"name": "FREEPORT_OFFLOAD", "value": "true"});
    assert!(!env(false).as_array().unwrap().contains(&told));
    assert!(env(true).as_array().unwrap().contains(&told));
}

#[test]
fn the_administrator_of_a_namespace_offloads_it_and_no_consent_is_for_users() {
    for object in offload::member() {
        let labels = &object.body["metadata"]["labels"];
        let to = |role: &str| labels[format!("rbac.authorization.k8s.io/aggregate-to-{role}")] == "true";
        if !(to("admin") || to("edit") || to("view")) {
            continue;
        }
        for rule in object.body["rules"].as_array().unwrap() {
            assert_eq!(rule["resources"], json!(["namespaceoffloadings"]), "{object}");
            let writes = rule["verbs"].as_array().unwrap().contains(&json!("create"));
            assert!(!to("edit") && writes == to("admin") && writes != to("view"), "{object}");
        }
    }
}
