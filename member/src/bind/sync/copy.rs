//! What the copy of an object is to be: pure.

use std::collections::BTreeMap;

use api::bind::{
    label::{
        ADOPT, BINDING_UID, CLUSTER_NAMESPACE, CONSUMER_NAMESPACE, CONSUMER_UID, PROVIDER_NAMESPACE,
        PROVIDER_UID,
    },
    mapping::Strategy,
};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::entry::{Here, There};
use crate::bind::contract::{ClusterNamespace, MANAGER};

/// Holds a copy of everything else, and is of no use elsewhere.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whose an object at the provider is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// It is a copy of ours.
    Ours,
    /// It says that it is of this cluster namespace.
    Anothers(String),
    /// It is nobody's, and its owner lets it be taken over.
    Offered,
    /// It does not say.
    Nobodys,
}

/// Whose the object is, by its annotations. One that lost them but is as we applied it for this very object is ours: it says so, or the
/// object says that its copy is this very one.
pub(crate) fn whose(there: &There, here: Option<&Here>, cluster_namespace: &str) -> Whose {
    let says = |key: &str| there.annotations().get(key).map(String::as_str);
    match says(CLUSTER_NAMESPACE) {
        Some(name) if name == cluster_namespace => Whose::Ours,
        Some(other) => Whose::Anothers(other.to_owned()),
        None if is_offered(there) => Whose::Offered,
        None => {
            let uid = here.and_then(ResourceExt::uid);
            let knows = here.and_then(|here| here.annotations().get(PROVIDER_UID));
            let is_its = uid.is_some() && says(CONSUMER_UID) == uid.as_deref()
                || knows.is_some() && knows == there.uid().as_ref();
            if is_its && owned(there).is_some() { Whose::Ours } else { Whose::Nobodys }
        }
    }
}

/// Whether its owner lets consumers take it over. It was there before them, and stays when they go.
pub(crate) fn is_offered(there: &There) -> bool {
    there.annotations().get(ADOPT).is_some_and(|value| value == "true")
}

/// Whether a copy of ours was left by another binding, which is gone: it stays until an object of this one takes it over. A konnector of Go's
/// does not say by which it made one.
pub(crate) fn is_left(there: &There, here: Option<&Here>, binding_uid: &str) -> bool {
    let says = |key: &str| there.annotations().get(key).map(String::as_str);
    let is_its = here.and_then(ResourceExt::uid).is_some_and(|uid| says(CONSUMER_UID) == Some(&*uid));
    !is_its && says(BINDING_UID).map_or(here.is_none(), |made_by| made_by != binding_uid)
}

/// Our fields of it, as `managedFields` name them.
fn owned(there: &There) -> Option<&Value> {
    let entries = there.metadata.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| {
        entry.manager.as_deref() == Some(MANAGER)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    ours.next()?.fields_v1.as_ref().map(|fields| &fields.0)
}

/// What is to be applied: every field of the object but its status, and whose it is. Labels and annotations travel once, with the
/// first apply; later ones only say again which of them are ours.
pub(crate) fn copy(
    here: &Here,
    there: Option<&There>,
    strategy: Strategy,
    (cluster_namespace, binding_uid): (&ClusterNamespace, &str),
) -> Value {
    let content = here.content.iter().filter(|(field, _)| *field != "status");
    let mut copy: Map<_, _> = content.map(|(field, value)| (field.clone(), value.clone())).collect();
    let (labels, mut annotations) = match there {
        None => (here.labels().clone(), first_annotations(here)),
        Some(there) => (
            still_ours(there, "f:labels", there.labels()),
            still_ours(there, "f:annotations", there.annotations()),
        ),
    };
    let says = [
        (CLUSTER_NAMESPACE, cluster_namespace.name.clone()),
        (CONSUMER_NAMESPACE, here.namespace().unwrap_or_default()),
        (CONSUMER_UID, here.uid().unwrap_or_default()),
        (BINDING_UID, binding_uid.to_owned()),
    ];
    annotations.extend(says.map(|(key, value)| (key.to_owned(), value)));
    let mut metadata = json!({ "annotations": annotations });
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    if matches!(strategy, Strategy::Shared | Strategy::Prefixed) {
        let ClusterNamespace { name, uid } = cluster_namespace;
        metadata["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": uid}]);
    }
    copy.insert("metadata".into(), metadata);
    Value::Object(copy)
}

