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
    offer::APIServiceExportTemplate,
    resource::{InformerScope, Isolation, Resource},
};
use kube::{ResourceExt, core::ObjectMeta};

use crate::bind::{
    key::Key,
    known::{Known, granted_templates},
    namespace::{place, said},
    rights,
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
    let judge = |templates: &[_], isolation| {
        let offered = Offered { templates, crds: &crds, bound: &bound, isolation, scope };
        let granted = granted(&key.name, &request.spec, &offered)?;
        contradiction(key, &granted, isolation, known).map_or(Ok((granted, isolation)), Err)
    };
    let mut refused = None;
    for template in templates {
        let said = isolation_of(template, isolation);
        let judged = judge(std::slice::from_ref(&template.spec), *said.as_ref().unwrap_or(&isolation));
        let judged = match (judged, said) {
            // That it does not have what is asked for says more.
            (Err(error), Err(_)) if error.reason == NOT_GRANTED => Err(error),
            (_, Err(unknown)) => Err(unknown),
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

/// As the template says, or as `usual` where it says nothing. Somebody who mistypes it wants another one than the usual.
fn isolation_of(template: &APIServiceExportTemplate, usual: Isolation) -> Result<Isolation, Refused> {
    let Some(said) = template.annotations().get(label::ISOLATION) else { return Ok(usual) };
    match said.to_ascii_lowercase().as_str() {
        "prefixed" => Ok(Isolation::Prefixed),
        "namespaced" => Ok(Isolation::Namespaced),
        "none" => Ok(Isolation::None),
        _ => {
            let message = format!(
                "APIServiceExportTemplate {} has an isolation that is none: annotation {} must be Prefixed, Namespaced or None, and is {said:?}",
                template.name_any(),
                label::ISOLATION,
            );
            Err(Refused { condition: EXPORTS_READY, reason: "UnknownIsolation", message })
        }
    }
}

/// A Namespace of a consumer has one place here, whatever is in it: where its name says whose it is, or where it does not. So a consumer
/// cannot have both for APIs that have Namespaces at its side.
fn contradiction(key: &Key, granted: &[Granted], isolation: Isolation, known: &Known) -> Option<Refused> {
    let has_namespaces = |granted: &Granted| granted.schema.scope == InformerScope::Namespaced;
    if isolation == Isolation::Namespaced || !granted.iter().any(has_namespaces) {
        return None;
    }
    let mut exports = known.exports_of(&key.cluster_namespace).filter(|export| export.name_any() != key.name);
    let other =
        exports.find(|export| export.spec.isolation != isolation && rights::has_namespaces(export, known));
    let message = match other {
        Some(other) => format!(
            "the objects of {} are kept apart otherwise ({:?}, not {isolation:?}), and a Namespace has one place at the provider",
            other.name_any(),
            other.spec.isolation
        ),
        None => left_over(key, isolation, known)?,
    };
    Some(Refused { condition: EXPORTS_READY, reason: "DifferentIsolation", message })
}

/// An APIServiceNamespace that an API left, with its copies, keeps its place.
fn left_over(key: &Key, isolation: Isolation, known: &Known) -> Option<String> {
    let is_elsewhere = |left: &&APIServiceNamespace| {
        let is_going = left.metadata.deletion_timestamp.is_some();
        !is_going && said(left).is_some_and(|said| said != place(&Key::of(*left), isolation))
    };
    let left = known.namespaces.within(&key.cluster_namespace).find(is_elsewhere)?;
    Some(format!(
        "APIServiceNamespace {}, which was left of an API whose objects were kept apart otherwise than {isolation:?}, has Namespace {}: \
         delete it, with which what was left there goes, or ask for an API of that isolation",
        left.name_any(),
        said(left).unwrap_or_default()
    ))
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

    const CNS: &str = "kube-bind-x";

    fn known(templates: &[(&str, Value)], granted: &str) -> Known {
        let mut known = Known::default();
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
        let crd = json!({
            "metadata": {"name": "mangodbs.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "mangodbs", "kind": "MangoDB"}, "versions": [version]},
        });
        known.crds.change(Change::Apply(serde_json::from_value(crd).unwrap()));
        for (name, annotations) in templates {
            let spec = json!({"scope": "Namespaced", "resources": [{"group": "example.com", "resource": "mangodbs"}]});
            let template = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
            known.templates.change(Change::Apply(serde_json::from_value(template).unwrap()));
        }
        let place = json!({"metadata": {"name": CNS, "labels": {label::BIND: label::CONTRACT},
            "annotations": {label::GRANTED_TEMPLATES: granted}}});
        known.places.change(Change::Apply(serde_json::from_value(place).unwrap()));
        known
    }

    /// An export that is there, of an API with Namespaces.
    fn exports(known: &mut Known, name: &str, isolation: &str, scope: &str) {
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
        let schema = json!({"metadata": {"name": "n.g", "namespace": CNS}, "spec": {"informerScope": "Namespaced", "group": "g",
            "names": {"plural": "n", "kind": "N"}, "scope": scope, "versions": [version]}});
        known.schemas.change(Change::Apply(serde_json::from_value(schema).unwrap()));
        let export = json!({"metadata": {"name": name, "namespace": CNS}, "spec": {"informerScope": "Namespaced",
            "isolation": isolation, "resources": [{"group": "g", "resource": "n"}]}});
        known.exports.change(Change::Apply(serde_json::from_value(export).unwrap()));
    }

    fn of(known: &Known) -> Result<Exported, &'static str> {
        let request = json!({"metadata": {"name": "mango", "namespace": CNS},
            "spec": {"resources": [{"group": "example.com", "resource": "mangodbs"}]}});
        let request: APIServiceExportRequest = serde_json::from_value(request).unwrap();
        let choices = (Isolation::Prefixed, InformerScope::Namespaced);
        desired(&Key::of(&request), &request, known, choices).map_err(|refused| refused.reason)
    }

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
    fn a_namespace_of_a_consumer_has_one_place_for_all_its_apis() {
        let with = |template: &str, isolation: &str, scope: &str| {
            let mut known = known(&[("a", json!({label::ISOLATION: template}))], "a");
            exports(&mut known, "other", isolation, scope);
            of(&known).map(|exported| exported.export.spec.isolation)
        };
        assert_eq!(with("Prefixed", "None", "Namespaced"), Err("DifferentIsolation"));
        assert_eq!(with("None", "Prefixed", "Namespaced"), Err("DifferentIsolation"));
        assert_eq!(with("None", "None", "Namespaced"), Ok(Isolation::None));
        assert_eq!(with("Prefixed", "None", "Cluster"), Ok(Isolation::Prefixed), "it has no Namespaces");
        assert_eq!(with("Namespaced", "None", "Namespaced"), Ok(Isolation::Namespaced), "nor has this");
        let mut known = known(&[("a", json!({})), ("b", json!({label::ISOLATION: "None"}))], "a,b");
        exports(&mut known, "other", "None", "Namespaced");
        let exported = of(&known).map(|exported| exported.export.spec.isolation);
        assert_eq!(exported, Ok(Isolation::None), "by the template that does not contradict");
    }

    #[test]
    fn what_an_api_left_keeps_its_place_and_nothing_of_another_isolation_goes_there() {
        let with = |isolation: &str, said: &str, deleted: Option<&str>| {
            let mut known = known(&[("a", json!({label::ISOLATION: isolation}))], "a");
            let left = json!({"metadata": {"name": "shop", "namespace": CNS, "uid": "n", "deletionTimestamp": deleted,
                "finalizers": [label::BIND_FINALIZER]}, "spec": {}, "status": {"namespace": said}});
            known.namespaces.change(Change::Apply(serde_json::from_value(left).unwrap()));
            of(&known).map(|exported| exported.export.spec.isolation)
        };
        let prefixed = format!("{CNS}-shop");
        assert_eq!(with("Prefixed", "shop", None), Err("DifferentIsolation"));
        assert_eq!(with("None", &prefixed, None), Err("DifferentIsolation"));
        assert_eq!(with("Prefixed", &prefixed, None), Ok(Isolation::Prefixed));
        assert_eq!(with("None", "shop", None), Ok(Isolation::None));
        assert_eq!(with("Namespaced", "shop", None), Ok(Isolation::Namespaced), "it has no Namespaces");
        assert_eq!(with("None", "", None), Ok(Isolation::None), "it has no place yet");
        let going = Some("2026-01-01T00:00:00Z");
        assert_eq!(with("Prefixed", "shop", going), Ok(Isolation::Prefixed), "it is made anew");
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
