//! Copies that stay at the provider though their objects here are gone: those of bindings that say so. They would go with the
//! APIServiceNamespace. So one that has some is marked where it would be taken back, and then neither another binding nor the end of our
//! Namespace takes it later.

use std::collections::BTreeSet;

use api::{
    bind::{binding::APIServiceBinding, export::APIServiceNamespace, label},
    view::Meta,
};
use kit::write::Error;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, ListParams},
    core::ObjectMeta,
};
use serde_json::json;

use super::{
    contract::Contract,
    crd::is_of,
    holder,
    local::{Crd, Local},
    policy::leaves_copies,
    sync::Here,
};

/// Takes an APIServiceNamespace back, unless it has copies of these APIs, which are to stay, or copies that no binding here made: another cluster
/// that held the contract did.
pub(crate) async fn take_back(
    contract: &Contract,
    local: &Local,
    namespace: &APIServiceNamespace,
    left: &[ApiResource],
) -> Result<(), Error> {
    if !marked(contract, namespace, left).await? && !marked_for_others(contract, local, namespace).await? {
        holder::ensure(contract).await?;
        contract.writer.delete(namespace, false).await?;
    }
    Ok(())
}

/// Marks it if it has copies of these APIs; whether it has.
pub(crate) async fn marked(
    contract: &Contract,
    namespace: &APIServiceNamespace,
    left: &[ApiResource],
) -> Result<bool, Error> {
    let Some(there) = contract.assigned(&namespace.name_any()) else { return Ok(false) };
    let is_copy = |object: &Meta<Here>| {
        let of = object.annotations().get(label::CLUSTER_NAMESPACE).map(String::as_str);
        counts(of, &there, &contract.cluster_namespace.name)
    };
    let is_used = match has_some(contract, &there, left, is_copy).await {
        // Who may not read them, or finds the API not served, does not know that there are none.
        Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => true,
        answer => answer?,
    };
    if is_used {
        mark(contract, namespace).await?;
    }
    Ok(is_used)
}

