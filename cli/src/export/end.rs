//! Ends exports.

use std::{
    io::{BufRead, IsTerminal, Write, stdin},
    time::Duration,
};

use api::{ServiceName, mcs::ServiceExport};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use picture::{
    plan::{Change, Plan},
    view::ServiceImportView,
};

use super::{reached, shown};
use crate::{Error, KubeContext, cluster::Cluster, rollout::wait};

/// Which exports to end.
#[derive(Clone, Debug)]
pub struct UnexportOptions {
    /// The Services.
    pub services: Vec<ServiceName>,
    /// The clusters to look at; the first one ends its exports.
    pub contexts: Vec<KubeContext>,
    /// True if imports may lose their last endpoint.
    pub yes: bool,
    /// Limit of the wait; none if the command does not wait.
    pub wait: Option<Duration>,
}

/// Ends the exports.
///
/// # Errors
/// [`Error::Unconfirmed`] if an import would lose its last endpoint, or may lose it, and nobody confirms that; [`Error::Refused`] if there is no such export;
/// [`Error::Timeout`]; those of requests.
pub async fn unexport(options: &UnexportOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    let clusters = Cluster::open_all(&options.contexts).await?;
    let Some(cluster) = clusters.first() else { return Ok(()) };
    let changes: Vec<_> = options.services.iter().cloned().map(Change::Unexport).collect();
    let plan = shown(&clusters, &changes, say).await?;
    if let Some(refused) = plan.refused.first() {
        return Err(cluster.refuse(format!("{}: {}", refused.object, refused.message)));
    }
    if let Some(loss) = plan.loss().filter(|_| !options.yes)
        && !is_confirmed()
    {
        let reason = format!("{loss}; nothing was done. To end the export all the same, add --yes");
        return Err(cluster.unconfirmed(reason));
    }
    for service in &options.services {
        delete(cluster, service).await?;
        say(&format!("{}: deleted ServiceExport {service}", cluster.name));
    }
    match options.wait {
        Some(limit) => ended(&clusters, &plan, limit, say).await,
        None => Ok(()),
    }
}

/// Asks on a terminal.
fn is_confirmed() -> bool {
    if !stdin().is_terminal() {
        return false;
    }
    drop(write!(std::io::stderr(), "End the export? [y/N] "));
    let mut answer = String::new();
    let read = stdin().lock().read_line(&mut answer);
    read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

async fn delete(cluster: &Cluster, service: &ServiceName) -> Result<(), Error> {
    let exports: Api<ServiceExport> = Api::namespaced(cluster.client.clone(), &service.namespace);
    let found = cluster.request(format!("read ServiceExport {service}"), exports.get(&service.name)).await?;
    let preconditions = Some(Preconditions { uid: found.uid(), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default() };
    cluster
        .request(format!("delete ServiceExport {service}"), exports.delete(&service.name, &params))
        .await?;
    Ok(())
}

/// Waits until no import names the cluster.
async fn ended(
    clusters: &[Cluster],
    plan: &Plan,
    limit: Duration,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    let probe = async || {
        for service in &plan.services {
            for importing in &service.importers {
                let Some(cluster) = reached(clusters, &importing.context) else { continue };
                let imports: Api<ServiceImportView> =
                    Api::namespaced(cluster.client.clone(), &service.namespace);
                let doing = format!("read ServiceImport {}", service.service());
                let found = cluster.request(doing, imports.get_opt(&service.name)).await?;
                if found.is_some_and(|found| found.clusters().any(|from| from == plan.cluster)) {
                    let (title, place) = (service.service(), &importing.cluster);
                    return Ok(Err(format!("{place} still has endpoints of {} in {title}", plan.cluster)));
                }
            }
        }
        Ok(Ok(()))
    };
    let waiting = |message: &str| say(&format!("waiting: {message}"));
    let cluster = clusters.first().map(|first| first.name.clone()).unwrap_or_default();
    wait(limit, probe, waiting).await?.map_err(|missing| Error::Timeout { cluster, missing, limit })
}
