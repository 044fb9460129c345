//! What a provider knows in tests.

use api::bind::{
    export::APIServiceExportRequest,
    label,
    resource::{InformerScope, Isolation},
};
use kit::objects::Change;
use serde_json::{Value, json};

use super::judge::{Exported, desired};
use crate::bind::{key::Key, known::Known};

/// A cluster namespace.
pub(super) const CNS: &str = "kube-bind-x";

/// An API, templates that offer it, by name and annotations, and which of them the consumer was granted.
pub(super) fn known(templates: &[(&str, Value)], granted: &str) -> Known {
    let mut known = Known::default();
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let crd = json!({
        "metadata": {"name": "mangodbs.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "mangodbs", "kind": "MangoDB"}, "versions": [version]},
    });
    known.crds.change(Change::Apply(serde_json::from_value(crd).unwrap()));
    for (name, annotations) in templates {
        let spec =
            json!({"scope": "Namespaced", "resources": [{"group": "example.com", "resource": "mangodbs"}]});
        let template = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
        known.templates.change(Change::Apply(serde_json::from_value(template).unwrap()));
    }
    let place = json!({"metadata": {"name": CNS, "labels": {label::BIND: label::CONTRACT},
        "annotations": {label::GRANTED_TEMPLATES: granted}}});
    known.places.change(Change::Apply(serde_json::from_value(place).unwrap()));
    known
}

/// An export that is there, of an API with Namespaces.
pub(super) fn exports(known: &mut Known, name: &str, isolation: &str, scope: &str) {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
    let schema = json!({"metadata": {"name": "n.g", "namespace": CNS, "annotations": {label::SOURCE_SPEC_HASH: "h"}}, "spec": {"informerScope": "Namespaced", "group": "g",
        "names": {"plural": "n", "kind": "N"}, "scope": scope, "versions": [version]}});
    known.schemas.change(Change::Apply(serde_json::from_value(schema).unwrap()));
    let export = json!({"metadata": {"name": name, "namespace": CNS}, "spec": {"informerScope": "Namespaced",
        "isolation": isolation, "resources": [{"group": "g", "resource": "n"}]}});
    known.exports.change(Change::Apply(serde_json::from_value(export).unwrap()));
}

/// What a request for that API comes to; the reason where it is refused.
pub(super) fn of(known: &Known) -> Result<Exported, &'static str> {
    let request = json!({"metadata": {"name": "mango", "namespace": CNS},
        "spec": {"resources": [{"group": "example.com", "resource": "mangodbs"}]}});
    let request: APIServiceExportRequest = serde_json::from_value(request).unwrap();
    let choices = (Isolation::Prefixed, InformerScope::Namespaced);
    desired(&Key::of(&request), &request, known, choices).map_err(|refused| refused.reason)
}
