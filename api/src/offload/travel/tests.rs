use super::*;

fn record() -> ShadowPodSpec {
    ShadowPodSpec {
        origin: "west".into(),
        destination: "east".into(),
        namespace: "shop-west".into(),
        pod: "web-1".into(),
        uid: "u-1".into(),
        ..ShadowPodSpec::default()
    }
}

/// As an API server has it after its admission.
fn pod() -> Value {
    json!({
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "u-1",
            "labels": {"app": "web", "liqo.io/shadowPod": "true", "offloading.liqo.io/origin": "else", "notliqo.io/x": "1"},
            "annotations": {"note": "1", "kubernetes.io/limit-ranger": "set", "kubectl.kubernetes.io/default-container": "web"},
        },
        "spec": {
            "containers": [{
                "name": "web", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "192.0.2.1"}],
                "env": [{"name": "A", "value": "a"}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "volumeMounts": [
                    {"name": "tmp", "mountPath": "/tmp"},
                    {"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
                ],
            }],
            "initContainers": [{"name": "init", "image": "i", "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/x"}]}],
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "me", "downwardAPI": {"items": []}},
                {"name": "all", "projected": {"sources": [{"downwardAPI": {}}]}},
                {"name": "kube-api-access-x", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": []}},
                ]}},
            ],
            "affinity": {"nodeAffinity": {}}, "nodeSelector": {"a": "b"}, "nodeName": "freeport-east", "priority": 7,
            "priorityClassName": "high", "preemptionPolicy": "Never", "schedulerName": "mine", "hostNetwork": true, "hostPID": true,
            "hostIPC": true, "serviceAccountName": "web", "serviceAccount": "web", "runtimeClassName": "liqo",
            "tolerations": [
                {"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists", "effect": "NoExecute"},
                {"key": "gpu", "operator": "Exists"}, {"operator": "Exists"}, {"key": "", "operator": "Exists"},
                {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            ],
            "readinessGates": [{"conditionType": "example.com/behind-balancer"}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 5, "fieldOfTheFuture": {"x": 1},
        },
    })
}

#[test]
fn what_is_about_the_home_stays_at_home() {
    let travelling = travelling(&pod()).unwrap();
    assert_eq!(json!(travelling.labels), json!({"app": "web", "notliqo.io/x": "1"}));
    let annotations = json!({"note": "1", "kubectl.kubernetes.io/default-container": "web"});
    assert_eq!(json!(travelling.annotations), annotations);
    let want = json!({
        "containers": [{
            "name": "web", "image": "i", "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "value": "a"}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        }],
        "initContainers": [{"name": "init", "image": "i", "volumeMounts": []}],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "me", "downwardAPI": {"items": []}},
            {"name": "all", "projected": {"sources": [{"downwardAPI": {}}]}},
        ],
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        ],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 5, "fieldOfTheFuture": {"x": 1},
    });
    assert_eq!(travelling.spec, want);
}

#[test]
fn the_host_knows_its_pod_and_gives_it_nothing_of_its_own() {
    let pod = travelling(&pod()).unwrap().pod(&record()).unwrap();
    assert_eq!(pod["metadata"]["name"], "web-1");
    assert_eq!(pod["metadata"]["namespace"], "shop-west");
    let labels = json!({
        "app": "web", "notliqo.io/x": "1", "liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": "west",
        "offloading.liqo.io/destination": "east", "multicluster.freeport.dev/origin-uid": "u-1",
    });
    assert_eq!(pod["metadata"]["labels"], labels);
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    assert_eq!(
        terms[0]["matchExpressions"][0],
        json!({"key": "liqo.io/type", "operator": "NotIn", "values": ["virtual-node"]})
    );
}

