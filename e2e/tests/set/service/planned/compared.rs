//! Where clusters differ from a plan.

use std::collections::BTreeSet;

use api::{
    condition::{Condition, Verdict},
    mcs::{CLUSTERS_REACHABLE, ServiceExport, ServiceImport, ServiceImportSpec},
    name,
    resource_import::{Exporter, ResourceImport, ResourceImportSpec},
};
use e2e::{
    fixture::{AREA, CLUSTERS, World},
    seen::imported_slices,
};
use picture::plan::{Address, Imported, Plan, Planned};

/// Differences from the plan, a sentence each.
pub(super) async fn differences(world: &World, plan: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    for planned in &plan.services {
        all.extend(merged(world, planned).await);
        for exported in &planned.exporters {
            all.extend(export(world, planned, &exported.cluster, &exported.conditions).await);
        }
        for cluster in CLUSTERS {
            all.extend(import(world, planned, cluster).await);
        }
    }
    all
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, planned: &T, found: &T) -> Option<String> {
    (planned != found).then(|| format!("{what}:\n planned {planned:?}\n found   {found:?}"))
}

/// The part of a ResourceImport that is predicted: without ages and versions of records.
fn content(spec: &ResourceImportSpec) -> ResourceImportSpec {
    let exporter =
        |exporter: &Exporter| Exporter { exported_at: None, observed: String::new(), ..exporter.clone() };
    let exporters = spec.exporters.as_ref().map(|all| all.iter().map(exporter).collect());
    ResourceImportSpec { exporters, ..spec.clone() }
}

async fn merged(world: &World, planned: &Planned) -> Option<String> {
    let name = name::service_import(&planned.service());
    let found = world.leader().api::<ResourceImport>(AREA).get_opt(&name).await.unwrap();
    let found = found.map(|found| content(&found.spec));
    differ(&format!("ResourceImport {name}"), &planned.merged.as_ref().map(content), &found)
}

type Said = BTreeSet<(String, String, String, String)>;

fn planned_words(all: &[Verdict]) -> Said {
    let words = |said: &Verdict| {
        (said.type_.to_owned(), said.status.as_str().to_owned(), said.reason.clone(), said.message.clone())
    };
    all.iter().map(words).collect()
}

fn found_words(all: &[Condition]) -> Said {
    let words = |said: &Condition| {
        (said.type_.clone(), said.status.clone(), said.reason.clone(), said.message.clone())
    };
    all.iter().filter(|said| said.type_ != CLUSTERS_REACHABLE).map(words).collect()
}

async fn export(world: &World, planned: &Planned, cluster: &str, conditions: &[Verdict]) -> Option<String> {
    let exports = world.cluster(cluster).api::<ServiceExport>(&planned.namespace);
    let found = exports.get_opt(&planned.name).await.unwrap();
    let found = found.map(|found| found_words(&found.status.unwrap_or_default().conditions));
    let what = format!("conditions of ServiceExport {} in {cluster}", planned.service());
    differ(&what, &Some(planned_words(conditions)), &found)
}

async fn import(world: &World, planned: &Planned, cluster: &str) -> Vec<String> {
    let imports = world.cluster(cluster).api::<ServiceImport>(&planned.namespace);
    let found = imports.get_opt(&planned.name).await.unwrap();
    let importing = planned.importers.iter().find(|importing| importing.cluster == cluster);
    let (want, after) =
        importing.map_or((None, 0), |importing| (importing.import.as_ref(), importing.after.total));
    let what = format!("ServiceImport {} in {cluster}", planned.service());
    let (Some(want), Some(found)) = (want, &found) else {
        return differ(&what, &want.is_some(), &found.is_some()).into_iter().collect();
    };
    let spec = |spec: &ServiceImportSpec| ServiceImportSpec { ips: vec![], ..spec.clone() };
    let status = found.status.clone().unwrap_or_default();
    let mut clusters: Vec<_> = status.clusters.into_iter().map(|of| of.cluster).collect();
    clusters.sort();
    let slices = imported_slices(world.cluster(cluster), &planned.namespace, &planned.name).await;
    let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()).count();
    [
        differ(&what, &spec(&want.spec), &spec(&found.spec)),
        differ(&format!("clusters of {what}"), &want.clusters, &clusters),
        differ(
            &format!("conditions of {what}"),
            &planned_words(&want.conditions),
            &found_words(&status.conditions),
        ),
        differ(&format!("endpoints of {what}"), &after, &endpoints),
        differ(&format!("metadata of {what}"), &true, &has_metadata(want, found)),
        differ(&format!("address of {what}"), &true, &is_address(want, &found.spec.ips)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn has_metadata(want: &Imported, found: &ServiceImport) -> bool {
    let (labels, annotations) = (found.metadata.labels.clone(), found.metadata.annotations.clone());
    let (labels, annotations) = (labels.unwrap_or_default(), annotations.unwrap_or_default());
    want.metadata.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && want.metadata.annotations.iter().all(|(key, value)| annotations.get(key) == Some(value))
}

/// Reports whether the addresses are as planned. A new address is not planned.
fn is_address(want: &Imported, ips: &[String]) -> bool {
    match want.address {
        Address::Kept => want.spec.ips == ips,
        Address::New => !ips.is_empty(),
        Address::None => ips.is_empty(),
    }
}
