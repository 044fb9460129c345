//! Reads from one cluster what `freeport why` needs, all at once: a cluster that does not answer costs the limit of one request.

use api::{ServiceName, label, lease::LeaseView, name, view::Meta};
use futures::future::join_all;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Namespace},
};
use kube::{Api, Resource, ResourceExt};
use picture::{
    cluster::{Area, Cluster as Known, Gap, Seen},
    view::{
        ClusterSetView, MergedView, PodView, RecordView, ServiceExportView, ServiceImportView, ServiceView,
        SliceView,
    },
};
use serde::de::DeserializeOwned;

use crate::{
    Error,
    cluster::Cluster,
    error::Failure,
    objects::SYSTEM,
    part::{Part, Why, common_areas, get, list},
};

/// What is known of the cluster as far as the Service is concerned.
pub(super) async fn look(cluster: &Cluster, service: &ServiceName) -> Known {
    let (namespace, name) = (service.namespace.as_str(), service.name.as_str());
    let pods = format!("app.kubernetes.io/name={}", label::MEMBER);
    let slices = format!("{} in ({name},{})", label::SERVICE_NAME, name::imported_service(name));
    let all = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let (uid, here, sets, lease, deployment, pods, exports, services, import, slices, areas) = tokio::join!(
        Box::pin(get(cluster, &all, "Namespace kube-system".into(), "kube-system")),
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
    );
    let uid = seen(uid).and_then(|system| system.and_then(|system| system.uid()).ok_or(Gap::NotLooked));
    Known {
        context: cluster.name.clone(),
        uid,
        sets,
        lease,
        deployment,
        pods,
        namespace: seen(here),
        exports,
        services,
        import,
        slices,
        areas,
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

/// The object of this name.
async fn one<K>(cluster: &Cluster, namespace: &str, name: &str) -> Seen<Option<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let objects: Api<K> = Api::namespaced(cluster.client.clone(), namespace);
    seen(get(cluster, &objects, format!("{} {namespace}/{name}", K::kind(&())), name).await)
}

/// All objects with these labels. Of a kind that is not known there are none.
async fn several<K>(cluster: &Cluster, namespace: &str, labels: &str) -> Seen<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let objects: Api<K> = Api::namespaced(cluster.client.clone(), namespace);
    let part = format!("{} in {namespace}", K::plural(&()));
    match seen(list(cluster, &objects, part, labels, |object: K| object).await) {
        Err(Gap::NoKind) => Ok(vec![]),
        seen => seen,
    }
}

/// A part as the picture has it: an API server that does not answer is a gap like others.
fn seen<T>(answer: Result<Part<T>, Error>) -> Seen<T> {
    match answer {
        Ok(Ok(part)) => Ok(part),
        Ok(Err(gap)) => Err(match gap.why {
            Why::NoCrd => Gap::NoKind,
            Why::Forbidden(why) => Gap::Forbidden(why),
            Why::Failed(why) => Gap::Failed(why),
        }),
        Err(error) => Err(match error.failure() {
            Failure::NoAnswer | Failure::Unauthorized => Gap::NoAnswer(error.to_string()),
            _ => Gap::Failed(error.to_string()),
        }),
    }
}
