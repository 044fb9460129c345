//! Whether a consumer may have what it asks for: pure.
//!
//! All is judged before anything is made. A consumer may ask for whatever it likes in its cluster namespace; it gets what lies within
//! the templates that were granted to it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionSpec;

use super::{
    bound_schema::BoundSchemaSpec,
    carried::bound,
    export::APIServiceExportRequestSpec,
    offer::APIServiceExportTemplateSpec,
    resource::{InformerScope, Isolation, PermissionClaim, Resource},
};

/// APIs whose objects can go along with those that are bound, all of Kubernetes' own group.
const CLAIMABLE: [&str; 3] = ["configmaps", "secrets", "serviceaccounts"];

/// What there is to judge by.
pub struct Offered<'a> {
    /// Templates that were granted to this consumer.
    pub templates: &'a [APIServiceExportTemplateSpec],
    /// CRDs that may be exported, by `<plural>.<group>`.
    pub crds: &'a BTreeMap<String, &'a CustomResourceDefinitionSpec>,
    /// Under which export this consumer has an API already, by `<plural>.<group>`.
    pub bound: &'a BTreeMap<String, String>,
    /// Those of these exports that are being deleted.
    pub going: &'a BTreeSet<String>,
    /// How objects of consumers are kept apart.
    pub isolation: Isolation,
    /// How much of the provider konnectors watch.
    pub scope: InformerScope,
}

/// Why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The condition that says so.
    pub condition: &'static str,
    /// One CamelCase word for machines.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Reason: no template that was granted has all that is asked for.
pub const NOT_GRANTED: &str = "NotGranted";
/// Reason: an export that is being deleted has what is asked for, until its end.
pub const EXPORT_IS_GOING: &str = "ExportIsGoing";
/// Most APIs in one request.
pub const APIS_MAX: usize = 100;
/// Condition of a request: what it asks for can be exported.
pub const EXPORTS_READY: &str = "ExportsReady";
/// Condition of a request: its claims are in order.
pub const PERMISSION_CLAIM: &str = "PermissionClaim";

fn no(reason: &'static str, message: String) -> Refused {
    Refused { condition: EXPORTS_READY, reason, message }
}

/// An API that a consumer may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// With the versions that it asked for, or all that are served.
    pub resource: Resource,
    /// Its CRD, as it is to be at the consumer.
    pub schema: BoundSchemaSpec,
    /// What of the CRD does not arrive.
    pub left_out: Vec<String>,
}

/// What a request of this name gets.
///
/// # Errors
/// [`Refused`], for the first thing that is not as it has to be.
pub fn granted(
    name: &str,
    request: &APIServiceExportRequestSpec,
    offered: &Offered<'_>,
) -> Result<Vec<Granted>, Refused> {
    let apis = request.resources.len();
    if apis > APIS_MAX {
        return Err(no("TooManyAPIs", format!("the request has {apis} APIs; the limit is {APIS_MAX}")));
    }
    check_claims(&request.permission_claims)?;
    let mut seen = BTreeSet::new();
    for resource in &request.resources {
        if !seen.insert(resource.name()) {
            return Err(no(NOT_GRANTED, format!("{} is asked for twice", resource.name())));
        }
    }
    // Who names no versions asks for those that are served: a template may name the same.
    let resources: Vec<_> = request.resources.iter().map(|asked| in_versions(asked, offered)).collect();
    within_a_template(&resources, request, offered.templates)?;
    let all: Result<Vec<_>, _> = resources.iter().map(|resource| one(name, resource, offered)).collect();
    let all = all?;
    let scopes: BTreeSet<_> = request.resources.iter().filter_map(|r| scope_of(r, offered)).collect();
    if scopes.len() > 1 {
        return Err(no("DifferentScopes", "all APIs of one request must have the same scope".into()));
    }
    Ok(all)
}

fn scope_of<'a>(resource: &Resource, offered: &Offered<'a>) -> Option<&'a str> {
    offered.crds.get(&resource.name()).map(|crd| crd.scope.as_str())
}

fn in_versions(asked: &Resource, offered: &Offered<'_>) -> Resource {
    let crd = offered.crds.get(&asked.name()).filter(|_| asked.versions.is_empty());
    let versions = crd.map_or_else(|| asked.versions.clone(), |crd| served(crd));
    Resource { versions, ..asked.clone() }
}

fn served(crd: &CustomResourceDefinitionSpec) -> Vec<String> {
    crd.versions.iter().filter(|version| version.served).map(|version| version.name.clone()).collect()
}

/// One template has to have all of it: what two offer, each for itself, was never offered together.
fn within_a_template(
    resources: &[Resource],
    request: &APIServiceExportRequestSpec,
    templates: &[APIServiceExportTemplateSpec],
) -> Result<(), Refused> {
    if templates.is_empty() {
        return Err(no(NOT_GRANTED, "no template was granted to this consumer".into()));
    }
    let lacking = templates.iter().map(|template| beyond(resources, request, template));
    // The template that comes nearest says what is too much.
    let nearest = lacking.min_by_key(Vec::len).unwrap_or_default();
    match nearest.is_empty() {
        true => Ok(()),
        false => Err(no(
            NOT_GRANTED,
            format!("the templates that were granted do not have {}", nearest.join(", ")),
        )),
    }
}

