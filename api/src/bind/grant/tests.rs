use serde_json::{Value, json};

use super::*;

const API: &str = "mangodbs.provider.example.com";

fn crd(plural: &str, scope: &str) -> (String, CustomResourceDefinitionSpec) {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let spec = json!({
        "group": "provider.example.com", "scope": scope, "names": {"plural": plural, "kind": "Kind"},
        "versions": [
            {"name": "v1alpha1", "served": false, "storage": false, "schema": schema},
            {"name": "v1", "served": true, "storage": true, "schema": schema},
            {"name": "v2", "served": true, "storage": false, "schema": schema},
        ],
    });
    (format!("{plural}.provider.example.com"), serde_json::from_value(spec).unwrap())
}

fn asked(plural: &str, versions: &[&str]) -> Value {
    json!({"group": "provider.example.com", "resource": plural, "versions": versions})
}

/// Versions of the first API, or the reason. The template offers three namespaced APIs, one of them in `v1` only, one in all versions by
/// their names, a cluster-scoped one, one without a CRD, a claim and a Namespace.
fn judged(request: &Value, bound: &[(&str, &str)], isolation: Isolation) -> Result<String, String> {
    let going = BTreeSet::from(["going".to_owned()]);
    let claim = json!({"group": "", "resource": "secrets", "selector": {"labelSelector": {}}});
    let all = ["mangodbs", "wide", "gone"].map(|plural| asked(plural, &[]));
    let named = [asked("pinned", &["v1"]), asked("named", &["v2", "v1"])];
    let all: Vec<_> = all.into_iter().chain(named).collect();
    let template = json!({
        "scope": "Namespaced", "resources": all, "permissionClaims": [claim], "namespaces": [{"name": "team"}],
    });
    let crds = [
        crd("mangodbs", "Namespaced"),
        crd("pinned", "Namespaced"),
        crd("named", "Namespaced"),
        crd("wide", "Cluster"),
        crd("other", "Namespaced"),
    ];
    let bound = bound.iter().map(|(api, export)| ((*api).to_owned(), (*export).to_owned())).collect();
    let offered = Offered {
        templates: &[serde_json::from_value(template).unwrap()],
        crds: &crds.iter().map(|(name, spec)| (name.clone(), spec)).collect(),
        bound: &bound,
        going: &going,
        isolation,
        scope: InformerScope::Namespaced,
    };
    let request = serde_json::from_value(request.clone()).unwrap();
    granted("mango", &request, &offered)
        .map(|granted| granted[0].resource.versions.join(" "))
        .map_err(|refused| format!("{}/{}", refused.condition, refused.reason))
}

#[test]
fn which_versions_a_template_has_is_said_to_who_asks_for_more_of_them() {
    let template = json!({"scope": "Namespaced", "resources": [asked("pinned", &["v1"])]});
    let crds = [crd("pinned", "Namespaced")];
    let offered = Offered {
        templates: &[serde_json::from_value(template).unwrap()],
        crds: &crds.iter().map(|(name, spec)| (name.clone(), spec)).collect(),
        bound: &BTreeMap::new(),
        going: &BTreeSet::new(),
        isolation: Isolation::Prefixed,
        scope: InformerScope::Namespaced,
    };
    let request = serde_json::from_value(json!({"resources": [asked("pinned", &[])]})).unwrap();
    let message = granted("mango", &request, &offered).unwrap_err().message;
    assert!(message.ends_with("pinned.provider.example.com in v1, v2 (only in v1)"), "{message}");
}

fn of(request: &Value) -> Result<String, String> {
    judged(request, &[], Isolation::Prefixed)
}

#[test]
fn b9_versions_are_those_that_are_asked_for_or_all_that_are_served() {
    assert_eq!(of(&json!({"resources": [asked("mangodbs", &[])]})).as_deref(), Ok("v1 v2"));
    assert_eq!(of(&json!({"resources": [asked("mangodbs", &["v2"])]})).as_deref(), Ok("v2"));
    let named = of(&json!({"resources": [asked("named", &[])]}));
    assert_eq!(named.as_deref(), Ok("v1 v2"), "the template has just those");
    let unserved = of(&json!({"resources": [asked("mangodbs", &["v1alpha1"])]}));
    assert_eq!(unserved.unwrap_err(), "ExportsReady/SchemaNotFound");
}

