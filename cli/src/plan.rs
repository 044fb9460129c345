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
use picture::{
    plan::{Change, Cluster as Known, Plan, Unplanned, plan as predict},
    view::ClusterSetView,
};

use crate::{
    Error, KubeContext,
    cluster::Cluster,
    look::{each_once, several},
    objects::SYSTEM,
};

/// Options of `freeport plan`.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Files and folders with objects to apply.
    pub files: Vec<PathBuf>,
    /// Exports to end.
    pub unexport: Vec<ServiceName>,
    /// Cluster of the change, by ID or context; without it, the first.
    pub at: Option<String>,
    /// Namespace of objects that name none; without it, that of the context of the change.
    pub namespace: Option<String>,
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

/// Result of `freeport plan`.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// Parts that were not looked at.
    pub notes: Vec<String>,
    /// The plan, or why there is none.
    pub plan: Result<Plan, Unplanned>,
}

/// Looks at all clusters at once. A cluster that does not answer costs one limit, and is a note.
///
/// # Errors
/// [`Error::Kubeconfig`], and [`Error::Argument`] if a file cannot be read as objects.
pub async fn plan(options: &PlanOptions) -> Result<Predicted, Error> {
    let at = options.at.as_deref();
    Ok(match &options.from {
        PlanFrom::Live(contexts) => {
            let clusters = Cluster::open_all(contexts).await?;
            let namespace = match &options.namespace {
                Some(namespace) => namespace.clone(),
                None => Box::pin(namespace(contexts, &clusters, at)).await?,
            };
            Box::pin(planned(&clusters, at, &changes(options, &namespace)?)).await
        }
        PlanFrom::Offline(folder) => {
            let changes = changes(options, options.namespace.as_deref().unwrap_or("default"))?;
            predicted(&offline::read(folder, at)?, vec![], at, &changes)
        }
    })
}

fn changes(options: &PlanOptions, namespace: &str) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    for path in &options.files {
        changes.extend(change::read(path, namespace)?);
    }
    changes.extend(options.unexport.iter().cloned().map(Change::Unexport));
    Ok(changes)
}

/// Namespace that the context of the cluster `at` names, or that of the first one. Asks for IDs only if `at` is no context.
async fn namespace(
    contexts: &[KubeContext],
    clusters: &[Cluster],
    at: Option<&str>,
) -> Result<String, Error> {
    let of =
        |place: usize| contexts.get(place).map_or_else(|| Ok("default".to_owned()), KubeContext::namespace);
    let Some(at) = at else { return of(0) };
    if let Some(place) = clusters.iter().position(|cluster| cluster.name == at) {
        return of(place);
    }
    let is_it = clusters.iter().map(|cluster| {
        Box::pin(async move {
            let sets = several::<ClusterSetView>(cluster, SYSTEM, "").await.unwrap_or_default();
            sets.first().and_then(ClusterSetView::cluster_id) == Some(at)
        })
    });
    of(join_all(is_it).await.into_iter().position(|is_it| is_it).unwrap_or_default())
}

/// Predicts the effect of these changes in the cluster `at`, or in the first one.
pub(crate) async fn planned(clusters: &[Cluster], at: Option<&str>, changes: &[Change]) -> Predicted {
    let services: BTreeSet<ServiceName> = changes.iter().map(Change::service).collect();
    let looks = clusters.iter().map(|cluster| Box::pin(look::look(cluster, &services)));
    let known = join_all(looks).await;
    let (known, notes) =
        each_once(known, |cluster: &Known| (cluster.context.clone(), cluster.uid.clone().ok()));
    predicted(&known, notes, at, changes)
}

fn predicted(clusters: &[Known], mut notes: Vec<String>, at: Option<&str>, changes: &[Change]) -> Predicted {
    for cluster in clusters {
        let gap = cluster.unseen().map(|gap| format!("{} was not looked at: {gap}", cluster.context));
        notes.extend(gap);
    }
    if clusters.iter().all(|cluster| cluster.unseen().is_some()) {
        notes.push("no cluster could be looked at".to_owned());
    }
    Predicted { notes, plan: predict(clusters, at, changes, Timestamp::now()) }
}

/// Reads all that a plan for these Services needs of the cluster behind a client.
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
        in_cluster(None, clusters, change).await
    }

    async fn in_cluster(at: Option<&str>, clusters: &[&str], change: &str) -> Result<Plan, String> {
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
            at: at.map(str::to_owned),
            namespace: Some("shop".into()),
            from: PlanFrom::Offline(folder.path().into()),
        };
        let predicted = Box::pin(plan(&options)).await.map_err(|error| error.to_string())?;
        predicted.plan.map_err(|unplanned| format!("{unplanned:?}"))
    }

    #[tokio::test]
    async fn a_name_that_no_folder_has_is_a_wrong_argument() {
        let said = in_cluster(Some("north"), &["east"], EXPORT).await.unwrap_err();
        assert!(said.starts_with("UnknownCluster"), "{said}");
    }

    #[tokio::test]
    async fn objects_without_a_namespace_are_in_that_of_the_context_of_the_change() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = "{clusters: [{name: n, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: n, user: {}}], \
                      contexts: [{name: a, context: {cluster: n, user: n, namespace: first}}, {name: b, context: {cluster: n, user: n, namespace: second}}]}";
        fs::write(file.path(), config).unwrap();
        let context = |name: &str| KubeContext {
            file: Some(file.path().into()),
            name: Some(name.into()),
            ..KubeContext::default()
        };
        let contexts = ["a", "b"].map(context);
        let clusters = Cluster::open_all(&contexts).await.unwrap();
        assert_eq!(namespace(&contexts, &clusters, None).await.unwrap(), "first");
        assert_eq!(namespace(&contexts, &clusters, Some("b")).await.unwrap(), "second");
        // Nobody answers: the notes are kept, and no cluster was named in a wrong way.
        let unread = planned(&clusters, Some("b"), &[]).await;
        assert_eq!(unread.notes.len(), 3, "{unread:?}");
        assert_eq!(Error::from(unread.plan.unwrap_err()).exit_code(), 3);
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
    async fn a_new_target_port_in_a_file_is_seen() {
        let web = |target: u16| {
            format!(
                "{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop}}, spec: {{selector: {{app: web}}, \
                 ports: [{{name: http, port: 80, targetPort: {target}}}]}}}}"
            )
        };
        let known = format!("{EXPORT}\n---\n{}", web(80));
        let noted = async |change: &str| {
            let plan = Box::pin(of(&["east"], change)).await.unwrap();
            plan.not_looked_at.iter().any(|note| note.starts_with("endpoints of shop/web in east"))
        };
        // EAST has a Service without a selector.
        assert!(noted(&known).await);
        assert!(!noted(EXPORT).await);
        let twice = |target| format!("{known}\n---\n{}", web(target));
        assert!(noted(&twice(8080)).await);
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
