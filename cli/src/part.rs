//! One part of what a command asks an API server for, or why it is not there: a refusal and an unknown kind hide nothing else.

use api::{label, view::Named};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Namespace};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::{Error, cluster::Cluster, error::Failure};

/// One part of what was asked for, or why it is not there.
pub(crate) type Part<T> = Result<T, Gap>;

/// A part that could not be read.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    /// `plural` or `plural in namespace`.
    pub(crate) part: String,
    /// Why.
    pub(crate) why: Why,
}

/// Why a part could not be read.
#[derive(Clone, Debug)]
pub(crate) enum Why {
    /// The API server does not know the kind.
    NoCrd,
    /// We have no right to it; in the server's words.
    Forbidden(String),
    /// Something else; in the server's words.
    Failed(String),
}

/// The object of this name, if there is one. `part` is how the report calls it.
pub(crate) async fn get<K: Clone + DeserializeOwned + std::fmt::Debug>(
    cluster: &Cluster,
    api: &Api<K>,
    part: String,
    name: &str,
) -> Result<Part<Option<K>>, Error> {
    match cluster.request(format!("read {part}"), api.get_opt(name)).await {
        Ok(object) => Ok(Ok(object)),
        Err(error) => gap(part, error).map(Err),
    }
}

/// Names of the Common Areas of ClusterSets that the cluster leads.
pub(crate) async fn common_areas(cluster: &Cluster) -> Result<Part<Vec<String>>, Error> {
    let wanted = format!("{}={}", label::COMMON_AREA, label::TRUE);
    let namespaces: Api<Named<Namespace>> = Api::all(cluster.client.clone());
    let named = |namespace: Named<Namespace>| namespace.name_any();
    list(cluster, &namespaces, "namespaces".into(), &wanted, named).await
}

/// All objects of a kind in one Namespace.
pub(crate) async fn within<K>(cluster: &Cluster, namespace: &str) -> Result<Part<Vec<K>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    each_within(cluster, namespace, |object: K| object).await
}

/// What `keep` makes of each of them.
pub(crate) async fn each_within<K, T>(
    cluster: &Cluster,
    namespace: &str,
    keep: impl Fn(K) -> T,
) -> Result<Part<Vec<T>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let objects: Api<K> = Api::namespaced(cluster.client.clone(), namespace);
    list(cluster, &objects, format!("{} in {namespace}", K::plural(&())), "", keep).await
}

/// What `keep` makes of each object behind `api`. `part` is how the report calls them.
pub(crate) async fn list<K: Clone + DeserializeOwned + std::fmt::Debug, T>(
    cluster: &Cluster,
    api: &Api<K>,
    part: String,
    labels: &str,
    keep: impl Fn(K) -> T,
) -> Result<Part<Vec<T>>, Error> {
    match cluster.each(&part, api, labels, keep).await {
        Ok(all) => Ok(Ok(all)),
        Err(error) => gap(part, error).map(Err),
    }
}

/// A part that was refused; the error itself if nothing else could be read either: no answer, or an unknown credential.
pub(crate) fn gap(part: String, error: Error) -> Result<Gap, Error> {
    let why = match error.failure() {
        Failure::Unauthorized | Failure::NoAnswer => return Err(error),
        Failure::Forbidden(message) => Why::Forbidden(message.into()),
        Failure::Missing => Why::NoCrd,
        Failure::Conflict => Why::Failed(error.to_string()),
        Failure::Refused(message) => Why::Failed(message.into()),
    };
    Ok(Gap { part, why })
}