#[test]
fn what_is_not_granted_is_refused() {
    let not = Err("ExportsReady/NotGranted".to_owned());
    assert_eq!(
        of(&json!({"resources": [asked("other", &[])]})),
        not,
        "a CRD that may be exported is not enough"
    );
    assert_eq!(of(&json!({"resources": [asked("pinned", &["v2"])]})), not);
    assert_eq!(of(&json!({"resources": [asked("pinned", &[])]})), not, "all are more than one");
    assert_eq!(of(&json!({"resources": [asked("pinned", &["v1"])]})).as_deref(), Ok("v1"));
    assert_eq!(of(&json!({"resources": [asked("mangodbs", &[]), asked("mangodbs", &[])]})), not);
    let many: Vec<_> = (0..=APIS_MAX).map(|n| asked(&format!("m{n}"), &[])).collect();
    assert_eq!(of(&json!({ "resources": many[..APIS_MAX] })), not);
    assert_eq!(of(&json!({ "resources": many })), Err("ExportsReady/TooManyAPIs".to_owned()));
    let namespaces =
        |name: &str| json!({"resources": [asked("mangodbs", &[])], "namespaces": [{"name": name}]});
    assert_eq!(of(&namespaces("kube-system")), not);
    assert!(of(&namespaces("team")).is_ok());
    let none = Offered {
        templates: &[],
        crds: &BTreeMap::new(),
        bound: &BTreeMap::new(),
        going: &BTreeSet::new(),
        isolation: Isolation::None,
        scope: InformerScope::Cluster,
    };
    let request = serde_json::from_value(json!({"resources": [asked("mangodbs", &[])]})).unwrap();
    assert_eq!(granted("mango", &request, &none).unwrap_err().reason, "NotGranted");
}

#[test]
fn claims_are_those_of_a_template() {
    let claims =
        |claims: Value| of(&json!({"resources": [asked("mangodbs", &[])], "permissionClaims": claims}));
    let secrets = json!({"group": "", "resource": "secrets", "selector": {"labelSelector": {}}});
    assert!(claims(json!([secrets])).is_ok());
    assert_eq!(claims(json!([secrets, secrets])).unwrap_err(), "PermissionClaim/DuplicatePermissionClaim");
    let pods = json!({"group": "", "resource": "pods", "selector": {}});
    assert_eq!(claims(json!([pods])).unwrap_err(), "PermissionClaim/InvalidPermissionClaim");
    let maps = json!({"group": "", "resource": "configmaps", "selector": {}});
    assert_eq!(claims(json!([maps])).unwrap_err(), "ExportsReady/NotGranted");
}

#[test]
fn b8_b16_scopes_schemas_and_what_is_bound_already() {
    let two = json!({"resources": [asked("mangodbs", &[]), asked("wide", &[])]});
    assert_eq!(of(&two).unwrap_err(), "ExportsReady/DifferentScopes");
    assert_eq!(of(&json!({"resources": [asked("gone", &[])]})).unwrap_err(), "ExportsReady/SchemaNotFound");
    let request = json!({"resources": [asked("mangodbs", &[])]});
    let bound = |export: &str| judged(&request, &[(API, export)], Isolation::Prefixed);
    assert_eq!(bound("earlier").unwrap_err(), "ExportsReady/AlreadyBound");
    assert_eq!(bound("going").unwrap_err(), "ExportsReady/ExportIsGoing");
    assert!(bound("mango").is_ok(), "by itself");
    let wide = json!({"resources": [asked("wide", &[])]});
    assert_eq!(judged(&wide, &[], Isolation::Namespaced).unwrap_err(), "ExportsReady/NotCarried");
}