fn first_annotations(here: &Here) -> BTreeMap<String, String> {
    let stays = |key: &str| [LAST_APPLIED, PROVIDER_NAMESPACE, PROVIDER_UID, ADOPT].contains(&key);
    here.annotations().iter().filter(|(key, _)| !stays(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn still_ours(there: &There, field: &str, all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let ours = owned(there).and_then(|fields| fields["f:metadata"][field].as_object());
    let is_ours = |key: &str| ours.is_some_and(|ours| ours.contains_key(&format!("f:{key}")));
    all.iter().filter(|(key, _)| is_ours(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(value: Value) -> Here {
        serde_json::from_value(value).unwrap()
    }

    fn there(value: Value) -> There {
        serde_json::from_value(value).unwrap()
    }

    fn cns() -> ClusterNamespace {
        ClusterNamespace { name: "kube-bind-37p3oxx6sh4fd".into(), uid: "n1".into() }
    }

    fn foo() -> Here {
        here(json!({
            "apiVersion": "provider.example.com/v1", "kind": "MangoDB",
            "metadata": {
                "name": "foo", "namespace": "team1", "uid": "u1", "resourceVersion": "7", "labels": {"app": "x"},
                "annotations": {"note": "n", LAST_APPLIED: "{}", PROVIDER_UID: "old"},
                "finalizers": ["user/f"], "ownerReferences": [{"apiVersion": "v1", "kind": "O", "name": "o", "uid": "o"}],
            },
            "spec": {"size": "l", "opts": {"a": 1, "b": 2}}, "data": {"more": null}, "status": {"phase": "P"},
        }))
    }

    #[test]
    fn o1_o3_o5_o6_the_first_copy() {
        let first = |strategy| copy(&foo(), None, strategy, (&cns(), "b1"));
        let annotations = json!({
            "note": "n", CLUSTER_NAMESPACE: "kube-bind-37p3oxx6sh4fd", CONSUMER_NAMESPACE: "team1", CONSUMER_UID: "u1",
            BINDING_UID: "b1",
        });
        let content = json!({"spec": {"size": "l", "opts": {"a": 1, "b": 2}}, "data": {"more": null}});
        let mut want = content.clone();
        want["metadata"] = json!({"labels": {"app": "x"}, "annotations": annotations});
        assert_eq!(first(Strategy::Namespaced), want);
        assert_eq!(first(Strategy::Converted), want);
        want["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "kube-bind-37p3oxx6sh4fd", "uid": "n1"}]);
        assert_eq!(first(Strategy::Prefixed), want);
        assert_eq!(first(Strategy::Shared), want);
    }

    #[test]
    fn t4_labels_and_annotations_travel_once_and_stay() {
        let fields = json!({"f:metadata": {"f:labels": {"f:app": {}}, "f:annotations": {"f:note": {}}}});
        let there = there(json!({"metadata": {
            "name": "foo", "labels": {"app": "x", "theirs": "1"}, "annotations": {"note": "n", "theirs": "2"},
            "managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}],
        }}));
        let mut changed = foo();
        changed.metadata.labels = Some([("app".to_owned(), "y".to_owned())].into());
        let copy = copy(&changed, Some(&there), Strategy::Namespaced, (&cns(), "b1"));
        assert_eq!(copy["metadata"]["labels"], json!({"app": "x"}));
        assert_eq!(copy["metadata"]["annotations"]["note"], "n");
        assert_eq!(copy["metadata"]["annotations"].as_object().unwrap().len(), 5);
    }

    #[test]
    fn t7_t17_whose_it_is() {
        let of = |annotations: Value, managed: Value| {
            let metadata =
                json!({"name": "foo", "uid": "p1", "annotations": annotations, "managedFields": managed});
            whose(&there(json!({ "metadata": metadata })), Some(&foo()), &cns().name)
        };
        assert_eq!(of(json!({CLUSTER_NAMESPACE: cns().name}), json!([])), Whose::Ours);
        assert_eq!(of(json!({CLUSTER_NAMESPACE: "B"}), json!([])), Whose::Anothers("B".into()));
        assert_eq!(of(json!({}), json!([])), Whose::Nobodys);
        let applied = json!([{"manager": MANAGER, "operation": "Apply", "fieldsV1": {}}]);
        assert_eq!(of(json!({CONSUMER_UID: "u1"}), applied.clone()), Whose::Ours);
        assert_eq!(of(json!({CONSUMER_UID: "u2"}), applied.clone()), Whose::Nobodys);
        let mut knows = foo();
        knows.annotations_mut().insert(PROVIDER_UID.to_owned(), "p1".to_owned());
        let of_known = |uid: &str, managed: &Value| {
            let copy = there(json!({"metadata": {"name": "foo", "uid": uid, "managedFields": managed}}));
            whose(&copy, Some(&knows), &cns().name)
        };
        assert_eq!(of_known("p1", &applied), Whose::Ours, "somebody took all annotations off");
        assert_eq!(of_known("p2", &applied), Whose::Nobodys, "another one in its place");
        assert_eq!(of_known("p1", &json!([])), Whose::Nobodys, "no konnector wrote it");
        assert_eq!(of(json!({ADOPT: "true"}), json!([])), Whose::Offered);
    }
}
