//! Reads parts of a cluster as [`picture`] has them: what could not be read is a gap.
//!
//! | module | reads |
//! |---|---|
//! | [`dns`] | CoreDNS |

pub(crate) mod dns;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource};
use picture::cluster::{Gap, Seen};
use serde::de::DeserializeOwned;

use crate::{
    Error,
    cluster::Cluster,
    error::Failure,
    part::{Part, Why, get, list},
};

/// The object of this name.
pub(crate) async fn one<K>(cluster: &Cluster, namespace: &str, name: &str) -> Seen<Option<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let objects: Api<K> = Api::namespaced(cluster.client.clone(), namespace);
    seen(get(cluster, &objects, format!("{} {namespace}/{name}", K::kind(&())), name).await)
}

/// All objects with these labels. Of a kind that is not known there are none.
pub(crate) async fn several<K>(cluster: &Cluster, namespace: &str, labels: &str) -> Seen<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let objects: Api<K> = Api::namespaced(cluster.client.clone(), namespace);
    let part = format!("{} in {namespace}", K::plural(&()));
    match seen(list(cluster, &objects, part, labels, |object: K| object).await) {
        Err(Gap::NoKind) => Ok(vec![]),
        seen => seen,
    }
}

/// A part as the picture has it: an API server that does not answer is a gap like others.
pub(crate) fn seen<T>(answer: Result<Part<T>, Error>) -> Seen<T> {
    match answer {
        Ok(Ok(part)) => Ok(part),
        Ok(Err(gap)) => Err(match gap.why {
            Why::NoCrd => Gap::NoKind,
            Why::Forbidden(why) => Gap::Forbidden(why),
            Why::Failed(why) => Gap::Failed(why),
        }),
        Err(error) => Err(match error.failure() {
            Failure::NoAnswer | Failure::Unauthorized => Gap::NoAnswer(error.to_string()),
            _ => Gap::Failed(error.to_string()),
        }),
    }
}
