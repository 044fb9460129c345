//! `freeport export` and `freeport unexport`: show what the change does in the whole set, make it, and wait until it is done everywhere.
//!
//! | module | does |
//! |---|---|
//! | `end` | ends exports |
//! | `progress` | waits for exporter and importers |

mod end;
mod progress;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{
    ServiceName,
    mcs::{ServiceExport, ServiceExportSpec},
    view::Named,
};
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use picture::plan::{Change, Plan, Planned};
use serde::Deserialize;
use serde_json::json;

pub use self::end::{UnexportOptions, unexport};
use crate::{
    Error, KubeContext, cluster::Cluster, install::MANAGER, objects::Object, plan::planned,
    printable::printable,
};

/// Options of `freeport export`.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The Services.
    pub services: Vec<ServiceName>,
    /// Namespace and labels of more Services.
    pub selected: Option<(String, String)>,
    /// Labels for the ServiceImports.
    pub labels: BTreeMap<String, String>,
    /// Annotations for the ServiceImports.
    pub annotations: BTreeMap<String, String>,
    /// The clusters to look at; the first one exports.
    pub contexts: Vec<KubeContext>,
    /// Shows what would be done, and does not do it.
    pub dry_run: Option<DryRun>,
    /// Limit of the wait; none if the command does not wait.
    pub wait: Option<Duration>,
}

/// Output of a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRun {
    /// The plan.
    Plan,
    /// The ServiceExports as YAML.
    Yaml,
}

/// Exports the Services; whether nothing of it is a problem.
///
/// # Errors
/// [`Error::Refused`] if the API server would refuse a ServiceExport; [`Error::Timeout`]; those of requests.
pub async fn export(options: &ExportOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<bool, Error> {
    let clusters = Cluster::open_all(&options.contexts).await?;
    let Some(cluster) = clusters.first() else { return Ok(true) };
    let services = services(cluster, options).await?;
    let objects: Vec<_> = services.iter().map(|service| object(service, options)).collect();
    if options.dry_run == Some(DryRun::Yaml) {
        for object in objects {
            let object = Object::new(&object);
            let yaml = object.yaml().map_err(|source| Error::Yaml { object: object.to_string(), source })?;
            say(&format!("---\n{}", yaml.trim_end()));
        }
        return Ok(true);
    }
    let changes: Result<Vec<_>, Error> = objects.iter().map(change).collect();
    let plan = shown(&clusters, &changes?, say).await?;
    if let Some(refused) = plan.refused.first() {
        return Err(cluster.refuse(format!("{} would be refused: {}", refused.object, refused.message)));
    }
    if options.dry_run.is_some() {
        return Ok(plan.is_well());
    }
    let (begun, mut generations) = (Instant::now(), BTreeMap::new());
    for (service, object) in services.iter().zip(&objects) {
        let exports: Api<ServiceExport> =
            Api::namespaced(cluster.client.clone(), &object.namespace().unwrap_or_default());
        let (name, params) = (object.name_any(), PatchParams::apply(MANAGER));
        let doing = format!("apply {}", Object::new(object));
        let applied = cluster.request(doing, exports.patch(&name, &params, &Patch::Apply(object))).await?;
        generations.insert(service.clone(), applied.metadata.generation);
        say(&format!("{}: applied {}", cluster.name, Object::new(object)));
    }
    let Some(limit) = options.wait else { return Ok(plan.is_well()) };
    let mut is_well = plan.is_well();
    for service in &plan.services {
        let generation = generations.get(&service.service()).copied().flatten();
        is_well &= progress::exported(&clusters, &plan, (service, generation), (begun, limit), say).await?;
    }
    Ok(is_well)
}

/// Shows what the changes do in the first of the clusters.
async fn shown(
    clusters: &[Cluster],
    changes: &[Change],
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Plan, Error> {
    let at = clusters.first().map(|first| first.name.as_str());
    let predicted = Box::pin(planned(clusters, at, changes)).await;
    predicted.notes.iter().for_each(|note| say(&format!("note: {}", printable(note))));
    let plan = predicted.plan?;
    plan.not_looked_at.iter().for_each(|note| say(&format!("note: {}", printable(note))));
    plan.text().iter().for_each(|line| say(&printable(line)));
    Ok(plan)
}

/// The Services that are named, and those that have the labels.
async fn services(cluster: &Cluster, options: &ExportOptions) -> Result<Vec<ServiceName>, Error> {
    let mut services = options.services.clone();
    if let Some((namespace, labels)) = &options.selected {
        let all: Api<Named<Service>> = Api::namespaced(cluster.client.clone(), namespace);
        let found = cluster.all(&all, labels).await?;
        let found = found.into_iter().map(|service| ServiceName::new(namespace, service.name_any()));
        let found = found.filter(|service| !service.name.starts_with(api::label::IMPORTED_PREFIX));
        let more: Vec<_> = found.filter(|service| !services.contains(service)).collect();
        services.extend(more);
        if services.is_empty() {
            let reason = format!("no Service in Namespace {namespace} has labels {labels}");
            return Err(cluster.refuse(reason));
        }
    }
    Ok(services)
}

fn object(service: &ServiceName, options: &ExportOptions) -> ServiceExport {
    let spec = ServiceExportSpec {
        exported_labels: options.labels.clone(),
        exported_annotations: options.annotations.clone(),
    };
    let mut object = ServiceExport::new(&service.name, spec);
    object.metadata.namespace = Some(service.namespace.clone());
    object
}

fn change(object: &ServiceExport) -> Result<Change, Error> {
    let failed = |source| Error::Json { object: Object::new(object).to_string(), source };
    Ok(Change::Export(Deserialize::deserialize(json!(object)).map_err(failed)?))
}

/// The cluster behind the context.
fn reached<'a>(clusters: &'a [Cluster], context: &str) -> Option<&'a Cluster> {
    clusters.iter().find(|cluster| cluster.name == context)
}

/// `shop/web` as clients call it in every cluster.
fn dns_name(service: &Planned) -> String {
    format!("{}.{}.svc.{}", service.name, service.namespace, picture::dns::corefile::ZONE)
}
