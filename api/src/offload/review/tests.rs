mod cluster;
mod notation;
mod property;
mod vectors;

use serde_json::{Value, json};

use super::*;
use crate::offload::namespace::PodOffloadingStrategy::{Local, LocalAndRemote, Remote};

/// A NamespaceOffloading with this strategy and these terms.
fn offloading(strategy: PodOffloadingStrategy, terms: Option<Value>) -> NamespaceOffloadingSpec {
    let selector = terms.map(|terms| serde_json::from_value(json!({"nodeSelectorTerms": terms})).unwrap());
    NamespaceOffloadingSpec {
        pod_offloading_strategy: strategy,
        cluster_selector: selector,
        ..NamespaceOffloadingSpec::default()
    }
}

/// The Pod after the patch, which only adds.
fn patched(pod: &Value, patch: &[Value]) -> Value {
    let mut pod = pod.clone();
    for operation in patch {
        assert_eq!(operation["op"], "add");
        let path = operation["path"].as_str().unwrap();
        assert!(path.starts_with("/spec/affinity") || path.starts_with("/spec/tolerations"), "{path}");
        let (parent, field) = path.rsplit_once('/').unwrap();
        let parent = pod.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(list) if field == "-" => list.push(operation["value"].clone()),
            Value::Object(fields) => drop(fields.insert(field.into(), operation["value"].clone())),
            other => panic!("{path}: {other}"),
        }
    }
    pod
}

/// The Pod as the webhook leaves it, which it does not change again.
fn reviewed(pod: &Value, offloading: &NamespaceOffloadingSpec) -> Value {
    let after = patched(pod, &review(pod, offloading).unwrap());
    assert_eq!(review(&after, offloading), Ok(Vec::new()), "twice: {after}");
    after
}

/// Terms that require labels `<prefix>0`, `<prefix>1`, ...
fn many(prefix: &str, count: usize) -> Value {
    let term = |n| json!({"matchExpressions": [{"key": format!("{prefix}{n}"), "operator": "Exists"}]});
    (0..count).map(term).collect()
}

fn pod_with(terms: &Value) -> Value {
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    json!({"metadata": {}, "spec": {"containers": [], "affinity": {"nodeAffinity": required}}})
}

#[test]
fn u13_to_u17_terms_go_where_none_are_and_nothing_else_moves() {
    let region = json!([{"matchExpressions": [{"key": "region", "operator": "In", "values": ["A"]}]}]);
    let wants = offloading(Remote, Some(region.clone()));
    let anti = json!([{"topologyKey": "zone"}]);
    for (affinity, path) in [
        (None, "/spec/affinity"),
        (Some(Value::Null), "/spec/affinity"),
        (Some(json!({})), "/spec/affinity/nodeAffinity"),
        (Some(json!({"podAntiAffinity": anti})), "/spec/affinity/nodeAffinity"),
        (
            Some(json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}})),
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
        ),
        (
            Some(
                json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
            ),
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        ),
    ] {
        let mut pod = json!({"metadata": {"generateName": "web-"}, "spec": {"containers": [], "nodeSelector": {"a": "b"}}});
        if let Some(affinity) = &affinity {
            pod["spec"]["affinity"] = affinity.clone();
        }
        let patch = review(&pod, &wants).unwrap();
        assert_eq!(patch[0]["path"], path, "{affinity:?}");
        let after = reviewed(&pod, &wants);
        let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        let terms = after.pointer(required).unwrap()["nodeSelectorTerms"].as_array().unwrap().clone();
        assert_eq!((terms.len(), &terms[0]["matchExpressions"][0]), (1, &region[0]["matchExpressions"][0]));
        assert_eq!(terms[0]["matchExpressions"][1]["values"], json!(["virtual-node"]));
        let kept = affinity.as_ref().and_then(|affinity| affinity.get("podAntiAffinity"));
        assert_eq!(after["spec"]["affinity"].get("podAntiAffinity"), kept);
    }
}

#[test]
fn w08_what_is_not_ours_to_decide_is_the_same_byte_by_byte() {
    let mut pod =
        pod_with(&json!([{"matchExpressions": [{"key": "a", "operator": "Later", "more": 1}], "later": {}}]));
    pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
        json!([{"weight": 1}]);
    pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1}]);
    pod["spec"]["unknown"] = json!({"of": ["a", "later", "version"]});
    let mut after = reviewed(&pod, &offloading(Remote, None));
    let required =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = after.pointer_mut(required).unwrap();
    assert_eq!(terms[0]["later"], json!({}), "also in a term");
    assert_eq!(terms[0]["matchExpressions"][0]["more"], 1);
    *terms = pod.pointer(required).unwrap().clone();
    after["spec"].as_object_mut().unwrap().remove("tolerations");
    assert_eq!(after.to_string(), pod.to_string());
}

