//! Reads from one cluster what `freeport check` needs, all at once: a cluster that does not answer costs the limit of one request.

use std::collections::BTreeSet;

use api::{
    label,
    lease::LeaseView,
    ranges::Ranges,
    view::{Lenient, Meta, lean},
};
use futures::future::join_all;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Node, NodeSpec},
        networking::v1::ServiceCIDR,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Resource, api::ObjectMeta};
use picture::{
    check::cluster::{Area, Cluster as Known, Server},
    gap::{Gap, Seen},
    member::Member,
    view::{ClusterSetView, PodView, ServiceExportView, ServiceImportView},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::clock;
use crate::{
    cluster::Cluster,
    look::{dns::dns, one, seen, several, uid},
    objects::SYSTEM,
    part::{common_areas, get, list},
};

/// Addresses of a Node's Pods.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Node)]
struct NodeRanges {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<NodeSpec>,
}

/// What is known of the cluster. `crds`: those to look for.
pub(super) async fn look(cluster: &Cluster, crds: &BTreeSet<&str>) -> Known {
    let pods = |daemon: &str| format!("app.kubernetes.io/name={daemon}");
    let (of_member, of_leader) = (pods(label::MEMBER), pods(label::LEADER));
    let ours = format!("{}={}", label::MANAGED_BY, label::FREEPORT);
    let of_nodes = |node: NodeRanges| node.spec.0.ok().and_then(|spec| spec.pod_cidrs).unwrap_or_default();
    let of_services = |range: ServiceCIDR| range.spec.and_then(|spec| spec.cidrs).unwrap_or_default();
    let (uid, server, crds, sets, lease, deployment, pods) = tokio::join!(
        Box::pin(uid(cluster)),
        Box::pin(server(cluster)),
        Box::pin(installed(cluster, crds)),
        Box::pin(several::<ClusterSetView>(cluster, SYSTEM, "")),
        Box::pin(one::<LeaseView>(cluster, SYSTEM, label::MEMBER)),
        Box::pin(one::<Deployment>(cluster, SYSTEM, label::MEMBER)),
        Box::pin(several::<PodView>(cluster, SYSTEM, &of_member)),
    );
    if let Err(gap @ Gap::NoAnswer(_)) = &uid {
        return Known::unknown(&cluster.name, gap);
    }
    let (leader, leader_pods, areas, exports, imports, pod_ranges, service_ranges, dns) = tokio::join!(
        Box::pin(one::<Deployment>(cluster, SYSTEM, label::LEADER)),
        Box::pin(several::<PodView>(cluster, SYSTEM, &of_leader)),
        Box::pin(areas(cluster)),
        Box::pin(everywhere::<ServiceExportView>(cluster, "")),
        Box::pin(everywhere::<ServiceImportView>(cluster, &ours)),
        Box::pin(ranges(cluster, of_nodes)),
        Box::pin(ranges(cluster, of_services)),
        Box::pin(dns(cluster)),
    );
    Known {
        context: cluster.name.clone(),
        uid,
        server,
        crds,
        member: Member { sets, lease, deployment, pods },
        leader,
        leader_pods,
        areas,
        exports,
        imports,
        pod_ranges,
        service_ranges,
        dns,
    }
}

async fn server(cluster: &Cluster) -> Seen<Server> {
    let version = cluster.request("ask for the version", cluster.client.apiserver_version());
    let (version, ahead) = tokio::join!(Box::pin(version), Box::pin(clock::ahead(cluster)));
    let version = seen(version.map(Ok))?;
    // Distributions add a sign, as in 31+.
    let number = |text: &str| text.trim_end_matches('+').parse().ok();
    let release = number(&version.major).zip(number(&version.minor));
    Ok(Server { version: version.git_version, release, ahead })
}

/// Those of these CRDs that are there.
pub(crate) async fn installed(
    cluster: &Cluster,
    names: &BTreeSet<&str>,
) -> Seen<Vec<Meta<CustomResourceDefinition>>> {
    let crds = Api::<Meta<CustomResourceDefinition>>::all(cluster.client.clone());
    let read = names.iter().map(|name| Box::pin(get(cluster, &crds, format!("CRD {name}"), name)));
    let mut there = Vec::new();
    for crd in join_all(read).await {
        there.extend(seen(crd)?);
    }
    Ok(there)
}

/// Common Areas of ClusterSets that the cluster leads.
async fn areas(cluster: &Cluster) -> Seen<Vec<Area>> {
    let names = seen(common_areas(cluster).await)?;
    let area = async |namespace: String| {
        let (sets, leases) = tokio::join!(
            Box::pin(several::<ClusterSetView>(cluster, &namespace, "")),
            Box::pin(several::<LeaseView>(cluster, &namespace, "")),
        );
        Area { namespace, sets, leases }
    };
    Ok(join_all(names.into_iter().map(|name| Box::pin(area(name)))).await)
}

/// All objects of a kind with these labels. Of a kind that is not known there are none.
async fn everywhere<K>(cluster: &Cluster, labels: &str) -> Seen<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let objects = Api::<K>::all(cluster.client.clone());
    match seen(list(cluster, &objects, K::plural(&()).into(), labels, |object: K| object).await) {
        Err(Gap::NoKind) => Ok(vec![]),
        seen => seen,
    }
}

/// The ranges that all objects of a kind have.
async fn ranges<K>(cluster: &Cluster, of: impl Fn(K) -> Vec<String>) -> Seen<Ranges>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let objects = Api::<K>::all(cluster.client.clone());
    let all = seen(list(cluster, &objects, K::plural(&()).into(), "", of).await)?;
    let each = all.into_iter().flatten().filter_map(|range| range.parse::<Ranges>().ok());
    Ok(Ranges::of(each.flat_map(|ranges| ranges.iter().copied().collect::<Vec<_>>())))
}

#[cfg(test)]
mod tests;
