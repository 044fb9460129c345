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
//! | `unplanned` | why nothing can be predicted |
//! | `writes` | number of writes |
//! | `report` | the plan, and its problems |
//! | `target_ports` | ports of Pods that a Service leads to |
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
mod target_ports;
mod text;
mod unplanned;
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
    target_ports::TargetPorts,
    unplanned::Unplanned,
    writes::Writes,
};
use self::{predicted::Predicted, scene::Scene};

/// Plans these changes in the cluster `at`, an ID or a context; without it, in the first one.
///
/// # Errors
/// [`Unplanned`], if no cluster has that name, the cluster belongs to no ClusterSet, or what the change is about could not be read there.
pub fn plan(
    clusters: &[Cluster],
    at: Option<&str>,
    changes: &[Change],
    now: Timestamp,
) -> Result<Plan, Unplanned> {
    let target = target(clusters, at)?;
    let set = unplanned::readable(target)?;
    let (mut changed, mut refused, mut unsettled) = (target.clone(), Vec::new(), BTreeSet::new());
    for change in changes {
        let unsettles = change.unsettles(&changed);
        match change.apply(&mut changed, now) {
            Ok(()) if unsettles => drop(unsettled.insert(change.service())),
            Ok(()) => {}
            Err(why) => refused.push(why),
        }
    }
    let is_target = |cluster: &&Cluster| cluster.context == target.context;
    let others = || clusters.iter().filter(|cluster| !is_target(cluster));
    let before = Scene::of(clusters, &set.name_any());
    let mut after = Scene::of(others().chain([&changed]), &set.name_any());
    after.unsettled = target.id().map(|id| (id, &unsettled));
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

fn target<'a>(clusters: &'a [Cluster], at: Option<&str>) -> Result<&'a Cluster, Unplanned> {
    let none = || Unplanned::UnknownCluster("no cluster was looked at".to_owned());
    let Some(at) = at else { return clusters.first().ok_or_else(none) };
    let is_it = |cluster: &&Cluster| cluster.id() == Some(at) || cluster.context == at;
    clusters.iter().find(is_it).ok_or_else(|| {
        let known: Vec<_> = clusters.iter().map(Cluster::title).collect();
        let why = format!("no cluster that was looked at is called {at:?}; known: {}", known.join(", "));
        // It may be the ID of a cluster whose ID could not be read.
        match clusters.iter().find(|cluster| cluster.sets.is_err()) {
            Some(unread) => Unplanned::Unread { context: unread.context.clone(), why },
            None => Unplanned::UnknownCluster(why),
        }
    })
}

#[cfg(test)]
mod tests;
