//! `freeport plan`: reads a change from files and what clusters hold, and predicts what the change does. Writes nothing. What follows from
//! what is read is decided in [`picture::plan`].
//!
//! | module | reads |
//! |---|---|
//! | `files` | objects from YAML |
//! | `change` | the change |
//! | `look` | clusters |
//! | `offline` | clusters from folders |

mod change;
mod files;
mod look;
mod offline;

use std::{collections::BTreeSet, path::PathBuf};

use api::ServiceName;
use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use picture::plan::{Change, Cluster as Known, Plan, plan as predict};

use crate::{Error, KubeContext, cluster::Cluster, look::each_once};

/// What to predict.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Files and folders with objects to apply.
    pub files: Vec<PathBuf>,
    /// Exports to end.
    pub unexport: Vec<ServiceName>,
    /// Cluster of the change, by ID or context; without it, the first.
    pub at: Option<String>,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// Where the clusters are looked at.
    pub from: PlanFrom,
}

/// Where clusters are looked at.
#[derive(Clone, Debug)]
pub enum PlanFrom {
    /// At these contexts.
    Live(Vec<KubeContext>),
    /// In this folder, which has a folder for each cluster.
    Offline(PathBuf),
}

/// What was predicted.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// What was not looked at.
    pub notes: Vec<String>,
    /// The plan; none if no cluster could be looked at.
    pub plan: Option<Plan>,
}

/// Looks at all clusters at once. A cluster that does not answer costs one limit, and is a note.
///
/// # Errors
/// [`Error::Kubeconfig`], and [`Error::Argument`] if a file cannot be read as objects, or the cluster of the change is not known.
pub async fn plan(options: &PlanOptions) -> Result<Predicted, Error> {
    let mut changes = Vec::new();
    for path in &options.files {
        changes.extend(change::read(path, &options.namespace)?);
    }
    changes.extend(options.unexport.iter().cloned().map(Change::Unexport));
    match &options.from {
        PlanFrom::Live(contexts) => {
            let clusters = opened(contexts).await?;
            Box::pin(planned(&clusters, options.at.as_deref(), &changes)).await
        }
        PlanFrom::Offline(folder) => {
            let known = offline::read(folder, options.at.as_deref())?;
            predicted(&known, vec![], options.at.as_deref(), &changes)
        }
    }
}

/// The clusters behind these contexts.
pub(crate) async fn opened(contexts: &[KubeContext]) -> Result<Vec<Cluster>, Error> {
    let mut clusters = Vec::new();
    for context in contexts {
        clusters.push(Cluster::open(context).await?);
    }
    Ok(clusters)
}

/// What these changes do in the cluster `at`, or in the first one.
pub(crate) async fn planned(
    clusters: &[Cluster],
    at: Option<&str>,
    changes: &[Change],
) -> Result<Predicted, Error> {
    let services: BTreeSet<ServiceName> = changes.iter().map(Change::service).collect();
    let looks = clusters.iter().map(|cluster| Box::pin(look::look(cluster, &services)));
    let known = join_all(looks).await;
    let (known, notes) =
        each_once(known, |cluster: &Known| (cluster.context.clone(), cluster.uid.clone().ok()));
    predicted(&known, notes, at, changes)
}

fn predicted(
    clusters: &[Known],
    mut notes: Vec<String>,
    at: Option<&str>,
    changes: &[Change],
) -> Result<Predicted, Error> {
    for cluster in clusters {
        let gap = cluster.unseen().map(|gap| format!("{} was not looked at: {gap}", cluster.context));
        notes.extend(gap);
    }
    if clusters.iter().all(|cluster| cluster.unseen().is_some()) {
        notes.push("no cluster could be looked at".to_owned());
        return Ok(Predicted { notes, plan: None });
    }
    let plan = predict(clusters, at, changes, Timestamp::now()).map_err(Error::Argument)?;
    Ok(Predicted { notes, plan: Some(plan) })
}

/// What the cluster behind a client holds, as far as these Services are concerned.
pub async fn look_for_plan(name: &str, client: Client, services: &BTreeSet<ServiceName>) -> Known {
    Box::pin(look::look(&Cluster::of(name, client), services)).await
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const EAST: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}}
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop}
  spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ports: [{name: http, port: 80}]}
- apiVersion: multicluster.crd.antrea.io/v1alpha2
  kind: ClusterSet
  metadata: {name: demo, namespace: freeport-system}
  spec: {clusterID: east, leaders: [{clusterID: hub}]}
---
{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: kubernetes}, spec: {cidrs: [10.0.0.0/16]}}
";
    const EXPORT: &str =
        "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: web}}";

    async fn of(clusters: &[&str], change: &str) -> Result<Plan, String> {
        let folder = tempfile::tempdir().unwrap();
        for cluster in clusters {
            fs::create_dir(folder.path().join(cluster)).unwrap();
            fs::write(folder.path().join(cluster).join("all.yaml"), EAST).unwrap();
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), change).unwrap();
        let options = PlanOptions {
            files: vec![file.path().into()],
            unexport: vec![],
            at: None,
            namespace: "shop".into(),
            from: PlanFrom::Offline(folder.path().into()),
        };
        let predicted = Box::pin(plan(&options)).await.map_err(|error| error.to_string())?;
        Ok(predicted.plan.unwrap())
    }

    #[tokio::test]
    async fn folders_stand_for_clusters() {
        let plan = of(&["east"], EXPORT).await.unwrap();
        assert!(plan.is_well(), "{:?}", plan.problems);
        let web = &plan.services[0];
        assert_eq!((web.exporters[0].cluster.as_str(), web.importers[0].cluster.as_str()), ("east", "east"));
        assert!(of(&["east", "west"], EXPORT).await.unwrap_err().ends_with("try: --in east"));
        assert!(of(&[], EXPORT).await.unwrap_err().contains("no folder of a cluster"));
    }

    #[tokio::test]
    async fn a_kind_that_is_not_known_is_named_with_its_place() {
        let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}";
        let said = of(&["east"], &format!("{EXPORT}\n---\n{deployment}\n")).await.unwrap_err();
        assert!(said.contains(", document 2: plan knows no kind Deployment of apps/v1. try: "), "{said}");
        let said = of(&["east"], "---\n").await.unwrap_err();
        assert!(said.contains("no object. try: "), "{said}");
    }
}
