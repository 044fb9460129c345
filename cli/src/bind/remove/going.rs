//! What is to go with a binding or a contract, and what holds it, in both clusters.

use std::fmt::{self, Display};

use api::{
    bind::{
        carried::synced,
        export::{APIServiceExport, APIServiceNamespace},
        label,
    },
    view::Meta,
    words::first_of,
};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt, core::discovery::ApiResource};
use serde_json::json;

use crate::{
    Error,
    cluster::{Cluster, known},
    deletion::Deletion,
    dynamic::Dynamic,
    objects::Object,
};

/// The objects of an API.
pub(super) async fn objects(cluster: &Cluster, crd: &CustomResourceDefinition) -> Result<Vec<Object>, Error> {
    let spec = &crd.spec;
    let versions = spec.versions.iter().map(|version| (version.name.as_str(), version.served));
    let Some(resource) = synced(&spec.group, &spec.names, versions) else { return Ok(Vec::new()) };
    listed(cluster, &resource, None).await
}

/// All objects of a kind, without more than their metadata.
async fn listed(
    cluster: &Cluster,
    resource: &ApiResource,
    namespace: Option<&str>,
) -> Result<Vec<Object>, Error> {
    let found = cluster.pages(&resource.plural, &cluster.metadata(resource, namespace), "").await?;
    let object = |found: &Meta<Dynamic>| Object {
        resource: resource.clone(),
        name: found.name_any(),
        namespace: found.namespace(),
        body: json!({"metadata": found.metadata}),
    };
    Ok(found.iter().map(object).collect())
}

/// The copies of a consumer's objects at its provider, by the name of its cluster namespace.
async fn copies(
    provider: &Cluster,
    contract: &str,
    crd: &CustomResourceDefinition,
) -> Result<Vec<Object>, Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(provider.client.clone());
    let name = crd.name_any();
    let read = known(crds.get(&name));
    let there = provider.request(format!("read CustomResourceDefinition {name}"), read).await?;
    let Some(there) = there else { return Ok(Vec::new()) };
    let is_its = |object: &Object| {
        let annotations = object.metadata().annotations.unwrap_or_default();
        annotations.get(label::CLUSTER_NAMESPACE).is_some_and(|of| of == contract)
    };
    Ok(objects(provider, &there).await?.into_iter().filter(is_its).collect())
}

/// An object that is being deleted, and is still there.
pub(super) struct Held {
    /// Context of its cluster.
    cluster: String,
    object: Object,
    deletion: Deletion,
}

impl Held {
    /// None where nobody deletes the object.
    fn of(cluster: &Cluster, object: Object) -> Option<Self> {
        let deletion = match object.view::<Namespace>().filter(|_| object.resource.kind == "Namespace") {
            Some(namespace) => Deletion::of_namespace(&namespace),
            None => Deletion::of(&object.metadata()),
        }?;
        Some(Self { cluster: cluster.name.clone(), object, deletion })
    }
}

/// Where it is, what holds it and, if nobody of Freeport's takes that off, how it is done by hand.
impl Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, object, deletion } = self;
        write!(f, "{cluster}: {object} is held by {}", deletion.held_by(&object.resource.kind))?;
        if deletion.is_held_by_others() {
            write!(f, ": kubectl --context {cluster} ")?;
            if let Some(namespace) = &object.namespace {
                write!(f, "-n {namespace} ")?;
            }
            let group = &object.resource.group;
            let dot = if group.is_empty() { "" } else { "." };
            write!(f, "edit {}{dot}{group} {}", object.resource.plural, object.name)?;
        }
        Ok(())
    }
}

