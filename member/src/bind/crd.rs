//! The CRD of a bound API in our cluster: pure.

use api::bind::{
    binding::APIServiceBinding,
    bound_schema::BoundSchemaSpec,
    carried::{self, NotCarried},
    label::SOURCE_SPEC_HASH,
};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Resource, ResourceExt};

use super::local::Crd;

/// What is to happen to a CRD.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Installing {
    /// It goes: only then another one can be made.
    Stays,
    /// It was written as this, and nobody knows whether it still is.
    Same(CustomResourceDefinition),
    /// It is to be made.
    Create(CustomResourceDefinition),
    /// Ours is another one.
    Update(CustomResourceDefinition),
    /// Somebody else's is there.
    Foreign,
}

/// Why a BoundSchema becomes no CRD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotInstalled {
    #[error(transparent)]
    NotCarried(#[from] NotCarried),
    #[error("its spec is that of another API, {0}")]
    OfAnother(String),
}

/// The CRD of `api` by its schema, for a binding. What others have put into the metadata of the one that is there stays.
///
/// # Errors
/// [`NotInstalled`] where the schema does not decode, or is not of that API.
pub(crate) fn installing(
    api: &str,
    schema: &BoundSchemaSpec,
    binding: &APIServiceBinding,
    have: Option<&Crd>,
) -> Result<Installing, NotInstalled> {
    let mut want = carried::installed(schema)?;
    if want.name_any() != api {
        return Err(NotInstalled::OfAnother(want.name_any()));
    }
    let hash = carried::hash([schema]);
    if let Some(have) = have {
        want.metadata = have.meta().clone();
    }
    let others = want.metadata.owner_references.take().into_iter().flatten();
    want.metadata.owner_references = Some(owners(owner(binding), others));
    want.annotations_mut().insert(SOURCE_SPEC_HASH.to_owned(), hash.clone());
    let Some(have) = have else { return Ok(Installing::Create(want)) };
    if !is_of(have, binding) {
        return Ok(Installing::Foreign);
    }
    Ok(match have.annotations().get(SOURCE_SPEC_HASH) == Some(&hash) {
        _ if have.metadata_is_going() => Installing::Stays,
        true => Installing::Same(want),
        false => Installing::Update(want),
    })
}

/// Ours and the others: only one can be the controller.
fn owners(ours: OwnerReference, others: impl Iterator<Item = OwnerReference>) -> Vec<OwnerReference> {
    let others = others.filter(|other| other.uid != ours.uid);
    let others: Vec<_> = others.map(|other| OwnerReference { controller: None, ..other }).collect();
    [vec![ours], others].concat()
}

/// Whether the CRD is there for this very binding.
pub(crate) fn is_of(crd: &Crd, binding: &APIServiceBinding) -> bool {
    let owner = owner(binding);
    crd.owner_references().iter().any(|has| has.uid == owner.uid && has.name == owner.name)
}

/// Whether the CRD was made for this binding and has no owner any more: the garbage collector took it off (`--cascade=orphan`).
pub(crate) fn is_left_behind(crd: &Crd, binding: &APIServiceBinding) -> bool {
    let bound = binding.status.iter().flat_map(|status| &status.bound_schemas);
    let is_bound =
        || bound.into_iter().any(|api| crd.name_any() == format!("{}.{}", api.resource, api.group));
    crd.annotations().contains_key(SOURCE_SPEC_HASH) && crd.owner_references().is_empty() && is_bound()
}

