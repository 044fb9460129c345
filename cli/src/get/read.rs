//! Reads what clusters export and import.

use futures::future::join_all;
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource};
use picture::{
    listing::Held,
    view::{ClusterSetView, ServiceExportView, ServiceImportView},
};
use serde::de::DeserializeOwned;

use super::Looked;
use crate::{
    Error,
    cluster::Cluster,
    look::{each_once, uid},
    objects::SYSTEM,
    part::{Gap, Part, Why, list, within},
};

/// Label selectors of the kinds that are wanted; none of a kind that is not.
#[derive(Clone, Copy)]
pub(super) struct Labels<'a> {
    pub(super) exports: Option<&'a str>,
    pub(super) imports: Option<&'a str>,
}

/// What was read of one cluster.
struct Read {
    context: String,
    /// uid of its Namespace kube-system, if it may be read.
    uid: Option<String>,
    /// What could be read, or that the cluster does not answer.
    parts: Result<Parts, Error>,
}

/// What could be read of a cluster that answers.
#[derive(Default)]
struct Parts {
    held: Held,
    gaps: Vec<Gap>,
    /// Whether a wanted kind could be read.
    is_seen: bool,
}

/// Reads all clusters at once, in one Namespace or in all.
pub(super) async fn held(
    clusters: &[Cluster],
    namespace: Option<&str>,
    labels: Labels<'_>,
) -> (Vec<Held>, Looked) {
    let read = async |cluster: &Cluster| {
        let parts = Box::pin(parts(cluster, namespace, labels));
        let (uid, parts) = tokio::join!(Box::pin(uid(cluster)), parts);
        Read { context: cluster.name.clone(), uid: uid.ok(), parts }
    };
    combined(join_all(clusters.iter().map(|cluster| Box::pin(read(cluster)))).await)
}

async fn parts(cluster: &Cluster, namespace: Option<&str>, labels: Labels<'_>) -> Result<Parts, Error> {
    let (sets, exports, imports) = tokio::join!(
        within::<ClusterSetView>(cluster, SYSTEM),
        several::<ServiceExportView>(cluster, namespace, labels.exports),
        several::<ServiceImportView>(cluster, namespace, labels.imports),
    );
    let (sets, exports, imports) = (known(sets?), exports?, imports?);
    let is_seen = matches!(exports, Some(Ok(_))) || matches!(imports, Some(Ok(_)));
    let mut gaps = Vec::new();
    let sets: Vec<_> = taken(Some(sets), &mut gaps);
    let id = sets.first().and_then(ClusterSetView::cluster_id).unwrap_or(&cluster.name).to_owned();
    let held = Held { cluster: id, exports: taken(exports, &mut gaps), imports: taken(imports, &mut gaps) };
    Ok(Parts { held, gaps, is_seen })
}

/// All objects with these labels; nothing without a selector.
async fn several<K>(
    cluster: &Cluster,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Option<Part<Vec<K>>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let Some(labels) = labels else { return Ok(None) };
    let client = cluster.client.clone();
    let (objects, place): (Api<K>, _) = match namespace {
        Some(namespace) => (Api::namespaced(client, namespace), format!(" in {namespace}")),
        None => (Api::all(client), String::new()),
    };
    let part = format!("{}{place}", K::plural(&()));
    Ok(Some(known(list(cluster, &objects, part, labels, |object: K| object).await?)))
}

/// Of a kind that the API server does not know there are no objects.
fn known<K>(part: Part<Vec<K>>) -> Part<Vec<K>> {
    match part {
        Err(Gap { why: Why::NoCrd, .. }) => Ok(vec![]),
        part => part,
    }
}

/// The objects; a gap is noted.
fn taken<K>(part: Option<Part<Vec<K>>>, gaps: &mut Vec<Gap>) -> Vec<K> {
    part.and_then(|part| part.map_err(|gap| gaps.push(gap)).ok()).unwrap_or_default()
}

/// What the clusters hold, each once whatever the number of its contexts.
fn combined(all: Vec<Read>) -> (Vec<Held>, Looked) {
    let (once, notes) = each_once(all, |read: &Read| (read.context.clone(), read.uid.clone()));
    let (mut held, mut looked) = (Vec::new(), Looked { gaps: notes, is_seen: false });
    for Read { context, parts, .. } in once {
        match parts {
            Ok(parts) => {
                let line =
                    |gap: &Gap| format!("{} of {context} were not looked at: {}", gap.part, words(&gap.why));
                looked.gaps.extend(parts.gaps.iter().map(line));
                looked.is_seen |= parts.is_seen;
                held.push(parts.held);
            }
            Err(error) => looked.gaps.push(format!("{context} was not looked at: {error}")),
        }
    }
    (held, looked)
}

fn words(why: &Why) -> &str {
    match why {
        Why::NoCrd => "its API server does not know the kind",
        Why::Forbidden(words) | Why::Failed(words) => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(context: &str, uid: Option<&str>, gaps: Vec<Gap>) -> Read {
        let held = Held { cluster: context.into(), ..Held::default() };
        let parts = Parts { held, is_seen: gaps.is_empty(), gaps };
        Read { context: context.into(), uid: uid.map(str::to_owned), parts: Ok(parts) }
    }

    fn refused() -> Gap {
        Gap { part: "serviceimports".into(), why: Why::Forbidden("jane may not".into()) }
    }

    #[test]
    fn a_cluster_counts_once_and_gaps_are_reported() {
        let away = Error::Argument("no answer".into());
        let all = vec![
            read("east", Some("1"), vec![refused()]),
            read("east-admin", Some("1"), vec![]),
            Read { context: "west".into(), uid: None, parts: Err(away) },
            read("a", None, vec![]),
            read("b", None, vec![]),
        ];
        let (held, looked) = combined(all);
        let names: Vec<_> = held.iter().map(|held| held.cluster.as_str()).collect();
        assert_eq!(names, ["east", "a", "b"]);
        let gaps = [
            "contexts east and east-admin are of one cluster, which counts once",
            "serviceimports of east were not looked at: jane may not",
            "west was not looked at: no answer",
        ];
        assert_eq!(looked, Looked { gaps: gaps.map(str::to_owned).into(), is_seen: true });
    }

    #[test]
    fn a_cluster_that_refuses_all_wanted_kinds_is_not_seen() {
        assert!(!combined(vec![read("east", None, vec![refused()])]).1.is_seen);
    }
}
