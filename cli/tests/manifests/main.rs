//! What is installed, checked without a cluster: the committed files are current, and no right is a wildcard.

#![cfg(test)]

mod bind;
mod offload;

use std::path::Path;

use cli::{
    manifests,
    objects::{DEFAULT_IMAGE, Object, access, area, crds, dns, leader, member, offload as offloading},
};
use serde_json::{Value, json};

fn all() -> Vec<Object> {
    [
        crds::leader(),
        crds::member(),
        leader::objects(),
        area::objects("demo", "leader"),
        access::objects("demo", "east", None),
        access::antrea_objects("demo", "north"),
        member::objects(),
        dns::objects("kube-system", "coredns").into(),
        leader::workload(DEFAULT_IMAGE, 2, &[]),
        member::workload(DEFAULT_IMAGE, 2, false, &[]),
        offloading::leader_crds(),
        offloading::all(DEFAULT_IMAGE),
        member::credential("demo"),
        vec![member::cluster_set("demo", "east", "leader", "https://10.0.0.1:6443")],
    ]
    .concat()
}

#[test]
fn manifests_are_current() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests");
    manifests::check(&dir).unwrap();
}

#[test]
fn everything_is_labelled_as_ours() {
    for object in all() {
        assert_eq!(object.body["metadata"]["labels"]["app.kubernetes.io/managed-by"], "freeport", "{object}");
    }
}

#[test]
fn no_right_is_a_wildcard() {
    let mut rules = 0;
    for object in all() {
        let rights = object.body["rules"].as_array();
        let requests = object.body["spec"]["matchConstraints"]["resourceRules"].as_array();
        for rule in rights.into_iter().chain(requests).flatten() {
            rules += 1;
            for list in ["apiGroups", "resources", "verbs", "resourceNames", "nonResourceURLs"] {
                for word in rule[list].as_array().into_iter().flatten() {
                    assert!(!word.as_str().unwrap().contains('*'), "{object}: {rule}");
                }
            }
        }
    }
    assert!(rules > 20, "only {rules} rules seen");
}

#[test]
fn secrets_are_read_in_one_namespace_only() {
    for object in all() {
        let secrets = object.body["rules"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|rule| rule["resources"] == json!(["secrets"]));
        let places = [
            "Role freeport-system/freeport-member",
            "Role freeport-system/freeport-member-credential",
            "Role freeport-system/freeport-member-offload",
        ];
        assert!(!secrets || places.contains(&object.to_string().as_str()), "{object}");
    }
}

#[test]
fn a_member_may_act_as_itself_alone() {
    let roles: Vec<Value> = access::objects("demo", "east", None)
        .into_iter()
        .filter(|object| object.resource.kind == "Role")
        .map(|object| object.body)
        .collect();
    let act_as: Vec<&Value> = roles
        .iter()
        .flat_map(|role| role["rules"].as_array().unwrap())
        .filter(|rule| rule["verbs"].as_array().unwrap().contains(&"act-as".into()))
        .collect();
    assert_eq!(act_as.len(), 1);
    assert_eq!(act_as[0]["resourceNames"], json!(["east"]));
}

#[test]
fn a_member_asks_for_tokens_of_its_own_account_alone_and_replaces_one_secret() {
    let names = |objects: Vec<Object>, resource: &str, verb: &str| {
        let roles = objects.into_iter().filter(|object| object.resource.kind == "Role");
        let rules = roles.flat_map(|role| role.body["rules"].as_array().unwrap().clone());
        let these =
            rules.filter(|rule| rule["resources"] == json!([resource]) && rule["verbs"] == json!([verb]));
        these.map(|rule| rule["resourceNames"].clone()).collect::<Vec<_>>()
    };
    let access = access::objects("demo", "east", None);
    assert!(access.iter().all(|object| object.resource.kind != "Secret"), "no token that counts for ever");
    assert_eq!(names(access, "serviceaccounts/token", "create"), [json!(["freeport-member-east"])]);
    assert_eq!(names(member::credential("demo"), "secrets", "patch"), [json!(["freeport-leader-demo"])]);
    assert!(names(access::antrea_objects("demo", "north"), "serviceaccounts/token", "create").is_empty());
}