#[test]
fn pods_that_somebody_else_placed_pass() {
    let daemon = |fields: Value| {
        let mut owner =
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": true, "name": "d"});
        owner.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"metadata": {"ownerReferences": [owner]}, "spec": {}})
    };
    let wants = offloading(Remote, Some(many("c", 2)));
    for pod in [
        json!({"spec": {"nodeName": "n1"}}),
        json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "h"}}, "spec": {}}),
        json!({"spec": {"runtimeClassName": "liqo"}}),
        daemon(json!({})),
    ] {
        assert_eq!(review(&pod, &wants), Ok(Vec::new()), "{pod}");
    }
    for pod in [
        json!({"spec": {"nodeName": "", "runtimeClassName": "kata"}}),
        daemon(json!({"kind": "ReplicaSet"})),
        daemon(json!({"controller": false})),
        daemon(json!({"apiVersion": "example.com/v1"})),
    ] {
        assert_eq!(review(&pod, &wants).unwrap().len(), 2, "{pod}");
    }
    for pod in
        [json!({}), json!({"spec": null}), json!({"spec": "x"}), pod_with(&json!("x")), pod_with(&json!([7]))]
    {
        assert!(matches!(review(&pod, &wants), Err(Denial::NotAPod(_))), "{pod}");
    }
}

#[test]
fn w03_local_changes_nothing() {
    let pod = pod_with(&many("a", 3));
    assert_eq!(review(&pod, &offloading(Local, Some(many("c", 200)))), Ok(Vec::new()));
}

#[test]
fn a_toleration_that_is_enough_is_not_repeated() {
    let key = label::NOT_ALLOWED;
    let all = offloading(LocalAndRemote, None);
    for (toleration, is_enough) in [
        (json!({"key": key, "operator": "Exists", "effect": "NoExecute"}), true),
        (json!({"key": key, "operator": "Exists"}), true),
        (json!({"operator": "Exists"}), true),
        (json!({"key": "", "operator": "Exists", "effect": "NoExecute"}), true),
        (json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}), false),
        (json!({"key": key, "operator": "Exists", "effect": "NoSchedule"}), false),
        (json!({"key": "test", "operator": "Exists"}), false),
        (json!({"key": key, "operator": "Equal", "value": "false"}), false),
    ] {
        let pod = json!({"spec": {"tolerations": [toleration]}});
        let patch = review(&pod, &all).unwrap();
        assert_eq!(patch.is_empty(), is_enough, "{toleration}");
        let after = reviewed(&pod, &all)["spec"]["tolerations"].clone();
        assert_eq!(after[0], toleration);
    }
}

#[test]
fn more_than_a_hundred_terms_are_denied_with_the_numbers() {
    let wants = |count| offloading(Remote, Some(many("c", count)));
    assert_eq!(review(&pod_with(&many("p", 20)), &wants(5)).unwrap().len(), 2, "a hundred");
    let denial = review(&pod_with(&many("p", 20)), &wants(6)).unwrap_err();
    assert_eq!(denial, Denial::TooManyTerms { pod: 20, offloading: 6, product: 120 });
    let text = denial.to_string();
    assert!(["20", "6", "120", "100"].into_iter().all(|number| text.contains(number)), "{text}");
    let denial = review(&json!({"spec": {}}), &wants(101)).unwrap_err();
    assert_eq!(denial, Denial::TooManyTerms { pod: 0, offloading: 101, product: 101 });
    let many_of_its_own = review(&pod_with(&many("p", 200)), &offloading(LocalAndRemote, None)).unwrap();
    assert_eq!(many_of_its_own.len(), 1, "nothing is imposed, so only the toleration");
}

#[test]
fn w02_a_denial_says_what_to_do() {
    let denial = Denial::NotOffloaded { namespace: "shop".into() }.to_string();
    assert!(
        denial.contains("freeport offload namespace shop")
            && denial.contains("liqo.io/scheduling-enabled=true")
    );
}

#[test]
fn a_pod_that_cannot_travel_stays_at_home_where_it_may() {
    let region = json!([{"matchExpressions": [{"key": "region", "operator": "In", "values": ["A"]}]}]);
    let at_home = |term: &Value| {
        let expressions = term["matchExpressions"].as_array().unwrap();
        expressions.contains(&json!({"key": "liqo.io/type", "operator": "NotIn", "values": ["virtual-node"]}))
    };
    let zone = json!([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]);
    let bare = json!({"metadata": {}, "spec": {"containers": []}});
    let required =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    for (wants, pod) in [
        (offloading(LocalAndRemote, None), &bare),
        (offloading(LocalAndRemote, Some(region.clone())), &bare),
        (offloading(LocalAndRemote, Some(region.clone())), &pod_with(&zone)),
    ] {
        let after = patched(pod, &review_untravelling(pod, &wants).unwrap());
        let terms = after.pointer(required).unwrap().as_array().unwrap();
        assert!(terms.len() == 1 && at_home(&terms[0]), "{after}");
        assert_eq!(after["spec"].get("tolerations"), None, "it has no business on a virtual node");
        assert_eq!(review_untravelling(&after, &wants), Ok(Vec::new()), "twice");
    }
    for strategy in [Local, Remote] {
        let wants = offloading(strategy, Some(region.clone()));
        assert_eq!(review_untravelling(&bare, &wants), review(&bare, &wants), "{strategy}");
    }
    let chosen = json!({"metadata": {}, "spec": {"runtimeClassName": "liqo"}});
    assert_eq!(review_untravelling(&chosen, &offloading(LocalAndRemote, None)), Ok(Vec::new()));
    assert!(review_untravelling(&json!({}), &offloading(LocalAndRemote, None)).is_err());
}
