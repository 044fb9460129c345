//! What a request comes to: pure.

use std::collections::{BTreeMap, BTreeSet};

use api::bind::{
    bound_schema::BoundSchema,
    carried,
    export::{
        APIServiceExport, APIServiceExportRequest, APIServiceExportRequestSpec, APIServiceExportSpec,
        APIServiceNamespace, APIServiceNamespaceSpec,
    },
    grant::{EXPORTS_READY, Granted, NOT_GRANTED, Offered, Refused, granted},
    label,
    resource::{InformerScope, Isolation, Resource},
};
use kube::{ResourceExt, core::ObjectMeta};

use super::place::contradiction;
use crate::bind::{
    key::Key,
    known::{Known, granted_templates},
};

/// What a request that is granted comes to.
#[derive(Debug, PartialEq)]
pub(super) struct Exported {
    pub(super) schemas: Vec<BoundSchema>,
    pub(super) export: APIServiceExport,
    pub(super) namespaces: Vec<APIServiceNamespace>,
    /// What of the APIs is not carried.
    pub(super) left_out: Vec<String>,
}

/// What is to be there for the request.
pub(super) fn desired(
    key: &Key,
    request: &APIServiceExportRequest,
    known: &Known,
    (isolation, scope): (Isolation, InformerScope),
) -> Result<Exported, Refused> {
    let (granted, isolation) = judged(key, request, known, (isolation, scope))?;
    let within = |name: String| ObjectMeta {
        name: Some(name),
        namespace: Some(key.cluster_namespace.clone()),
        ..ObjectMeta::default()
    };
    let schemas: Vec<_> = granted.iter().map(|granted| bound_schema(granted, &within)).collect();
    let mut metadata = within(key.name.clone());
    let hash = carried::hash(schemas.iter().map(|schema| &schema.spec));
    metadata.annotations = Some([(label::SOURCE_SPEC_HASH.to_owned(), hash)].into());
    metadata.finalizers = Some(vec![label::BIND_FINALIZER.to_owned()]);
    let spec = APIServiceExportSpec {
        resources: granted.iter().map(|granted| granted.resource.clone()).collect(),
        permission_claims: request.spec.permission_claims.clone(),
        informer_scope: scope,
        isolation,
        cluster_scoped_isolation: None,
    };
    let namespaces = request.spec.namespaces.iter().map(|namespace| {
        let mut metadata = within(namespace.name.clone());
        metadata.labels = Some([(label::OWNER.to_owned(), "provider".to_owned())].into());
        APIServiceNamespace { metadata, spec: APIServiceNamespaceSpec {}, status: None }
    });
    Ok(Exported {
        export: APIServiceExport { metadata, spec, status: None },
        namespaces: namespaces.collect(),
        left_out: granted.into_iter().flat_map(|granted| granted.left_out).collect(),
        schemas,
    })
}

fn bound_schema(granted: &Granted, within: &impl Fn(String) -> ObjectMeta) -> BoundSchema {
    let mut metadata = within(granted.resource.name());
    let hash = carried::hash([&granted.schema]);
    metadata.annotations = Some([(label::SOURCE_SPEC_HASH.to_owned(), hash)].into());
    BoundSchema { metadata, spec: granted.schema.clone(), status: None }
}

/// By the first template that grants all of it, in the isolation of that template.
fn judged(
    key: &Key,
    request: &APIServiceExportRequest,
    known: &Known,
    (isolation, scope): (Isolation, InformerScope),
) -> Result<(Vec<Granted>, Isolation), Refused> {
    let names = known.contract(&key.cluster_namespace).map(granted_templates).unwrap_or_default();
    let templates = names.iter().filter_map(|name| known.template(name));
    let asked = request.spec.resources.iter().filter_map(|resource| known.crd(&resource.name()));
    let crds: BTreeMap<_, _> = asked.map(|crd| (crd.name_any(), &crd.spec)).collect();
    let bound = known.bound(&key.cluster_namespace);
    let exports = known.exports_of(&key.cluster_namespace);
    let going = exports.filter(|export| export.metadata.deletion_timestamp.is_some());
    let going = going.map(ResourceExt::name_any).collect();
    let judge = |templates: &[_], isolation| {
        let offered = Offered { templates, crds: &crds, bound: &bound, going: &going, isolation, scope };
        let granted = granted(&key.name, &request.spec, &offered)?;
        contradiction(key, &granted, isolation, known).map_or(Ok((granted, isolation)), Err)
    };
    let mut refused = None;
    for template in templates {
        let said = template.isolation().map(|said| said.unwrap_or(isolation));
        let judged = judge(std::slice::from_ref(&template.spec), *said.as_ref().unwrap_or(&isolation));
        let judged = match (judged, said) {
            // That it does not have what is asked for says more.
            (Err(error), Err(_)) if error.reason == NOT_GRANTED => Err(error),
            (_, Err(message)) => {
                Err(Refused { condition: EXPORTS_READY, reason: "UnknownIsolation", message })
            }
            (judged, Ok(_)) => judged,
        };
        match judged {
            Ok(granted) => return Ok(granted),
            Err(error) => refused = Some(nearer(refused, error)),
        }
    }
    match refused {
        Some(refused) => Err(refused),
        None => judge(&[], isolation),
    }
}

/// What is wrong by a template that has all that is asked for says more than that another one has not.
fn nearer(one: Option<Refused>, other: Refused) -> Refused {
    one.filter(|one| one.reason != NOT_GRANTED || other.reason == NOT_GRANTED).unwrap_or(other)
}

