//! Copies that stay at the provider though their objects here are gone: those of bindings that say so. They would go with the
//! APIServiceNamespace. So one that has some is marked where it would be taken back, and then neither another binding nor the end of our
//! Namespace takes it later.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    bind::{
        binding::APIServiceBinding, bound_schema::BoundSchemaSpec, export::APIServiceNamespace, label,
        resource::InformerScope,
    },
    view::Meta,
};
use kit::write::Error;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, ListParams},
    core::{GroupVersionKind, ObjectMeta},
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

/// Deletes an APIServiceNamespace, unless it has copies of these APIs, which are to stay, or may have copies of another cluster: the provider's
/// Namespace would be deleted with them.
pub(crate) async fn take_back(
    contract: &Contract,
    local: &Local,
    namespace: &APIServiceNamespace,
    left: &[ApiResource],
) -> Result<(), Error> {
    if marked(contract, namespace, left).await? {
        return Ok(());
    }
    let name = namespace.name_any();
    match of_others(contract, local, namespace).await? {
        Others::None => {
            holder::ensure(contract).await?;
            contract.writer.delete(namespace, false).await
        }
        Others::Some => {
            tracing::info!(
                namespace = name,
                "the APIServiceNamespace stays: it has copies that no binding of this cluster made"
            );
            mark(contract, namespace).await
        }
        Others::Unknown(api) => {
            tracing::info!(
                namespace = name,
                api,
                "the APIServiceNamespace stays: this API cannot be read at the provider, so another cluster may have copies there"
            );
            Ok(())
        }
    }
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

/// Copies in a Namespace of the provider that no binding of this cluster made.
#[derive(Debug, PartialEq, Eq)]
enum Others {
    None,
    Some,
    /// Of this API it is not known. Who may not read it, or finds it not served, does not know that there are none.
    Unknown(String),
}

async fn of_others(
    contract: &Contract,
    local: &Local,
    namespace: &APIServiceNamespace,
) -> Result<Others, Error> {
    let Some(there) = contract.assigned(&namespace.name_any()) else { return Ok(Others::None) };
    let (apis, bindings) = (exported(contract), uids(contract, local));
    let is_others =
        |object: &Meta<Here>| is_others(&object.metadata, &contract.cluster_namespace.name, &bindings);
    let mut found = Others::None;
    for (name, api) in apis {
        let api = match api {
            Exported::Namespaced(api) => api,
            Exported::ClusterScoped => continue,
            Exported::Unknown => {
                found = Others::Unknown(name);
                continue;
            }
        };
        match has_some(contract, &there, &[api], is_others).await {
            Ok(false) => {}
            Ok(true) => return Ok(Others::Some),
            Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => {
                found = Others::Unknown(name);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// An API of the contract.
enum Exported {
    /// With objects in Namespaces.
    Namespaced(ApiResource),
    ClusterScoped,
    /// The provider has no BoundSchema that decodes, or its BoundSchema serves no version.
    Unknown,
}

/// All APIs that the contract exports, by name, whichever cluster has bound them.
fn exported(contract: &Contract) -> BTreeMap<String, Exported> {
    contract.known.with(|known| {
        let resources = known.exports.iter().flat_map(|export| &export.spec.resources);
        let named = resources.map(|resource| {
            let name = resource.name();
            let api = known.schemas.get(&name).map_or(Exported::Unknown, |schema| of_schema(&schema.spec));
            (name, api)
        });
        let odd = known.exports.odd(&contract.cluster_namespace.name);
        let odd = odd.map(|(export, _)| {
            (format!("APIServiceExport {}", export.name.clone().unwrap_or_default()), Exported::Unknown)
        });
        named.chain(odd).collect()
    })
}

fn of_schema(schema: &BoundSchemaSpec) -> Exported {
    if schema.scope == InformerScope::Cluster {
        return Exported::ClusterScoped;
    }
    let Some(version) = schema.versions.iter().find(|version| version.served) else {
        return Exported::Unknown;
    };
    let (kind, plural) = (&schema.names.kind, &schema.names.plural);
    let kind = GroupVersionKind::gvk(&schema.group, &version.name, kind);
    Exported::Namespaced(ApiResource::from_gvk_with_plural(&kind, plural))
}

/// uids of the contract's bindings in this cluster.
fn uids(contract: &Contract, local: &Local) -> BTreeSet<String> {
    let exports = contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
    let names = local.bound(exports);
    local.known.with(|known| names.iter().filter_map(|name| known.bindings.get(name)?.uid()).collect())
}

/// Whether an object is a copy of the contract that none of these bindings (by uid) made.
fn is_others(copy: &ObjectMeta, cluster_namespace: &str, bindings: &BTreeSet<String>) -> bool {
    let says = |key: &str| copy.annotations.as_ref().and_then(|annotations| annotations.get(key));
    says(label::CLUSTER_NAMESPACE).is_some_and(|of| of == cluster_namespace)
        && says(label::BINDING_UID).is_none_or(|uid| !bindings.contains(uid))
}

/// From now on nobody takes it back.
pub(crate) async fn mark(contract: &Contract, namespace: &APIServiceNamespace) -> Result<(), Error> {
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
    use api::bind::holder;
    use kit::objects::Change;
    use kube::{client::Body, core::Status};
    use tokio::sync::mpsc;

    use super::*;
    use crate::bind::fixture;

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

    /// A contract that exports mangos and cactus, with Namespace team1 at the provider, where mangos can be listed and listing cactus has this
    /// answer; and the deletions and patches that are sent there.
    fn exporting(
        cactus: serde_json::Value,
        code: u16,
        has_schema: bool,
    ) -> (Contract, mpsc::UnboundedReceiver<String>) {
        let (wrote, written) = mpsc::unbounded_channel();
        let answer = move |request: http::Request<Body>| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let list = |items: serde_json::Value| json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
            let (code, answer) = match (method, path.as_str()) {
                (http::Method::GET, path) if path.ends_with("/cactus") && code == 200 => {
                    (200, list(cactus.clone()))
                }
                (http::Method::GET, path) if path.ends_with("/cactus") => {
                    (code, json!(Status::failure("no", "Refused").with_code(code)))
                }
                (http::Method::GET, path) if path.ends_with("/mangos") => (200, list(json!([]))),
                (http::Method::GET, _) => {
                    let held = holder::noted(&[], "us", jiff::Timestamp::UNIX_EPOCH);
                    let spec =
                        json!({"kubeconfigSecretRef": {"name": "k", "key": "k"}, "providerPrettyName": "p"});
                    (
                        200,
                        json!({"metadata": {"name": "cluster"}, "spec": spec, "status": {"conditions": held}}),
                    )
                }
                (method, _) => {
                    wrote.send(method.to_string()).unwrap();
                    (200, json!({"metadata": {"name": "team1", "uid": "team1"}, "spec": {}}))
                }
            };
            let answer =
                http::Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            std::future::ready(answer)
        };
        let contract = fixture::contract().with_client(Client::new(tower::service_fn(answer), "x"));
        fixture::assign(&contract, "team1", "kube-bind-37p3oxx6sh4fd-team1");
        contract.known.with(|known| {
            for plural in ["mangos", "cactus"] {
                let resource = json!({"group": "example.com", "resource": plural});
                let spec = json!({"resources": [resource], "informerScope": "Namespaced", "isolation": "Prefixed"});
                let export = json!({"metadata": {"name": plural, "resourceVersion": "1"}, "spec": spec});
                known.exports.change(Change::Apply(serde_json::from_value(export).unwrap()));
                let version = json!({"name": "v1", "served": true, "storage": true, "schema": {}});
                let spec = json!({"informerScope": "Namespaced", "scope": "Namespaced", "group": "example.com",
                    "names": {"plural": plural, "kind": plural}, "versions": [version]});
                let metadata = json!({"name": format!("{plural}.example.com"), "resourceVersion": "1"});
                let schema = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
                if plural == "mangos" || has_schema {
                    known.schemas.change(Change::Apply(schema));
                }
            }
        });
        (contract, written)
    }

    #[tokio::test]
    async fn an_api_service_namespace_stays_while_another_cluster_may_have_copies_of_any_api_of_the_contract()
    {
        let writes = async |cactus, code, has_schema| {
            let (contract, mut written) = exporting(cactus, code, has_schema);
            let team1 = contract.known.with(|known| known.namespaces.get("team1").cloned()).unwrap();
            // No CRD of the contract is in this cluster.
            take_back(&contract, &Local::new(), &team1, &[]).await.unwrap();
            std::iter::from_fn(|| written.try_recv().ok()).collect::<Vec<_>>()
        };
        let annotations =
            json!({label::CLUSTER_NAMESPACE: "kube-bind-37p3oxx6sh4fd", label::BINDING_UID: "theirs"});
        let copies = json!([{"metadata": {"name": "c", "annotations": annotations}}]);
        assert_eq!(writes(json!([]), 200, true).await, ["DELETE"]);
        assert_eq!(writes(copies, 200, true).await, ["PATCH"], "marked, so that it stays later too");
        for code in [403, 404] {
            assert_eq!(writes(json!([]), code, true).await, [""; 0], "{code}: unknown");
        }
        assert_eq!(writes(json!([]), 200, false).await, [""; 0], "without a BoundSchema: unknown");
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
