//! Predicts what a change of ServiceExports and Services in one cluster does in the whole ClusterSet, with the rules by which leader and
//! members decide.
//!
//! | module | holds |
//! |---|---|
//! | `held` | what is known of clusters |
//! | `change` | the change, and what an API server would refuse of it |
//! | `condition` | conditions as they are shown |
//! | `scene` | who takes part |
//! | `exporter` | what each cluster exports |
//! | `importer` | what each cluster imports |
//! | `said` | conditions of ServiceExports |
//! | `predicted` | a Service of the set as it is before or after the change |
//! | `writes` | number of writes |
//! | `report` | the plan, and its problems |
//! | `text` | the plan for people |

mod change;
mod condition;
mod exporter;
mod held;
mod importer;
mod predicted;
mod report;
mod said;
mod scene;
mod text;
mod writes;

use std::collections::BTreeSet;

use api::ServiceName;
use jiff::Timestamp;
use kube::ResourceExt;
pub use rules::view::{Export, Import, OwnRecord, Service, Slice};

pub use self::{
    change::{Change, Refused},
    held::{Area, Cluster, ReportView},
    importer::{Address, Endpoints, Imported},
    report::{Exported, Importing, Plan, Planned},
    writes::Writes,
};
use self::{predicted::Predicted, scene::Scene};

/// Plans these changes in the cluster `at`, an ID or a context; without it, in the first one.
///
/// # Errors
/// A sentence, if no cluster has that name, or the cluster belongs to no ClusterSet.
pub fn plan(
    clusters: &[Cluster],
    at: Option<&str>,
    changes: &[Change],
    now: Timestamp,
) -> Result<Plan, String> {
    let target = target(clusters, at)?;
    let set = target.set().ok_or_else(|| match &target.sets {
        Ok(_) => format!("{} belongs to no ClusterSet. try: freeport join --context {0}", target.context),
        Err(gap) => format!("ClusterSets of {} are not known: {gap}", target.context),
    })?;
    let (mut changed, mut refused) = (target.clone(), Vec::new());
    for change in changes {
        refused.extend(change.apply(&mut changed, now).err());
    }
    let is_target = |cluster: &&Cluster| cluster.context == target.context;
    let others = || clusters.iter().filter(|cluster| !is_target(cluster));
    let before = Scene::of(clusters, &set.name_any());
    let after = Scene::of(others().chain([&changed]), &set.name_any());
    let services: BTreeSet<ServiceName> = changes.iter().map(Change::service).collect();
    let planned = services.into_iter().filter_map(|service| {
        // A Service that is not exported changes nothing elsewhere.
        let is_exported = [target, &changed].iter().any(|cluster| cluster.export(&service).is_some());
        is_exported.then(|| {
            let (was, will) = (Predicted::of(&before, &service), Predicted::of(&after, &service));
            Planned::of(&service, &after, &was, &will)
        })
    });
    Ok(Plan::of(target, planned.collect(), refused, &after))
}

fn target<'a>(clusters: &'a [Cluster], at: Option<&str>) -> Result<&'a Cluster, String> {
    let Some(at) = at else { return clusters.first().ok_or_else(|| "no cluster was looked at".to_owned()) };
    let is_it = |cluster: &&Cluster| cluster.id() == Some(at) || cluster.context == at;
    clusters.iter().find(is_it).ok_or_else(|| {
        let known: Vec<_> = clusters.iter().map(Cluster::title).collect();
        format!("no cluster that was looked at is called {at:?}; known: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
