//! Which Namespace one of a consumer's gets here, and whose it is: pure.

use api::bind::{
    export::{APIServiceExport, APIServiceNamespace},
    identity::prefixed_namespace,
    label,
    resource::Isolation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use crate::bind::{REFUSED, key::Key, known::Known, lean::is_held, rights};

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
    #[error(
        "it has Namespace {0} from an API whose objects were kept apart otherwise, and those of the APIs that are exported now belong \
         elsewhere: delete the APIServiceNamespace, and what was left in {0} goes with it"
    )]
    OtherIsolation(String),
    /// In the words of the API server.
    #[error("{0}")]
    ByServer(String),
}

impl Refused {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::SystemNamespace(_) => "SystemNamespace",
            Self::ReservedName(_) => "ReservedName",
            Self::NotOurs(_) => "NotOurs",
            Self::OtherIsolation(_) => "DifferentIsolation",
            Self::ByServer(_) => REFUSED,
        }
    }

    /// The Namespace that it has all the same: while the API server takes nothing new it keeps what it has, and what was left there goes
    /// with it.
    pub(super) fn leaves<'a>(&self, namespace: &'a APIServiceNamespace) -> Option<&'a str> {
        said(namespace).filter(|_| matches!(self, Self::ByServer(_) | Self::OtherIsolation(_)))
    }
}

/// Name of the Namespace here; nothing as long as nothing is exported that has Namespaces. What was said once stays.
pub(super) fn assigned(key: &Key, namespace: &APIServiceNamespace, known: &Known) -> Option<String> {
    if let Some(said) = said(namespace) {
        return Some(said.to_owned());
    }
    given(key, known)
}

/// One that was left has another place than the APIs that are exported now: nothing of those goes there.
pub(super) fn contradiction(key: &Key, namespace: &APIServiceNamespace, known: &Known) -> Option<Refused> {
    let (said, given) = (said(namespace)?, given(key, known)?);
    (said != given).then(|| Refused::OtherIsolation(said.to_owned()))
}

fn given(key: &Key, known: &Known) -> Option<String> {
    if rights::in_namespaces(&key.cluster_namespace, known).is_empty() {
        return None;
    }
    // Requests that contradict each other are refused: all of these say the same.
    let is_none = known.exports_of(&key.cluster_namespace).any(|export| {
        export.spec.isolation == Isolation::None
            && rights::is_live(export)
            && rights::has_namespaces(export, known)
    });
    Some(place(key, if is_none { Isolation::None } else { Isolation::Prefixed }))
}

/// Where one of this name has its Namespace.
pub(in crate::bind) fn place(key: &Key, isolation: Isolation) -> String {
    match isolation {
        Isolation::None => key.name.clone(),
        _ => prefixed_namespace(&key.cluster_namespace, &key.name),
    }
}

/// Where it may have a Namespace or rights, whatever is exported and known by now: where it was said, or, as long as nothing was said,
/// where it can be. Nothing is made before it has our finalizer.
pub(in crate::bind) fn places(namespace: &APIServiceNamespace) -> Vec<String> {
    let key = Key::of(namespace);
    match said(namespace) {
        Some(said) => vec![said.to_owned()],
        None if is_held(&namespace.metadata) => {
            vec![prefixed_namespace(&key.cluster_namespace, &key.name), key.name]
        }
        None => Vec::new(),
    }
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

/// What a Namespace that is there is to an APIServiceNamespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It was made for this, or is let be used, or others have it already beside the one that it was made for.
    Free,
    /// It was made for another consumer's Namespace of the same name: this one is the second in it.
    ToShare,
    /// It is somebody else's.
    NotOurs,
}

pub(super) fn use_of<P: Resource>(there: &P, key: &Key) -> Use {
    let is = |annotation: &str| there.annotations().get(annotation).is_some_and(|value| value == "true");
    if is_made_for(there, key) || is(label::ADOPT) {
        return Use::Free;
    }
    match is_without_prefix(there, key) {
        true if is(label::SHARED) => Use::Free,
        true => Use::ToShare,
        false => Use::NotOurs,
    }
}

/// Whether the Namespace was made for this APIServiceNamespace.
pub(super) fn is_made_for<P: Resource>(place: &P, key: &Key) -> bool {
    is_made(place) && place.annotations().get(label::API_SERVICE_NAMESPACE) == Some(&key.to_string())
}