#[test]
fn an_antrea_member_is_marked_and_has_what_it_needs_and_no_more() {
    let objects = access::antrea_objects("demo", "north");
    let account = only(objects.clone(), "ServiceAccount clusterset-demo/freeport-member-north");
    let annotations = &account["metadata"]["annotations"];
    assert_eq!(annotations["multicluster.freeport.dev/speaks"], "antrea");
    assert_eq!(annotations["multicluster.antrea.io/cluster-id"], "north");
    let role = only(objects, "Role clusterset-demo/freeport-member-north");
    for rule in role["rules"].as_array().unwrap() {
        let resource = rule["resources"][0].as_str().unwrap();
        let verbs: Vec<_> =
            rule["verbs"].as_array().unwrap().iter().map(|verb| verb.as_str().unwrap()).collect();
        match (resource, verbs.as_slice()) {
            ("resourceexports", ["act-as", "speak-antrea"]) => {
                assert_eq!(rule["resourceNames"], json!(["north"]))
            }
            ("memberclusterannounces", ["update", "delete"]) => {
                assert_eq!(rule["resourceNames"], json!(["member-announce-from-north"]));
            }
            (
                "resourceexports" | "resourceimports" | "memberclusterannounces",
                ["get", "list", "watch", ..],
            )
            | ("events", ["create"]) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn no_secret_is_in_what_is_applied() {
    for object in all().into_iter().filter(|object| object.resource.kind == "Secret") {
        assert_eq!((object.body.get("data"), object.body.get("stringData")), (None, None), "{object}");
    }
}

#[test]
fn a_daemon_inside_asks_its_node_for_nothing() {
    for (daemon, deployment) in [
        ("freeport-leader", leader::workload("registry/a:1", 1, &[])),
        ("freeport-member", member::workload("registry/a:1", 1, false, &[])),
    ] {
        let deployment = only(deployment, &format!("Deployment freeport-system/{daemon}"));
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], daemon);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{pod}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{pod}");
        for host in ["hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"] {
            assert_eq!(pod.get(host), None, "{host}");
        }
        assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
        let container = &pod["containers"][0];
        assert_eq!(container["image"], "registry/a:1");
        assert_eq!(container["command"], json!([format!("/{daemon}")]));
        let security = json!({
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        });
        assert_eq!(container["securityContext"], security);
    }
}

#[test]
fn several_replicas_know_who_they_are_and_one_at_a_time_may_be_away() {
    let name = "Deployment freeport-system/freeport-leader";
    let spec = |replicas| only(leader::workload("i", replicas, &[]), name)["spec"].clone();
    let (one, two) = (spec(1), spec(2));
    let pod = |spec: &Value| spec["template"]["spec"].clone();
    let told = |spec: &Value| pod(spec)["containers"][0]["env"].as_array().unwrap().clone();
    assert_eq!((&one["replicas"], &one["strategy"]["type"]), (&json!(1), &json!("Recreate")));
    assert_eq!((&two["replicas"], &two["strategy"]["type"]), (&json!(2), &json!("RollingUpdate")));
    let replica = json!({"name": "FREEPORT_REPLICA", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}});
    assert!(told(&two).contains(&replica) && !told(&one).contains(&replica));
    let spread = &pod(&two)["topologySpreadConstraints"][0];
    assert_eq!(
        (&spread["whenUnsatisfiable"], &spread["labelSelector"]),
        (&json!("ScheduleAnyway"), &two["selector"])
    );
    assert_eq!(pod(&one).get("topologySpreadConstraints"), None);
    let budget = only(leader::workload("i", 2, &[]), "PodDisruptionBudget freeport-system/freeport-leader");
    assert_eq!(
        (&budget["spec"]["maxUnavailable"], &budget["spec"]["selector"]),
        (&json!(1), &two["selector"])
    );
    assert_eq!(leader::workload("i", 1, &[]).len(), 2);
}