fn owner(binding: &APIServiceBinding) -> OwnerReference {
    OwnerReference {
        api_version: APIServiceBinding::api_version(&()).into_owned(),
        kind: APIServiceBinding::kind(&()).into_owned(),
        name: binding.name_any(),
        uid: binding.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const API: &str = "mangodbs.provider.example.com";

    fn schema() -> BoundSchemaSpec {
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
        serde_json::from_value(json!({
            "informerScope": "Namespaced", "group": "provider.example.com", "scope": "Namespaced",
            "names": {"plural": "mangodbs", "kind": "MangoDB"}, "versions": [version],
        }))
        .unwrap()
    }

    fn binding(uid: &str) -> APIServiceBinding {
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        serde_json::from_value(
            json!({"metadata": {"name": "mango", "uid": uid}, "spec": {"kubeconfigSecretRef": secret}}),
        )
        .unwrap()
    }

    fn have(metadata: &Value) -> Crd {
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn only_a_crd_that_the_binding_brought_and_nobody_owns_was_left_behind() {
        let mut binding = binding("b1");
        let Ok(Installing::Create(want)) = installing(API, &schema(), &binding, None) else {
            panic!("not created")
        };
        let bound = json!({"boundSchemas": [{"group": "provider.example.com", "resource": "mangodbs"}]});
        binding.status = serde_json::from_value(bound).unwrap();
        let mut metadata = json!(want.metadata);
        assert!(!is_left_behind(&have(&metadata), &binding), "it is the binding's");
        metadata["ownerReferences"] = json!([]);
        assert!(is_left_behind(&have(&metadata), &binding));
        assert!(!is_left_behind(&have(&json!({"name": API})), &binding), "foreign");
        binding.status = None;
        assert!(!is_left_behind(&have(&metadata), &binding), "of another binding");
    }

    #[test]
    fn b1_b7_a_crd_is_of_its_binding_or_foreign() {
        let Ok(Installing::Create(want)) = installing(API, &schema(), &binding("b1"), None) else {
            panic!("not created")
        };
        let mut metadata = json!(want.metadata);
        let same = installing(API, &schema(), &binding("b1"), Some(&have(&metadata)));
        assert!(matches!(same, Ok(Installing::Same(_))), "{same:?}");
        let mut going = metadata.clone();
        going["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
        assert_eq!(
            installing(API, &schema(), &binding("b1"), Some(&have(&going))),
            Ok(Installing::Stays),
            "X9"
        );
        assert_eq!(
            installing(API, &schema(), &binding("b2"), Some(&have(&metadata))),
            Ok(Installing::Foreign),
            "of a binding that was there before under this name"
        );
        let local = have(&json!({"name": API}));
        assert_eq!(installing(API, &schema(), &binding("b1"), Some(&local)), Ok(Installing::Foreign));
        metadata["annotations"] = json!({});
        assert!(matches!(
            installing(API, &schema(), &binding("b1"), Some(&have(&metadata))),
            Ok(Installing::Update(_))
        ));
    }

    #[test]
    fn b1_what_others_put_on_a_crd_stays_when_it_is_written() {
        let theirs =
            json!({"apiVersion": "v1", "kind": "Namespace", "name": "ops", "uid": "n1", "controller": true});
        let ours = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "mango", "uid": "b1"});
        let metadata = json!({
            "name": API, "uid": "c1", "resourceVersion": "7", "labels": {"app": "x"}, "finalizers": ["ops/f"],
            "annotations": {"note": "n", SOURCE_SPEC_HASH: "old"}, "ownerReferences": [theirs, ours],
        });
        let Ok(Installing::Update(want)) = installing(API, &schema(), &binding("b1"), Some(&have(&metadata)))
        else {
            panic!("not updated")
        };
        let meta = &want.metadata;
        assert_eq!((json!(meta.labels), json!(meta.finalizers)), (json!({"app": "x"}), json!(["ops/f"])));
        assert_eq!(
            (meta.uid.as_deref(), meta.resource_version.as_deref(), want.annotations()["note"].as_str()),
            (Some("c1"), Some("7"), "n")
        );
        assert_ne!(want.annotations()[SOURCE_SPEC_HASH], "old");
        let owners: Vec<_> = want.owner_references().iter().map(|o| (&*o.uid, o.controller)).collect();
        assert_eq!(owners, [("b1", Some(true)), ("n1", None)], "a CRD has one controller");
    }

    #[test]
    fn a_schema_of_another_api_is_no_crd_of_this_one() {
        let another = installing("others.provider.example.com", &schema(), &binding("b1"), None);
        assert_eq!(another, Err(NotInstalled::OfAnother(API.into())));
    }
}
