//! Reads parts of a cluster as [`picture`] has them: what could not be read is a gap.
//!
//! | module | reads |
//! |---|---|
//! | [`dns`] | CoreDNS |

pub(crate) mod dns;

use api::view::Meta;
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Namespace};
use kube::{Api, Resource, ResourceExt};
use picture::gap::{Gap, Seen};
use serde::de::DeserializeOwned;

use crate::{
    Error,
    cluster::Cluster,
    error::Failure,
    part::{Part, Why, get, list},
};

/// Identity of the cluster: uid of its Namespace kube-system.
pub(crate) async fn uid(cluster: &Cluster) -> Seen<String> {
    let all = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let system = get(cluster, &all, "Namespace kube-system".into(), "kube-system").await;
    seen(system).and_then(|system| system.and_then(|system| system.uid()).ok_or(Gap::NotLooked))
}

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

/// Each cluster once, whatever the number of its contexts, and a sentence on those that are left out. `of`: context and uid of a cluster.
pub(crate) fn each_once<C>(
    all: Vec<C>,
    of: impl Fn(&C) -> (String, Option<String>),
) -> (Vec<C>, Vec<String>) {
    let (mut once, mut notes) = (Vec::<C>::new(), Vec::new());
    for cluster in all {
        let (context, uid) = of(&cluster);
        match once.iter().map(&of).find(|(_, other)| other.is_some() && *other == uid) {
            Some((first, _)) => {
                notes.push(format!("contexts {first} and {context} are of one cluster, which counts once"))
            }
            None => once.push(cluster),
        }
    }
    (once, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_contexts_of_one_cluster_count_once_and_unknown_ones_each() {
        let all = vec![
            ("east", Some("1")),
            ("west", Some("2")),
            ("east-admin", Some("1")),
            ("a", None),
            ("b", None),
        ];
        let of = |(context, uid): &(&str, Option<&str>)| ((*context).to_owned(), uid.map(str::to_owned));
        let (once, notes) = each_once(all, of);
        let names: Vec<_> = once.iter().map(|(context, _)| *context).collect();
        assert_eq!(names, ["east", "west", "a", "b"]);
        assert_eq!(notes, ["contexts east and east-admin are of one cluster, which counts once"]);
    }
}