#[test]
fn the_namespace_of_the_daemons_is_restricted() {
    for objects in [leader::objects(), member::objects()] {
        assert_eq!(objects[0].to_string(), "Namespace freeport-system");
        assert_eq!(objects[0].body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    }
}

#[test]
fn what_runs_outside_is_installed_without_a_deployment() {
    let installed = [leader::objects(), member::objects()].concat();
    assert!(installed.iter().all(|object| object.resource.kind != "Deployment"));
}

fn only(objects: Vec<Object>, name: &str) -> Value {
    let found: Vec<Object> = objects.into_iter().filter(|object| object.to_string() == name).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0].body.clone()
}

/// Whether the policy looks at every write of this resource.
fn is_looked_at(policy: &Value, group: &Value, resource: &Value) -> bool {
    let rules = policy["spec"]["matchConstraints"]["resourceRules"].as_array().unwrap();
    rules.iter().any(|rule| {
        rule["apiGroups"].as_array().unwrap().contains(group)
            && rule["resources"].as_array().unwrap().contains(resource)
            && rule["operations"] == json!(["CREATE", "UPDATE", "DELETE"])
    })
}

#[test]
fn all_a_member_may_write_in_the_common_area_is_looked_at() {
    let policy = only(leader::objects(), "ValidatingAdmissionPolicy freeport-records");
    let role = only(access::objects("demo", "east", None), "Role clusterset-demo/freeport-member-east");
    let reads = ["get", "list", "watch", "act-as"];
    let mut writes = 0;
    for rule in role["rules"].as_array().unwrap() {
        if rule["verbs"].as_array().unwrap().iter().all(|verb| reads.contains(&verb.as_str().unwrap())) {
            continue;
        }
        writes += 1;
        // A token of its own account, by that name: there is nothing to look at.
        let is_token = rule["resources"] == json!(["serviceaccounts/token"]);
        let is_looked_at = || is_looked_at(&policy, &rule["apiGroups"][0], &rule["resources"][0]);
        assert!(is_token || is_looked_at(), "{rule}");
    }
    assert!(writes >= 3, "only {writes} rules let write");
}

#[test]
fn all_a_member_may_write_in_its_own_cluster_is_looked_at() {
    let policy = only(member::objects(), "ValidatingAdmissionPolicy freeport-member-own");
    let mut writes = Vec::new();
    for role in ["ClusterRole freeport-member", "Role freeport-system/freeport-member"] {
        for rule in only(member::objects(), role)["rules"].as_array().unwrap() {
            let reads = ["get", "list", "watch"];
            if rule["verbs"].as_array().unwrap().iter().any(|verb| !reads.contains(&verb.as_str().unwrap())) {
                writes.push((rule["apiGroups"][0].clone(), rule["resources"][0].clone()));
            }
        }
    }
    // Conditions on objects of others: nothing but the status, by the nature of the subresource.
    writes.retain(|(_, resource)| resource != "serviceexports/status" && resource != "clustersets/status");
    assert!(writes.len() >= 7, "{writes:?}");
    for (group, resource) in writes {
        assert!(is_looked_at(&policy, &group, &resource), "{resource}");
    }
}

#[test]
fn the_policy_holds_in_every_common_area() {
    let binding = only(leader::objects(), "ValidatingAdmissionPolicyBinding freeport-records");
    let area = only(area::objects("demo", "leader"), "Namespace clusterset-demo");
    let wanted = binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"].as_object().unwrap();
    assert_eq!(wanted.len(), 1);
    for (label, value) in wanted {
        assert_eq!(&area["metadata"]["labels"][label], value);
    }
}