/// Marks it if it has copies that no binding of ours made; whether it has. Of an API that we may not read, or that is not served, there are none
/// that we can know of.
async fn marked_for_others(
    contract: &Contract,
    local: &Local,
    namespace: &APIServiceNamespace,
) -> Result<bool, Error> {
    let Some(there) = contract.assigned(&namespace.name_any()) else { return Ok(false) };
    let (apis, bindings) = bound(contract, local);
    let is_others =
        |object: &Meta<Here>| is_others(&object.metadata, &contract.cluster_namespace.name, &bindings);
    for api in apis {
        match has_some(contract, &there, &[api], is_others).await {
            Ok(false) => {}
            Ok(true) => {
                let name = namespace.name_any();
                tracing::info!(
                    namespace = name,
                    "the APIServiceNamespace stays: it has copies that no binding here made"
                );
                return mark(contract, namespace).await.map(|()| true);
            }
            Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// The APIs with objects in Namespaces that the contract exports and that are served here, and the uids of its bindings.
fn bound(contract: &Contract, local: &Local) -> (Vec<ApiResource>, BTreeSet<String>) {
    let (exports, apis): (Vec<_>, BTreeSet<_>) = contract.known.with(|known| {
        let apis = known.exports.iter().flat_map(|export| &export.spec.resources);
        (known.exports.iter().map(ResourceExt::name_any).collect(), apis.map(|api| api.name()).collect())
    });
    let names = local.bound(exports);
    local.known.with(|known| {
        let crds = known.crds.iter().filter(|crd| apis.contains(&crd.name_any()));
        let served = crds.filter_map(Crd::served).filter(|api| api.is_namespaced);
        let bindings = names.iter().filter_map(|name| known.bindings.get(name)?.uid());
        (served.map(|api| api.resource).collect(), bindings.collect())
    })
}

/// Whether an object is a copy of the contract that none of these bindings (by uid) made.
fn is_others(copy: &ObjectMeta, cluster_namespace: &str, bindings: &BTreeSet<String>) -> bool {
    let says = |key: &str| copy.annotations.as_ref().and_then(|annotations| annotations.get(key));
    says(label::CLUSTER_NAMESPACE).is_some_and(|of| of == cluster_namespace)
        && says(label::BINDING_UID).is_none_or(|uid| !bindings.contains(uid))
}

/// From now on nobody takes it back.
async fn mark(contract: &Contract, namespace: &APIServiceNamespace) -> Result<(), Error> {
    let patch = json!({"metadata": {"annotations": {label::DELETION_POLICY: label::ORPHAN}}});
    contract.writer.merge(namespace, None, patch).await.map(drop)
}

/// Whether one of these APIs has such an object in the provider's Namespace.
async fn has_some(
    contract: &Contract,
    there: &str,
    apis: &[ApiResource],
    is: impl Fn(&Meta<Here>) -> bool,
) -> kube::Result<bool> {
    for api in apis {
        let objects = Api::<Meta<Here>>::namespaced_with(contract.client(), there, api);
        let found = kit::list::all(&objects, ListParams::default(), |object: Meta<Here>| is(&object));
        if found.await?.contains(&true) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an object in the provider's Namespace `there` is a copy of the contract, which says so (`of`). In one that others have as well
/// there are theirs; in one of ours alone nobody else has any.
fn counts(of: Option<&str>, there: &str, cluster_namespace: &str) -> bool {
    let is_ours_alone = || there.strip_prefix(cluster_namespace).is_some_and(|rest| rest.starts_with('-'));
    of.map_or_else(is_ours_alone, |of| of == cluster_namespace)
}

/// Whether one of these APIs has objects in the Namespace.
pub(crate) async fn is_used(client: &Client, namespace: &str, apis: &[ApiResource]) -> kube::Result<bool> {
    for api in apis {
        let objects = Api::<Meta<Here>>::namespaced_with(client.clone(), namespace, api);
        if !objects.list(&ListParams::default().limit(1)).await?.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Those of the bindings of these names that keep their copies.
pub(crate) fn leaving<'a>(local: &Local, names: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
    local.known.with(|known| {
        let bindings = names.into_iter().filter_map(|name| known.bindings.get(name));
        bindings.filter(|binding| leaves_copies(*binding)).map(ResourceExt::name_any).collect()
    })
}

/// The APIs with objects in Namespaces that the bindings of these names brought. Nothing where one of them is not known, as while its CRD
/// is made anew.
pub(crate) fn namespaced<'a>(
    local: &Local,
    names: impl IntoIterator<Item = &'a String>,
) -> Option<Vec<ApiResource>> {
    local.known.with(|known| {
        let (mut all, crds) = (Vec::new(), known.crds.iter().collect::<Vec<_>>());
        for binding in names.into_iter().filter_map(|name| known.bindings.get(name)) {
            all.extend(brought(binding, &crds)?);
        }
        Some(all)
    })
}

fn brought(binding: &APIServiceBinding, crds: &[&Crd]) -> Option<Vec<ApiResource>> {
    let mut bound = binding.status.iter().flat_map(|status| &status.bound_schemas);
    // One that is somebody else's is there.
    let is_there = |name: &str| crds.iter().any(|crd| crd.name_any() == name);
    if !bound.all(|api| is_there(&format!("{}.{}", api.resource, api.group))) {
        return None;
    }
    let served: Option<Vec<_>> =
        crds.iter().filter(|crd| is_of(crd, binding)).map(|crd| crd.served()).collect();
    Some(served?.into_iter().filter(|api| api.is_namespaced).map(|api| api.resource).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(scope: &str, established: &str, owner: &str) -> Crd {
        let versions = json!([{"name": "v1", "served": true}]);
        let spec = json!({"group": "example.com", "scope": scope, "names": {"plural": "mangos", "kind": "Mango"}, "versions": versions});
        let status = json!({"conditions": [{"type": "Established", "status": established}]});
        let owner = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "mango", "uid": owner});
        let metadata = json!({"name": "mangos.example.com", "ownerReferences": [owner]});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn a_copy_that_no_binding_here_made_is_another_clusters() {
        let is_others = |annotations: serde_json::Value| {
            let copy = serde_json::from_value(json!({"annotations": annotations})).unwrap();
            is_others(&copy, "kube-bind-a", &["b1".to_owned()].into())
        };
        let of = label::CLUSTER_NAMESPACE;
        assert!(is_others(json!({of: "kube-bind-a", label::BINDING_UID: "b2"})));
        assert!(is_others(json!({of: "kube-bind-a"})), "Go's konnector notes no binding");
        assert!(!is_others(json!({of: "kube-bind-a", label::BINDING_UID: "b1"})));
        assert!(!is_others(json!({of: "kube-bind-b"})), "another contract's, in a Namespace that is shared");
    }

    #[test]
    fn in_a_namespace_that_is_shared_only_our_own_copies_count() {
        assert!(counts(Some("kube-bind-a"), "shop", "kube-bind-a"));
        assert!(!counts(Some("kube-bind-b"), "shop", "kube-bind-a"));
        assert!(!counts(None, "shop", "kube-bind-a"), "whoever made it");
        assert!(counts(None, "kube-bind-a-shop", "kube-bind-a"), "somebody took its annotations off");
    }

    #[test]
    fn what_a_binding_brought_is_not_known_while_its_crd_is_made_anew() {
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let mango = json!([{"group": "example.com", "resource": "mangos"}]);
        let count = |bound: &serde_json::Value, crds: &[Crd]| {
            let all = json!({"metadata": {"name": "mango", "uid": "b1"}, "spec": {"kubeconfigSecretRef": secret},
                "status": {"boundSchemas": bound}});
            brought(&serde_json::from_value(all).unwrap(), &crds.iter().collect::<Vec<_>>())
                .map(|apis| apis.len())
        };
        assert_eq!(count(&mango, &[crd("Namespaced", "True", "b1")]), Some(1));
        assert_eq!(
            count(&mango, &[crd("Cluster", "True", "b1")]),
            Some(0),
            "its objects are in no Namespace"
        );
        assert_eq!(count(&mango, &[crd("Namespaced", "True", "b2")]), Some(0), "it is another one's");
        assert_eq!(count(&mango, &[crd("Namespaced", "False", "b1")]), None);
        assert_eq!(count(&mango, &[]), None, "somebody deleted it");
        assert_eq!(count(&json!([]), &[]), Some(0), "it has not brought anything yet");
    }
}