fn is_made<P: Resource>(place: &P) -> bool {
    place.labels().get(label::BIND).is_some_and(|value| value == label::OBJECTS)
}

/// Whether it was made for a consumer's Namespace of the same name, as this is one: for isolation None.
pub(super) fn is_without_prefix<P: Resource>(place: &P, key: &Key) -> bool {
    let made_for = place.annotations().get(label::API_SERVICE_NAMESPACE);
    let of = made_for.and_then(|made_for| Some(made_for.split_once('/')?.1));
    is_made(place) && of == Some(&place.name_any()) && of == Some(&key.name)
}

/// What was said that it has.
pub(in crate::bind) fn said(namespace: &APIServiceNamespace) -> Option<&str> {
    namespace.status.as_ref()?.namespace.as_deref().filter(|said| !said.is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::*;
    use crate::bind::known::Place;

    pub(in crate::bind::namespace) fn key() -> Key {
        Key { cluster_namespace: "cns".into(), name: "team1".into() }
    }

    pub(in crate::bind::namespace) fn namespace(status: &str) -> APIServiceNamespace {
        let status = json!({"namespace": status});
        serde_json::from_value(
            json!({"metadata": {"name": "team1", "namespace": "cns"}, "spec": {}, "status": status}),
        )
        .unwrap()
    }

    pub(in crate::bind::namespace) fn known(isolation: &str) -> Known {
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
    fn one_that_was_left_with_another_place_is_not_for_what_is_exported_now() {
        let why = |status: &str, known: &Known| contradiction(&key(), &namespace(status), known);
        let refused = why("team1", &known("Prefixed")).unwrap();
        assert_eq!(refused, Refused::OtherIsolation("team1".into()));
        assert_eq!(refused.leaves(&namespace("team1")), Some("team1"), "what was left there goes with it");
        assert!(why("cns-team1", &known("None")).is_some());
        for (status, isolation) in [("team1", "None"), ("cns-team1", "Prefixed"), ("", "None")] {
            assert_eq!(why(status, &known(isolation)), None);
        }
        assert_eq!(why("team1", &Known::default()), None, "nothing is exported that has Namespaces");
    }

    #[test]
    fn what_an_api_server_refuses_takes_no_namespace_away() {
        let has = namespace("cns-team1");
        assert_eq!(Refused::ByServer("no".into()).leaves(&has), Some("cns-team1"));
        assert_eq!(Refused::ByServer("no".into()).leaves(&namespace("")), None);
        assert_eq!(Refused::NotOurs("cns-team1".into()).leaves(&has), None, "it is somebody else's by now");
    }

    #[test]
    fn what_it_may_have_is_looked_for_where_it_was_said_and_else_wherever_it_can_be() {
        let mut asked = namespace("");
        assert!(places(&asked).is_empty(), "nothing was made yet");
        asked.metadata.finalizers = Some(vec![label::BIND_FINALIZER.to_owned()]);
        assert_eq!(places(&asked), ["cns-team1", "team1"], "also when nothing is exported any more");
        assert_eq!(places(&namespace("said")), ["said"]);
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

    pub(in crate::bind::namespace) fn made(name: &str, made_for: &str, is_shared: bool) -> Place {
        let annotations =
            json!({label::API_SERVICE_NAMESPACE: made_for, label::SHARED: is_shared.to_string()});
        let labels = json!({label::BIND: label::OBJECTS});
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn a_namespace_without_prefix_is_for_all_consumers_that_have_one_of_its_name() {
        let of = |place: &Place| use_of(place, &key());
        assert_eq!(of(&made("cns-team1", "cns/team1", false)), Use::Free);
        assert_eq!(of(&made("team1", "other/team1", false)), Use::ToShare);
        assert_eq!(of(&made("team1", "other/team1", true)), Use::Free);
        assert_eq!(of(&made("other-team1", "other/team1", true)), Use::NotOurs);
        assert_eq!(of(&made("team2", "other/team2", false)), Use::NotOurs);
        let mut users = made("team1", "other/team1", false);
        users.metadata.labels = None;
        assert_eq!(of(&users), Use::NotOurs);
        users.metadata.annotations = Some([(label::ADOPT.to_owned(), "true".to_owned())].into());
        assert_eq!(of(&users), Use::Free);
    }
}
