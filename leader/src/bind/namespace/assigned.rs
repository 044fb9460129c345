//! Which Namespace one of a consumer's gets here, and whose it is: pure.

use api::bind::{
    export::{APIServiceExport, APIServiceNamespace},
    identity::prefixed_namespace,
    label,
    resource::Isolation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use crate::bind::{
    known::{Key, Known, Place},
    rights,
};

/// Why a Namespace of a consumer gets none here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("{0} is a Namespace of the system")]
    SystemNamespace(String),
    #[error("names like {0} are kept for Namespaces of consumers that have a prefix")]
    ReservedName(String),
    #[error(
        "Namespace {0} is there already, and was not made for this; annotation multicluster.freeport.dev/adopt=true on it lets it be used"
    )]
    NotOurs(String),
}

impl Refused {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::SystemNamespace(_) => "SystemNamespace",
            Self::ReservedName(_) => "ReservedName",
            Self::NotOurs(_) => "NotOurs",
        }
    }
}

/// Name of the Namespace here; nothing as long as nothing is exported that has Namespaces. What was said once stays.
pub(super) fn assigned(key: &Key, namespace: &APIServiceNamespace, known: &Known) -> Option<String> {
    let said = namespace.status.as_ref().and_then(|status| status.namespace.clone());
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        return Some(said);
    }
    if rights::in_namespaces(&key.cluster_namespace, known, is_live).is_empty() {
        return None;
    }
    // Requests that contradict each other are refused: all of these say the same.
    let is_none = known.exports_of(&key.cluster_namespace).any(|export| {
        export.spec.isolation == Isolation::None && is_live(export) && rights::has_namespaces(export, known)
    });
    Some(if is_none { key.name.clone() } else { prefixed_namespace(&key.cluster_namespace, &key.name) })
}

/// Whether the export is not taken back.
pub(super) fn is_live(export: &APIServiceExport) -> bool {
    export.metadata.deletion_timestamp.is_none()
}

/// Why no consumer gets this name, whatever is there; `own` is our Namespace. Without the prefix of its cluster namespace a consumer could
/// have the Namespace of another one before that one asks for it.
pub(super) fn reserved(key: &Key, name: &str, own: &str, prefix: &str) -> Option<Refused> {
    if name == "default" || name == own {
        return Some(Refused::SystemNamespace(name.to_owned()));
    }
    if name == prefixed_namespace(&key.cluster_namespace, &key.name) {
        return None;
    }
    if name.starts_with(prefix) {
        return Some(Refused::ReservedName(name.to_owned()));
    }
    name.starts_with("kube-").then(|| Refused::SystemNamespace(name.to_owned()))
}

/// Owners without exports, if there is one among them. Go's konnector lets the export that asked first own the APIServiceNamespace: it would
/// go with that one, though other exports need it (D5, D6).
pub(super) fn without_exports(namespace: &APIServiceNamespace) -> Option<Vec<OwnerReference>> {
    let (group, kind) = (APIServiceExport::group(&()), APIServiceExport::kind(&()));
    let is_export = |owner: &OwnerReference| {
        owner.kind == kind && owner.api_version.split('/').next() == Some(group.as_ref())
    };
    let (exports, others): (Vec<_>, Vec<_>) =
        namespace.owner_references().iter().cloned().partition(is_export);
    (!exports.is_empty()).then_some(others)
}

/// Whether the Namespace was made for this APIServiceNamespace.
pub(super) fn is_made_for(place: &Place, key: &Key) -> bool {
    let is_ours = place.labels().get(label::BIND).is_some_and(|value| value == label::OBJECTS);
    is_ours && place.annotations().get(label::API_SERVICE_NAMESPACE) == Some(&key.to_string())
}