#[test]
fn policies_refuse_what_they_cannot_decide() {
    let mut policies = 0;
    for object in all() {
        match object.resource.kind.as_str() {
            "ValidatingAdmissionPolicy" => {
                policies += 1;
                assert_eq!(object.body["spec"]["failurePolicy"], "Fail", "{object}");
                for check in object.body["spec"]["validations"].as_array().unwrap() {
                    assert!(
                        check["message"].is_string() && check["messageExpression"].is_string(),
                        "{check}"
                    );
                }
            }
            "ValidatingAdmissionPolicyBinding" => {
                assert_eq!(object.body["spec"]["policyName"], object.name);
                let only_warns = object.name == "freeport-offload-change";
                let does = if only_warns { "Warn" } else { "Deny" };
                assert_eq!(object.body["spec"]["validationActions"], json!([does]), "{object}");
            }
            _ => {}
        }
    }
    assert_eq!(policies, 8);
}

#[test]
fn the_policy_knows_names_as_the_daemons_do() {
    let policy = only(leader::objects(), "ValidatingAdmissionPolicy freeport-records").to_string();
    for prefix in [api::name::member_lease(""), api::name::announce("")] {
        assert!(policy.contains(&format!("'{prefix}'")), "{prefix}");
    }
}

#[test]
fn users_export_but_do_not_import() {
    for role in ["freeport-edit", "freeport-view"] {
        let role = only(member::objects(), &format!("ClusterRole {role}"));
        for rule in role["rules"].as_array().unwrap() {
            let writes = rule["verbs"].as_array().unwrap().contains(&"create".into());
            assert!(!writes || rule["resources"] == json!(["serviceexports"]), "{rule}");
        }
    }
}

/// Files that docs/cli.md tells to apply in `cluster`, in that order.
fn applied(cluster: &str) -> Vec<String> {
    let docs = include_str!("../../../docs/cli.md");
    let lines =
        docs.lines().filter(|line| line.starts_with(&format!("kubectl --context {cluster} apply -f")));
    let words = lines.flat_map(str::split_whitespace);
    words.filter_map(|word| word.strip_prefix("manifests/")).map(str::to_owned).collect()
}

#[test]
fn files_in_the_documented_order_bring_what_later_ones_need() {
    let files = manifests::files().unwrap();
    let mut named = 0;
    for cluster in ["leader", "east"] {
        let mut served: Vec<String> = Vec::new();
        // Kubernetes makes those itself.
        let mut namespaces = vec!["kube-node-lease".to_owned(), "kube-system".to_owned()];
        for file in applied(cluster) {
            named += 1;
            let (_, text) = files.iter().find(|(name, _)| *name == file).unwrap();
            for document in serde_yaml::Deserializer::from_str(text) {
                let object: Value = serde::Deserialize::deserialize(document).unwrap();
                let kind = object["kind"].as_str().unwrap();
                let name = object["metadata"]["name"].as_str().unwrap();
                if let Some(namespace) = object["metadata"]["namespace"].as_str() {
                    assert!(namespaces.iter().any(|had| had == namespace), "{file}: {kind} {name}");
                }
                let group =
                    object["apiVersion"].as_str().unwrap().split_once('/').map_or("", |(group, _)| group);
                if group.starts_with("multicluster.") {
                    assert!(served.contains(&format!("{kind}.{group}")), "{file}: {kind} {name}");
                }
                match kind {
                    "Namespace" => namespaces.push(name.to_owned()),
                    "CustomResourceDefinition" => {
                        let text = |value: &Value| value.as_str().unwrap().to_owned();
                        let spec = &object["spec"];
                        served.push(format!("{}.{}", text(&spec["names"]["kind"]), text(&spec["group"])));
                    }
                    _ => {}
                }
            }
        }
    }
    assert_eq!(named, files.len(), "each file has its place");
}
