//! What API binding adds.

use api::bind::resource::{Isolation, Resource};
use cli::objects::{Object, bind};
use serde_json::{Value, json};

use super::{is_looked_at, only};

fn api() -> Resource {
    Resource { group: "example.com".into(), resource: "mangodbs".into(), versions: Vec::new() }
}

fn all() -> Vec<Object> {
    let bound = bind::bound(&api()).to_vec();
    [bind::provider(), bind::consumer(), bind::offer(&api(), Isolation::Prefixed), bound].concat()
}

#[test]
fn binding_installs_what_is_ours_without_wildcards() {
    for object in all() {
        assert_eq!(object.body["metadata"]["labels"]["app.kubernetes.io/managed-by"], "freeport", "{object}");
        let rights = object.body["rules"].as_array();
        let requests = object.body["spec"]["matchConstraints"]["resourceRules"].as_array();
        for rule in rights.into_iter().chain(requests).flatten() {
            for list in ["apiGroups", "resources", "verbs", "resourceNames"] {
                assert!(!rule[list].to_string().contains('*'), "{object}: {rule}");
            }
        }
    }
}

#[test]
fn policies_of_binding_refuse_what_they_cannot_decide() {
    let mut names = Vec::new();
    for object in all() {
        if object.resource.kind == "ValidatingAdmissionPolicy" {
            assert_eq!(object.body["spec"]["failurePolicy"], "Fail", "{object}");
            for check in object.body["spec"]["validations"].as_array().unwrap() {
                assert!(check["message"].is_string() && check["messageExpression"].is_string(), "{check}");
            }
            names.push(object.name.clone());
        }
        if object.resource.kind == "ValidatingAdmissionPolicyBinding" {
            assert_eq!(object.body["spec"]["policyName"], object.name);
            assert_eq!(object.body["spec"]["validationActions"], json!(["Deny"]), "{object}");
        }
    }
    let objects = "freeport-bind-objects-mangodbs.example.com";
    assert_eq!(names, ["freeport-bind-requests", "freeport-bind-leader", "freeport-bind-crds", objects]);
}

/// An API may be used that is offered on.
#[test]
fn a_cluster_can_be_provider_and_consumer() {
    let mut names: Vec<_> = all().iter().map(ToString::to_string).collect();
    names.sort();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// What a role lets write, of other kinds than those of binding itself.
fn writes(role: &Value) -> Vec<(Value, Value)> {
    let reads = ["get", "list", "watch"];
    let rules = role["rules"].as_array().unwrap().iter();
    let writing = rules.filter(|rule| {
        let verbs = rule["verbs"].as_array().unwrap();
        rule["apiGroups"] != json!(["kube-bind.io"])
            && verbs.iter().any(|verb| !reads.contains(&verb.as_str().unwrap()))
    });
    writing.map(|rule| (rule["apiGroups"][0].clone(), rule["resources"][0].clone())).collect()
}

#[test]
fn all_that_daemons_may_write_for_binding_is_looked_at() {
    let leader = only(all(), "ValidatingAdmissionPolicy freeport-bind-leader");
    let roles = ["ClusterRole freeport-bind-provider", "Role freeport-system/freeport-bind-provider"];
    let rights: Vec<_> = roles.iter().flat_map(|role| writes(&only(bind::provider(), role))).collect();
    assert!(rights.len() >= 7, "{rights:?}");
    // Which roles it may give: those of resourceNames. An Event only says something.
    let are_free = [json!("clusterroles"), json!("events")];
    for (group, resource) in rights.iter().filter(|(_, resource)| !are_free.contains(resource)) {
        assert!(is_looked_at(&leader, group, resource), "{resource}");
    }
    let crds = only(all(), "ValidatingAdmissionPolicy freeport-bind-crds");
    let rights = writes(&only(bind::consumer(), "ClusterRole freeport-bind-consumer"));
    assert_eq!(rights.len(), 1);
    assert!(is_looked_at(&crds, &rights[0].0, &rights[0].1));
}

#[test]
fn all_that_a_consumer_may_write_of_an_api_is_looked_at() {
    let offer = bind::offer(&api(), Isolation::None);
    let policy = only(offer.clone(), "ValidatingAdmissionPolicy freeport-bind-objects-mangodbs.example.com");
    let rights = writes(&only(offer.clone(), "ClusterRole freeport-bind-mangodbs.example.com"));
    assert_eq!(rights, [(json!("example.com"), json!("mangodbs"))]);
    for resource in ["mangodbs", "mangodbs/status", "mangodbs/scale"] {
        assert!(is_looked_at(&policy, &json!("example.com"), &json!(resource)), "{resource}");
    }
    assert_eq!(policy["spec"]["matchConstraints"]["resourceRules"][0]["scope"], "*");
    let kinds: Vec<_> = offer.iter().map(|object| object.resource.kind.as_str()).collect();
    let right = kinds.iter().position(|kind| *kind == "ClusterRole");
    let binding = kinds.iter().position(|kind| *kind == "ValidatingAdmissionPolicyBinding");
    assert!(binding < right, "the policy comes before the rights: {kinds:?}");
}

#[test]
fn all_that_a_consumer_may_create_in_its_cluster_namespace_is_looked_at() {
    let policy = only(all(), "ValidatingAdmissionPolicy freeport-bind-requests");
    let looked_at = &policy["spec"]["matchConstraints"]["resourceRules"][0];
    assert_eq!(
        looked_at["operations"],
        json!(["CREATE", "UPDATE"]),
        "a deletion adds no finalizer of a consumer's"
    );
    let role = only(bind::provider(), "ClusterRole kube-binder");
    let rules = role["rules"].as_array().unwrap().iter();
    let makes = rules.filter(|rule| rule["verbs"].as_array().unwrap().contains(&json!("create")));
    let made: Vec<_> = makes.map(|rule| rule["resources"][0].clone()).collect();
    assert_eq!(looked_at["resources"], json!(made));
}