/// Whether an export has what is asked for, and no more. Who names no versions takes those that it has.
pub(super) fn is_granted_by(asked: &APIServiceExportRequestSpec, export: &APIServiceExportSpec) -> bool {
    let is_so = |asked: &Resource| {
        let mut same = export.resources.iter().filter(|has| has.name() == asked.name());
        let versions = |of: &Resource| of.versions.iter().cloned().collect::<BTreeSet<_>>();
        same.any(|has| asked.versions.is_empty() || versions(asked) == versions(has))
    };
    asked.resources.len() == export.resources.len()
        && asked.resources.iter().all(is_so)
        && asked.permission_claims == export.permission_claims
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::bind::request::fixture::{CNS, known, of};

    #[test]
    fn b1_b9_what_is_granted_is_exported_in_the_versions_that_are_served() {
        let exported = of(&known(&[("small", json!({}))], "small")).unwrap();
        assert_eq!(exported.schemas[0].name_any(), "mangodbs.example.com");
        assert_eq!(exported.export.spec.resources[0].versions, ["v1"]);
        assert_eq!(exported.export.spec.isolation, Isolation::Prefixed);
        assert_eq!(exported.export.finalizers(), [label::BIND_FINALIZER]);
    }

    #[test]
    fn namespaces_that_a_request_names_are_made_as_the_providers() {
        let mut known = known(&[("small", json!({}))], "small");
        let spec = json!({"scope": "Namespaced", "resources": [{"group": "example.com", "resource": "mangodbs"}],
            "namespaces": [{"name": "team1"}]});
        let template = json!({"metadata": {"name": "small"}, "spec": spec});
        known.templates.change(Change::Apply(serde_json::from_value(template).unwrap()));
        let request = json!({"metadata": {"name": "mango", "namespace": CNS}, "spec": spec});
        let request: APIServiceExportRequest = serde_json::from_value(request).unwrap();
        let choices = (Isolation::Prefixed, InformerScope::Namespaced);
        let made = desired(&Key::of(&request), &request, &known, choices).unwrap().namespaces;
        assert_eq!((made.len(), Key::of(&made[0]).to_string()), (1, format!("{CNS}/team1")));
        assert_eq!(made[0].labels()[label::OWNER], "provider");
    }

    #[test]
    fn a_template_that_was_not_granted_grants_nothing() {
        assert_eq!(of(&known(&[("small", json!({}))], "")).unwrap_err(), "NotGranted");
        assert_eq!(of(&known(&[("small", json!({}))], "gone")).unwrap_err(), "NotGranted");
    }

    #[test]
    fn a_template_can_say_how_its_objects_are_kept_apart() {
        let known = known(&[("converted", json!({label::ISOLATION: "Namespaced"}))], "converted");
        let exported = of(&known).unwrap();
        assert_eq!(exported.export.spec.isolation, Isolation::Namespaced);
        assert_eq!(exported.schemas[0].spec.scope, InformerScope::Cluster);
    }

    #[test]
    fn an_isolation_that_is_none_grants_nothing() {
        let odd = || ("odd", json!({label::ISOLATION: "Namespacd"}));
        assert_eq!(of(&known(&[odd()], "odd")).unwrap_err(), "UnknownIsolation");
        let isolation =
            of(&known(&[odd(), ("plain", json!({}))], "odd,plain")).unwrap().export.spec.isolation;
        assert_eq!(isolation, Isolation::Prefixed, "another template grants it");
        let mut elsewhere = known(&[odd()], "odd");
        let spec = json!({"scope": "Namespaced", "resources": [{"group": "g", "resource": "n"}]});
        let template = json!({"metadata": {"name": "odd", "annotations": odd().1}, "spec": spec});
        elsewhere.templates.change(Change::Apply(serde_json::from_value(template).unwrap()));
        assert_eq!(of(&elsewhere).unwrap_err(), "NotGranted", "it offers something else");
    }

    #[test]
    fn the_template_that_comes_nearest_says_why() {
        let no = |reason| Refused { condition: EXPORTS_READY, reason, message: String::new() };
        let nearest = |all: [&'static str; 2]| {
            all.into_iter()
                .fold(None, |one, other| Some(nearer(one, no(other))))
                .map(|refused| refused.reason)
        };
        assert_eq!(nearest([NOT_GRANTED, "DifferentScopes"]), Some("DifferentScopes"));
        assert_eq!(nearest(["DifferentScopes", NOT_GRANTED]), Some("DifferentScopes"));
        assert_eq!(nearest(["AlreadyBound", "DifferentScopes"]), Some("AlreadyBound"));
    }

    #[test]
    fn c9_an_export_that_is_there_grants_what_it_has() {
        let api = |versions: &[&str]| json!({"group": "g", "resource": "m", "versions": versions});
        let export: APIServiceExportSpec = serde_json::from_value(json!({
            "informerScope": "Namespaced", "isolation": "None", "resources": [api(&["v1", "v2"])],
        }))
        .unwrap();
        let asks = |resources: Value| {
            is_granted_by(&serde_json::from_value(json!({"resources": resources})).unwrap(), &export)
        };
        assert!(asks(json!([api(&[])])) && asks(json!([api(&["v2", "v1"])])));
        assert!(!asks(json!([api(&["v1"])])) && !asks(json!([api(&["v3"])])));
        assert!(!asks(json!([api(&[]), {"group": "g", "resource": "n"}])));
        assert!(!asks(json!([{"group": "g", "resource": "n"}])));
    }
}
