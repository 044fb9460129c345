//! What of a binding is kept in step: pure.

use api::bind::{
    binding::APIServiceBinding,
    export::APIServiceExport,
    mapping::Strategy,
    resource::{InformerScope, Isolation},
};
use kube::ResourceExt;

use crate::bind::{crd::is_of, local::Crd, sync::Bound};

/// What is kept in step, if the CRD is served and for this binding. Also while that goes: its objects go by us. The CRD says how the API
/// is here, whatever becomes of its schema at the provider.
pub(super) fn bound_of(
    binding: &APIServiceBinding,
    export: &APIServiceExport,
    (crd, informer_scope): (&Crd, Option<InformerScope>),
    orphan: bool,
) -> Option<Bound> {
    let served = crd.served().filter(|_| is_of(crd, binding))?;
    Some(Bound {
        binding: binding.name_any(),
        binding_uid: binding.uid().unwrap_or_default(),
        strategy: strategy(served.is_namespaced, export.spec.isolation),
        resource: served.resource,
        informer_scope: informer_scope.unwrap_or(export.spec.informer_scope),
        has_status: served.has_status,
        orphan,
    })
}

/// Objects in Namespaces always go by Namespaces.
fn strategy(is_namespaced: bool, isolation: Isolation) -> Strategy {
    match (is_namespaced, isolation) {
        (true, _) => Strategy::Namespaced,
        (false, Isolation::Prefixed) => Strategy::Prefixed,
        (false, Isolation::Namespaced) => Strategy::Converted,
        (false, Isolation::None) => Strategy::Shared,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn crd(more: &Value, versions: &Value) -> Crd {
        let owner = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "mango", "uid": "b1", "controller": true});
        let mut metadata = json!({"name": "mangos.example.com", "managedFields": [{"manager": "freeport-member"}], "ownerReferences": [owner]});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let spec = json!({"group": "example.com", "scope": "Namespaced", "names": {"plural": "mangos", "kind": "Mango"}, "versions": versions});
        let status = json!({"conditions": [{"type": "Established", "status": "True"}]});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    fn bound(crd: &Crd) -> Option<Bound> {
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let binding =
            json!({"metadata": {"name": "mango", "uid": "b1"}, "spec": {"kubeconfigSecretRef": secret}});
        let export = json!({"metadata": {"name": "mango"}, "spec": {"resources": [], "isolation": "Prefixed", "informerScope": "Cluster"}});
        let (binding, export) =
            (serde_json::from_value(binding).unwrap(), serde_json::from_value(export).unwrap());
        bound_of(&binding, &export, (crd, None), false)
    }

    #[test]
    fn x9_objects_of_a_crd_that_goes_are_kept_in_step_until_the_last_is_gone() {
        let versions = json!([{"name": "v1", "served": true}]);
        let going = json!({"deletionTimestamp": "2026-11-01T12:00:00Z"});
        assert!(bound(&crd(&going, &versions)).is_some());
    }

    #[test]
    fn t11_t20_objects_are_kept_in_step_in_the_first_version_that_is_served() {
        let versions = json!([{"name": "v1", "served": false}, {"name": "v2", "served": true, "subresources": {}},
            {"name": "v3", "served": true, "subresources": {"status": {}}}]);
        let of_second = bound(&crd(&json!({}), &versions)).unwrap();
        assert_eq!((of_second.resource.version.as_str(), of_second.has_status), ("v2", false));
        assert_eq!(
            (of_second.strategy, of_second.informer_scope),
            (Strategy::Namespaced, InformerScope::Cluster)
        );
        let third = json!([{"name": "v3", "served": true, "subresources": {"status": {}}}]);
        assert!(bound(&crd(&json!({}), &third)).unwrap().has_status);
    }
}