#[test]
fn a_hostile_home_gets_nothing_past_the_host() {
    let hostile = pod();
    let map = |field: &str| BTreeMap::deserialize(&hostile["metadata"][field]).unwrap();
    let sent =
        Travelling { labels: map("labels"), annotations: map("annotations"), spec: hostile["spec"].clone() };
    assert_eq!(sent.pod(&record()).unwrap(), travelling(&pod()).unwrap().pod(&record()).unwrap());
    for spec in [json!(null), json!([]), json!("x")] {
        let sent = Travelling { spec, ..Travelling::default() };
        assert_eq!(sent.pod(&record()).unwrap_err().field, "spec");
    }
}

#[test]
fn what_does_not_travel_is_named() {
    let with = |path: &str, value: Value| {
        let mut pod = pod();
        *pod.pointer_mut(path).unwrap() = value;
        travelling(&pod).unwrap_err().field
    };
    for (volume, field) in [
        (json!({"name": "v", "configMap": {"name": "c"}}), "configMap"),
        (json!({"name": "v", "secret": {"secretName": "s"}}), "secret"),
        (json!({"name": "v", "persistentVolumeClaim": {"claimName": "p"}}), "persistentVolumeClaim"),
        (json!({"name": "v", "hostPath": {"path": "/"}}), "hostPath"),
        (json!({"name": "v", "ephemeral": {}}), "ephemeral"),
        (json!({"name": "v", "csi": {"driver": "d"}}), "csi"),
        (json!({"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}), "secret"),
        (json!({"name": "v", "downwardAPI": {}, "hostPath": {"path": "/"}}), "hostPath"),
        (json!({"name": "v", "projected": {"sources": []}, "secret": {"secretName": "s"}}), "secret"),
        (json!({"name": "kube-api-access-v", "secret": {"secretName": "s"}}), "secret"),
        (json!({"name": "v", "projected": {"sources": [{"secret": {}}]}}), "projected.sources[].secret"),
        (
            json!({"name": "kube-api-access-v", "projected": {"sources": [{"secret": {}}]}}),
            "projected.sources[].secret",
        ),
        (
            json!({"name": "kube-api-access-v", "projected": {"sources": [
                {"downwardAPI": {}}, {"configMap": {"name": "mine"}}, {"serviceAccountToken": {}},
            ]}}),
            "projected.sources[].configMap",
        ),
        (
            json!({"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}),
            "projected.sources[].serviceAccountToken",
        ),
    ] {
        let name = volume["name"].as_str().unwrap().to_owned();
        assert_eq!(with("/spec/volumes/0", volume), format!("spec.volumes[{name}].{field}"));
    }
    for from in ["secretKeyRef", "configMapKeyRef", "sourceOfTheFuture"] {
        let env = json!([{"name": "P", "valueFrom": {from: {"name": "s", "key": "k"}}}]);
        let field = format!("spec.containers[web].env[P].valueFrom.{from}");
        assert_eq!(with("/spec/containers/0/env", env), field);
    }
    let init = json!({"name": "init", "envFrom": [{"secretRef": {"name": "s"}}]});
    assert_eq!(with("/spec/initContainers/0", init), "spec.initContainers[init].envFrom");
    let mut claims = pod();
    claims["spec"]["resourceClaims"] = json!([{"name": "gpu"}]);
    assert_eq!(travelling(&claims).unwrap_err().to_string().split(' ').next(), Some("spec.resourceClaims"));
    let mut class = pod();
    class["spec"]["runtimeClassName"] = json!("on-set-apart-nodes");
    assert_eq!(travelling(&class).unwrap_err().to_string().split(' ').next(), Some("spec.runtimeClassName"));
}

#[test]
fn a_variable_may_come_from_the_pod_itself() {
    let from = json!([
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "C", "valueFrom": {"fileKeyRef": {"volumeName": "tmp", "path": "env", "key": "C"}}},
    ]);
    let mut pod = pod();
    pod["spec"]["containers"][0]["env"] = from.clone();
    assert_eq!(travelling(&pod).unwrap().spec["containers"][0]["env"], from);
}