/// What holds a binding: copies first, which objects wait for, which CRDs wait for, which the binding waits for. `contract`: provider and
/// cluster namespace, if they are known.
pub(super) async fn of_binding(
    consumer: &Cluster,
    contract: Option<(&Cluster, &str)>,
    crds: &[CustomResourceDefinition],
    binding: &Object,
) -> Result<Vec<Held>, Error> {
    let mut held = Vec::new();
    for crd in crds {
        if let Some((provider, contract)) = contract {
            held.extend(
                copies(provider, contract, crd).await?.into_iter().filter_map(|o| Held::of(provider, o)),
            );
        }
        held.extend(
            objects(consumer, crd).await?.into_iter().filter_map(|object| Held::of(consumer, object)),
        );
    }
    let last = crds.iter().map(Object::new).chain([binding.clone()]);
    for object in last {
        held.extend(consumer.read(&object).await?.and_then(|object| Held::of(consumer, object)));
    }
    Ok(held)
}

/// What holds a contract, by its cluster namespace.
pub(super) async fn of_contract(provider: &Cluster, contract: &Object) -> Result<Vec<Held>, Error> {
    let name = contract.name.as_str();
    let labels = format!("{}={}", label::BIND, label::OBJECTS);
    let namespaces: Api<Namespace> = Api::all(provider.client.clone());
    let is_its = |namespace: &Namespace| {
        let of = namespace.annotations().get(label::API_SERVICE_NAMESPACE);
        of.and_then(|of| of.split_once('/')).is_some_and(|(of, _)| of == name)
    };
    let namespaces = provider.all(&namespaces, &labels).await?;
    let mut all: Vec<_> = namespaces.iter().filter(|namespace| is_its(namespace)).map(Object::new).collect();
    for resource in
        [ApiResource::erase::<APIServiceNamespace>(&()), ApiResource::erase::<APIServiceExport>(&())]
    {
        all.extend(listed(provider, &resource, Some(name)).await?);
    }
    all.extend(provider.read(contract).await?);
    Ok(all.into_iter().filter_map(|object| Held::of(provider, object)).collect())
}

/// In one line: first what nobody of Freeport's ends.
pub(super) fn told(held: &[Held]) -> String {
    let (others, ours): (Vec<_>, Vec<_>) = held.iter().partition(|held| held.deletion.is_held_by_others());
    match held {
        [] => "nothing holds it now".to_owned(),
        _ => first_of(others.iter().chain(&ours), "; "),
    }
}

#[cfg(test)]
mod tests {
    use api::bind::binding::APIServiceBinding;

    use super::*;
    use crate::eraser::called;

    fn held(cluster: &str, object: Object, finalizer: &str) -> Held {
        let metadata = json!({"deletionTimestamp": "2026-11-01T12:00:00Z", "finalizers": [finalizer]});
        let deletion = Deletion::of(&serde_json::from_value(metadata).unwrap()).unwrap();
        Held { cluster: cluster.to_owned(), object, deletion }
    }

    fn object(name: &str) -> Object {
        let resource = ApiResource {
            group: "example.com".into(),
            version: "v1".into(),
            api_version: "example.com/v1".into(),
            kind: "Mango".into(),
            plural: "mangos".into(),
        };
        Object { resource, ..called::<Namespace>("team", name) }
    }

    #[test]
    fn what_others_hold_is_said_first_and_how_it_is_freed() {
        let binding = Object { namespace: None, ..called::<APIServiceBinding>("", "mango") };
        let all = [
            held("east", object("foo"), label::FINALIZER),
            held("east", binding, label::BIND_FINALIZER),
            held("leader", object("foo"), "example.com/hold"),
        ];
        let said = told(&all);
        let first = "leader: Mango team/foo is held by finalizer example.com/hold (not Freeport's: whoever added it removes it): \
                     kubectl --context leader -n team edit mangos.example.com foo; east: Mango team/foo is held by finalizer kubebind.io/syncer";
        assert!(said.starts_with(first), "{said}");
        assert!(
            said.contains("east: APIServiceBinding mango is held by") && !said.contains("more"),
            "{said}"
        );
        assert_eq!(said.matches("kubectl").count(), 1, "{said}");
    }

    #[test]
    fn many_are_counted_and_none_is_said() {
        let many: Vec<_> = (0..7).map(|n| held("east", object(&n.to_string()), label::FINALIZER)).collect();
        assert!(told(&many).ends_with(" and 4 more"), "{}", told(&many));
        assert_eq!(told(&[]), "nothing holds it now");
    }
}
