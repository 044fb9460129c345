//! Reads from one cluster what `freeport plan` needs, all at once.

use std::collections::BTreeSet;

use api::{ServiceName, label, lease::LeaseView, name, view::Meta};
use futures::future::join_all;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Namespace, networking::v1::ServiceCIDR},
};
use kube::{Api, Resource, ResourceExt};
use picture::{
    gap::{Gap, Seen},
    plan::{Area, Cluster as Known, Export, Import, OwnRecord, ReportView, Service, Slice, TargetPorts},
    view::ClusterSetView,
};
use serde::de::DeserializeOwned;

use crate::{
    cluster::Cluster,
    look::{one, seen, several},
    objects::SYSTEM,
    part::{common_areas, get, within},
};

/// Reads all that a plan for these Services needs of the cluster.
pub(super) async fn look(cluster: &Cluster, services: &BTreeSet<ServiceName>) -> Known {
    let all = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let (sets, system) = tokio::join!(
        Box::pin(several::<ClusterSetView>(cluster, SYSTEM, "")),
        Box::pin(get(cluster, &all, "Namespace kube-system".into(), "kube-system")),
    );
    if let Err(gap @ Gap::NoAnswer(_)) = &sets {
        return Known::unknown(&cluster.name, gap);
    }
    let names: BTreeSet<_> = services.iter().map(|service| service.namespace.as_str()).collect();
    let (deployment, families, namespaces, exports, in_question, target_ports, slices, imports, areas) = tokio::join!(
        Box::pin(one::<Deployment>(cluster, SYSTEM, label::MEMBER)),
        Box::pin(families(cluster)),
        Box::pin(namespaces(cluster, &names)),
        Box::pin(in_each::<Export>(cluster, &names, String::new())),
        Box::pin(in_each::<Service>(cluster, &names, String::new())),
        Box::pin(in_each::<TargetPorts>(cluster, &names, String::new())),
        Box::pin(in_each::<Slice>(cluster, &names, of_services(services))),
        Box::pin(in_each::<Import>(cluster, &names, String::new())),
        Box::pin(areas(cluster, &names)),
    );
    let uid = seen(system).and_then(|system| system.and_then(|system| system.uid()).ok_or(Gap::NotLooked));
    Known {
        context: cluster.name.clone(),
        uid,
        sets,
        deployment,
        families,
        namespaces,
        exports,
        services: in_question,
        target_ports,
        slices,
        imports,
        areas,
    }
}

/// Selects the EndpointSlices of these Services and of their imports.
fn of_services(services: &BTreeSet<ServiceName>) -> String {
    let names: BTreeSet<_> = services
        .iter()
        .flat_map(|service| [service.name.clone(), name::imported_service(&service.name)])
        .collect();
    format!("{} in ({})", label::SERVICE_NAME, names.into_iter().collect::<Vec<_>>().join(","))
}

/// Those of these Namespaces that exist.
async fn namespaces(cluster: &Cluster, names: &BTreeSet<&str>) -> Seen<Vec<Meta<Namespace>>> {
    let all = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let read = names.iter().map(|name| Box::pin(get(cluster, &all, format!("Namespace {name}"), name)));
    let mut there = Vec::new();
    for namespace in join_all(read).await {
        there.extend(seen(namespace)?);
    }
    Ok(there)
}

/// All objects of a kind in these Namespaces.
async fn in_each<K>(cluster: &Cluster, namespaces: &BTreeSet<&str>, labels: String) -> Seen<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let lists = namespaces.iter().map(|namespace| Box::pin(several::<K>(cluster, namespace, &labels)));
    let mut all = Vec::new();
    for list in join_all(lists).await {
        all.extend(list?);
    }
    Ok(all)
}

/// IP families of the cluster's Services, the preferred one first.
async fn families(cluster: &Cluster) -> Seen<Vec<String>> {
    let ranges = Api::<ServiceCIDR>::all(cluster.client.clone());
    let found = seen(get(cluster, &ranges, "ServiceCIDR kubernetes".into(), "kubernetes").await)?;
    let spec = found.and_then(|found| found.spec).ok_or(Gap::NoKind)?;
    Ok(families_of(&spec.cidrs.unwrap_or_default()))
}

/// The IP families of these ranges.
pub(super) fn families_of(ranges: &[String]) -> Vec<String> {
    ranges.iter().map(|range| api::family::of(range).to_owned()).collect()
}

/// Common Areas of ClusterSets that the cluster leads.
async fn areas(cluster: &Cluster, namespaces: &BTreeSet<&str>) -> Seen<Vec<Area>> {
    let names = seen(common_areas(cluster).await)?;
    let in_question = namespaces.iter().copied().collect::<Vec<_>>().join(",");
    let labels = &format!("{} in ({in_question})", label::SOURCE_NAMESPACE);
    let area = async |namespace: String| {
        let (sets, leases, records, reports) = tokio::join!(
            Box::pin(several::<ClusterSetView>(cluster, &namespace, "")),
            Box::pin(several::<LeaseView>(cluster, &namespace, "")),
            Box::pin(several::<OwnRecord>(cluster, &namespace, labels)),
            Box::pin(within::<ReportView>(cluster, &namespace)),
        );
        Area { namespace, sets, leases, records, reports: seen(reports) }
    };
    Ok(join_all(names.into_iter().map(|name| Box::pin(area(name)))).await)
}
