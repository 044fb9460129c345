//! Reads what one cluster exports and imports.

use api::view::Meta;
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Namespace};
use kube::{Api, Resource, ResourceExt};
use picture::{
    listing::Held,
    view::{ClusterSetView, ServiceExportView, ServiceImportView},
};
use serde::de::DeserializeOwned;

use super::{GetOptions, Listed};
use crate::{
    Error,
    cluster::Cluster,
    look,
    objects::SYSTEM,
    part::{Gap, Part, Why, get, list, within},
};

/// What was read of one cluster.
pub(super) struct Read {
    context: String,
    /// uid of its Namespace kube-system, if it may be read.
    uid: Option<String>,
    /// What it holds, without what may not be read; or that it does not answer.
    held: Result<(Held, Vec<Gap>), Error>,
}

/// Reads the cluster.
pub(super) async fn read(cluster: &Cluster, options: &GetOptions) -> Read {
    let namespaces = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let (system, held) = tokio::join!(
        Box::pin(get(cluster, &namespaces, "Namespace kube-system".into(), "kube-system")),
        Box::pin(held(cluster, options))
    );
    let uid = system.ok().and_then(|system| system.ok()?.and_then(|system| system.uid()));
    Read { context: cluster.name.clone(), uid, held }
}

async fn held(cluster: &Cluster, options: &GetOptions) -> Result<(Held, Vec<Gap>), Error> {
    // A Service is selected by the labels of its ServiceImports, whoever exports it.
    let imported = options.labels.as_str();
    let exported = if options.listed == Listed::Services { "" } else { imported };
    let is_wanted = |listed: Listed| options.listed == listed || options.listed == Listed::Services;
    let (sets, exports, imports) = tokio::join!(
        within::<ClusterSetView>(cluster, SYSTEM),
        several::<ServiceExportView>(
            cluster,
            options,
            exported,
            is_wanted(Listed::Exports) || options.listed == Listed::Conflicts
        ),
        several::<ServiceImportView>(cluster, options, imported, is_wanted(Listed::Imports)),
    );
    let mut gaps = Vec::new();
    let sets: Vec<_> = taken(sets?, &mut gaps);
    let id = sets.first().and_then(ClusterSetView::cluster_id).unwrap_or(&cluster.name).to_owned();
    let held = Held { cluster: id, exports: taken(exports?, &mut gaps), imports: taken(imports?, &mut gaps) };
    Ok((held, gaps))
}

/// All objects in the Namespaces that are asked for; none if the kind is not wanted.
async fn several<K>(
    cluster: &Cluster,
    options: &GetOptions,
    labels: &str,
    is_wanted: bool,
) -> Result<Part<Vec<K>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    if !is_wanted {
        return Ok(Ok(vec![]));
    }
    let client = cluster.client.clone();
    let (objects, place): (Api<K>, _) = match &options.namespace {
        Some(namespace) => (Api::namespaced(client, namespace), format!(" in {namespace}")),
        None => (Api::all(client), String::new()),
    };
    list(cluster, &objects, format!("{}{place}", K::plural(&())), labels, |object: K| object).await
}

/// The objects. A kind that the API server does not know has none; another gap is noted.
fn taken<K>(part: Part<Vec<K>>, gaps: &mut Vec<Gap>) -> Vec<K> {
    part.unwrap_or_else(|gap| {
        if !matches!(gap.why, Why::NoCrd) {
            gaps.push(gap);
        }
        vec![]
    })
}

/// What the clusters hold, each once whatever the number of its contexts, and a line for all that was not looked at.
pub(super) fn each_once(all: Vec<Read>) -> (Vec<Held>, Vec<String>) {
    let (once, mut lines) = look::each_once(all, |read: &Read| (read.context.clone(), read.uid.clone()));
    let mut held = Vec::new();
    for Read { context, held: read, .. } in once {
        match read {
            Ok((of_cluster, gaps)) => {
                held.push(of_cluster);
                let line =
                    |gap: &Gap| format!("{} of {context} were not looked at: {}", gap.part, words(&gap.why));
                lines.extend(gaps.iter().map(line));
            }
            Err(error) => lines.push(format!("{context} was not looked at: {error}")),
        }
    }
    (held, lines)
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
        Read { context: context.into(), uid: uid.map(str::to_owned), held: Ok((held, gaps)) }
    }

    #[test]
    fn a_cluster_counts_once_and_what_was_not_seen_is_said() {
        let gap = Gap { part: "serviceimports".into(), why: Why::Forbidden("jane may not".into()) };
        let away = Error::Argument("no answer".into());
        let all = vec![
            read("east", Some("1"), vec![gap]),
            read("east-admin", Some("1"), vec![]),
            Read { context: "west".into(), uid: None, held: Err(away) },
            read("a", None, vec![]),
            read("b", None, vec![]),
        ];
        let (held, lines) = each_once(all);
        let names: Vec<_> = held.iter().map(|held| held.cluster.as_str()).collect();
        assert_eq!(names, ["east", "a", "b"]);
        assert_eq!(
            lines,
            [
                "contexts east and east-admin are of one cluster, which counts once",
                "serviceimports of east were not looked at: jane may not",
                "west was not looked at: no answer",
            ]
        );
    }
}