/// What of a request a template does not have.
fn beyond(
    resources: &[Resource],
    request: &APIServiceExportRequestSpec,
    template: &APIServiceExportTemplateSpec,
) -> Vec<String> {
    let offers = |asked: &Resource| {
        template.resources.iter().filter(|offered| offered.name() == asked.name()).any(|offered| {
            offered.versions.is_empty()
                || !asked.versions.is_empty() && asked.versions.iter().all(|v| offered.versions.contains(v))
        })
    };
    let resources =
        resources.iter().filter(|asked| !offers(asked)).map(|asked| match asked.versions.is_empty() {
            true => asked.name(),
            false => format!("{} in {}", asked.name(), asked.versions.join(", ")),
        });
    let claims = request.permission_claims.iter().filter(|claim| !template.permission_claims.contains(claim));
    let claims = claims.map(|claim| format!("the claim on {}", claim.resource));
    let namespaces = request.namespaces.iter().filter(|namespace| !template.namespaces.contains(namespace));
    let namespaces = namespaces.map(|namespace| format!("Namespace {}", namespace.name));
    resources.chain(claims).chain(namespaces).collect()
}

fn one(name: &str, asked: &Resource, offered: &Offered<'_>) -> Result<Granted, Refused> {
    let api = asked.name();
    let crd = offered.crds.get(&api).ok_or_else(|| {
        no("SchemaNotFound", format!("no CRD {api} is labelled kube-bind.io/exported=true at the provider"))
    })?;
    if let Some(export) = offered.bound.get(&api).filter(|export| *export != name) {
        return Err(match offered.going.contains(export) {
            true => no(EXPORT_IS_GOING, format!("{api} is bound by {export}, which is being deleted")),
            false => no("AlreadyBound", format!("{api} is bound already, by {export}")),
        });
    }
    let served = served(crd);
    if let Some(unserved) = asked.versions.iter().find(|version| !served.contains(version)) {
        return Err(no("SchemaNotFound", format!("the provider does not serve version {unserved} of {api}")));
    }
    let (schema, left_out) = bound(crd, offered.isolation, offered.scope)
        .map_err(|error| no("NotCarried", format!("{api} cannot be exported: {error}")))?;
    Ok(Granted { resource: asked.clone(), schema, left_out })
}

fn check_claims(claims: &[PermissionClaim]) -> Result<(), Refused> {
    let refused = |reason, message| Err(Refused { condition: PERMISSION_CLAIM, reason, message });
    let mut seen = BTreeSet::new();
    for claim in claims {
        if !claim.group.is_empty() || !CLAIMABLE.contains(&claim.resource.as_str()) {
            let message = format!(
                "{}.{} cannot be claimed: only {}",
                claim.resource,
                claim.group,
                CLAIMABLE.join(", ")
            );
            return refused("InvalidPermissionClaim", message);
        }
        if !seen.insert(&claim.resource) {
            return refused("DuplicatePermissionClaim", format!("{} is claimed twice", claim.resource));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            claims(json!([secrets, secrets])).unwrap_err(),
            "PermissionClaim/DuplicatePermissionClaim"
        );
        let pods = json!({"group": "", "resource": "pods", "selector": {}});
        assert_eq!(claims(json!([pods])).unwrap_err(), "PermissionClaim/InvalidPermissionClaim");
        let maps = json!({"group": "", "resource": "configmaps", "selector": {}});
        assert_eq!(claims(json!([maps])).unwrap_err(), "ExportsReady/NotGranted");
    }

    #[test]
    fn b8_b16_scopes_schemas_and_what_is_bound_already() {
        let two = json!({"resources": [asked("mangodbs", &[]), asked("wide", &[])]});
        assert_eq!(of(&two).unwrap_err(), "ExportsReady/DifferentScopes");
        assert_eq!(
            of(&json!({"resources": [asked("gone", &[])]})).unwrap_err(),
            "ExportsReady/SchemaNotFound"
        );
        let request = json!({"resources": [asked("mangodbs", &[])]});
        let bound = |export: &str| judged(&request, &[(API, export)], Isolation::Prefixed);
        assert_eq!(bound("earlier").unwrap_err(), "ExportsReady/AlreadyBound");
        assert_eq!(bound("going").unwrap_err(), "ExportsReady/ExportIsGoing");
        assert!(bound("mango").is_ok(), "by itself");
        let wide = json!({"resources": [asked("wide", &[])]});
        assert_eq!(judged(&wide, &[], Isolation::Namespaced).unwrap_err(), "ExportsReady/NotCarried");
    }
}
