//! Reads from one cluster what `freeport why` needs, all at once: a cluster that does not answer costs the limit of one request.

use api::{ServiceName, label, lease::LeaseView, name, view::Meta};
use futures::future::join_all;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::Api;
use picture::{
    cluster::{Area, Cluster as Known},
    gap::Seen,
    member::Member,
    view::{
        ClusterSetView, MergedView, PodView, RecordView, ServiceExportView, ServiceImportView, ServiceView,
        SliceView,
    },
};

use crate::{
    cluster::Cluster,
    look::{dns::dns, one, seen, several, uid},
    objects::SYSTEM,
    part::{common_areas, get},
};

/// What is known of the cluster as far as the Service is concerned.
pub(super) async fn look(cluster: &Cluster, service: &ServiceName) -> Known {
    let (namespace, name) = (service.namespace.as_str(), service.name.as_str());
    let pods = format!("app.kubernetes.io/name={}", label::MEMBER);
    let slices = format!("{} in ({name},{})", label::SERVICE_NAME, name::imported_service(name));
    let all = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let (uid, here, sets, lease, deployment, pods, exports, services, import, slices, areas, dns) = tokio::join!(
        Box::pin(uid(cluster)),
        Box::pin(get(cluster, &all, format!("Namespace {namespace}"), namespace)),
        Box::pin(several::<ClusterSetView>(cluster, SYSTEM, "")),
        Box::pin(one::<LeaseView>(cluster, SYSTEM, label::MEMBER)),
        Box::pin(one::<Deployment>(cluster, SYSTEM, label::MEMBER)),
        Box::pin(several::<PodView>(cluster, SYSTEM, &pods)),
        Box::pin(several::<ServiceExportView>(cluster, namespace, "")),
        Box::pin(several::<ServiceView>(cluster, namespace, "")),
        Box::pin(one::<ServiceImportView>(cluster, namespace, name)),
        Box::pin(several::<SliceView>(cluster, namespace, &slices)),
        Box::pin(areas(cluster, service)),
        Box::pin(dns(cluster)),
    );
    Known {
        context: cluster.name.clone(),
        uid,
        member: Member { sets, lease, deployment, pods },
        namespace: seen(here),
        exports,
        services,
        import,
        slices,
        areas,
        dns,
    }
}

/// Common Areas of ClusterSets that the cluster leads.
async fn areas(cluster: &Cluster, service: &ServiceName) -> Seen<Vec<Area>> {
    let names = seen(common_areas(cluster).await)?;
    Ok(join_all(names.into_iter().map(|name| Box::pin(area(cluster, name, service)))).await)
}

async fn area(cluster: &Cluster, namespace: String, service: &ServiceName) -> Area {
    let of_service =
        format!("{}={},{}={}", label::SOURCE_NAMESPACE, service.namespace, label::SOURCE_NAME, service.name);
    let merged = name::service_import(service);
    let (sets, leases, records, merged) = tokio::join!(
        Box::pin(several::<ClusterSetView>(cluster, &namespace, "")),
        Box::pin(several::<LeaseView>(cluster, &namespace, "")),
        Box::pin(several::<RecordView>(cluster, &namespace, &of_service)),
        Box::pin(one::<MergedView>(cluster, &namespace, &merged)),
    );
    Area { namespace, sets, leases, records, merged }
}