/// Whether another APIServiceNamespace has its objects in this Namespace.
pub(super) fn is_shared(key: &Key, name: &str, known: &Known) -> bool {
    known.namespaces.iter().any(|other| {
        Key::of(other) != *key
            && other.status.as_ref().and_then(|status| status.namespace.as_deref()) == Some(name)
    })
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::*;

    fn key() -> Key {
        Key { cluster_namespace: "cns".into(), name: "team1".into() }
    }

    fn namespace(status: &str) -> APIServiceNamespace {
        let status = json!({"namespace": status});
        serde_json::from_value(
            json!({"metadata": {"name": "team1", "namespace": "cns"}, "spec": {}, "status": status}),
        )
        .unwrap()
    }

    fn known(isolation: &str) -> Known {
        let mut known = Known::default();
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
        let schema = json!({"metadata": {"name": "m.g", "namespace": "cns"}, "spec": {"informerScope": "Namespaced", "group": "g",
            "names": {"plural": "m", "kind": "M"}, "scope": "Namespaced", "versions": [version]}});
        known.schemas.change(Change::Apply(serde_json::from_value(schema).unwrap()));
        let export = json!({"metadata": {"name": "x", "namespace": "cns"}, "spec": {"informerScope": "Namespaced",
            "isolation": isolation, "resources": [{"group": "g", "resource": "m"}]}});
        known.exports.change(Change::Apply(serde_json::from_value(export).unwrap()));
        known
    }

    #[test]
    fn m5_where_objects_go() {
        let of = |status: &str, known: &Known| assigned(&key(), &namespace(status), known);
        assert_eq!(of("", &known("Prefixed")).as_deref(), Some("cns-team1"));
        assert_eq!(of("", &known("None")).as_deref(), Some("team1"));
        assert_eq!(of("said", &known("None")).as_deref(), Some("said"), "what was said once stays");
        assert_eq!(of("", &Known::default()), None);
        let mut known = known("Prefixed");
        for (name, deleted, api) in [("far", None, "other"), ("going", Some("2026-01-01T00:00:00Z"), "m")] {
            let export = json!({"metadata": {"name": name, "namespace": "cns", "deletionTimestamp": deleted},
                "spec": {"informerScope": "Namespaced", "isolation": "None", "resources": [{"group": "g", "resource": api}]}});
            known.exports.change(Change::Apply(serde_json::from_value(export).unwrap()));
        }
        let with_others = of("", &known);
        assert_eq!(with_others.as_deref(), Some("cns-team1"), "others have no Namespaces, or are going");
    }

    #[test]
    fn sec8_a_namespace_of_the_system_or_of_another_consumer_is_nobodys() {
        let why = |name: &str, prefix: &str| reserved(&key(), name, "freeport-system", prefix);
        for name in ["kube-system", "kube-public", "default", "freeport-system"] {
            assert_eq!(why(name, "kube-bind-"), Some(Refused::SystemNamespace(name.into())));
        }
        for (name, prefix) in [("kube-bind-x-team1", "kube-bind-"), ("c", "c"), ("cns-other", "cn")] {
            assert_eq!(why(name, prefix), Some(Refused::ReservedName(name.into())));
        }
        assert_eq!(why("cns-team1", "cn"), None, "it is its own");
        assert_eq!(why("team1", "kube-bind-"), None);
    }

    #[test]
    fn d6_an_export_owns_no_namespace() {
        let owner = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u"});
        let owned = |owners: serde_json::Value| -> APIServiceNamespace {
            let metadata = json!({"name": "team1", "namespace": "cns", "ownerReferences": owners});
            serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap()
        };
        let (go, other) =
            (owner("kube-bind.io/v1alpha2", "APIServiceExport"), owner("example.com/v1", "APIServiceExport"));
        let left = without_exports(&owned(json!([go, other]))).unwrap();
        assert_eq!(json!(left), json!([other]));
        assert_eq!(without_exports(&owned(json!([other]))), None);
    }

    #[test]
    fn d7_only_what_was_made_for_it_goes_and_only_with_the_last() {
        let place = |made_for: &str, value: &str| -> Place {
            serde_json::from_value(json!({"metadata": {"name": "team1", "labels": {label::BIND: value},
                "annotations": {label::API_SERVICE_NAMESPACE: made_for}}}))
            .unwrap()
        };
        assert!(is_made_for(&place("cns/team1", label::OBJECTS), &key()));
        assert!(!is_made_for(&place("cns/other", label::OBJECTS), &key()));
        assert!(!is_made_for(&place("cns/team1", "adopted"), &key()));
        let mut known = known("None");
        assert!(!is_shared(&key(), "team1", &known));
        let mut other = namespace("team1");
        other.metadata.namespace = Some("other".into());
        known.namespaces.change(Change::Apply(serde_json::from_value(json!(other)).unwrap()));
        assert!(is_shared(&key(), "team1", &known));
    }
}
