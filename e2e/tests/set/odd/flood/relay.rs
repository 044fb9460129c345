//! What daemons have to do at least, and nothing beside: each write follows from an event of a watch, and nothing is decided. So what an
//! export takes with it is what the API servers take.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use api::{
    ServiceName,
    mcs::{ServiceExport, ServiceImport},
    name,
    resource_export::{ResourceExport, SERVICE},
    resource_import::ResourceImport,
};
use e2e::{
    cluster::Cluster,
    fixture::{AREA, World},
    record,
    shared::RUNTIME,
};
use futures::{FutureExt, TryStreamExt, future::ready};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Service, discovery::v1::EndpointSlice},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::{sync::Semaphore, task::JoinSet};

/// So many records of a member are merged (`--max-records-per-member`).
const MERGED: usize = 5000;
/// Requests at once, as a controller of ours makes.
const WRITES: usize = 16;
/// Members of the ClusterSet: each has a watch on both kinds of records.
const MEMBERS: usize = 3;
const FROM: &str = "leader";
const TO: &str = "west";

/// What an event says of an object.
#[derive(Clone, Copy)]
enum Told {
    Added,
    Changed,
    Gone,
}

/// In place of the daemons, until it is dropped.
pub(super) struct Relay {
    _tasks: JoinSet<()>,
}

impl Relay {
    /// Exports what the leader's cluster has in this Namespace to west, and merges what others export.
    pub(super) async fn start(world: &World, namespace: &str) -> Self {
        let cluster = async |name: &str| {
            let client = world.real().fleet.cluster(name).unwrap().client().await.unwrap();
            Arc::new(Cluster { name: name.to_owned(), client })
        };
        let mut tasks = JoinSet::new();
        for _ in 0..MEMBERS {
            let of_member = cluster(FROM).await;
            follow::<ResourceExport, _>(&mut tasks, of_member.api(AREA), |_, _| ready(())).await;
            follow::<ResourceImport, _>(&mut tasks, of_member.api(AREA), |_, _| ready(())).await;
        }
        let (exporter, ns) = (cluster(FROM).await, namespace.to_owned());
        follow(&mut tasks, exporter.clone().api(namespace), move |told, object: ServiceExport| {
            export(exporter.clone(), told, ServiceName::new(&ns, object.name_any()))
        })
        .await;
        let (leader, ns) = (cluster(FROM).await, namespace.to_owned());
        let (merged, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(WRITES)));
        follow(&mut tasks, leader.clone().api(AREA), move |told, record: ResourceExport| {
            let (leader, turns) = (leader.clone(), turns.clone());
            let is_quiet = record.spec.namespace.as_deref() == Some(&ns);
            let is_new = matches!(told, Told::Added);
            let is_too_much = is_new && !is_quiet && merged.fetch_add(1, SeqCst) >= MERGED;
            async move {
                // Those of the flood wait for each other, and for nobody else.
                let _turn = if is_quiet { None } else { Some(turns.acquire().await.unwrap()) };
                if record.spec.kind.as_deref() == Some(SERVICE) && !is_too_much {
                    merge(&leader, told, &record).await;
                }
            }
        })
        .await;
        let (importer, ns) = (cluster(TO).await, namespace.to_owned());
        follow(&mut tasks, cluster(FROM).await.api(AREA), move |told, object: ResourceImport| {
            let (importer, is_quiet) = (importer.clone(), object.spec.namespace.as_deref() == Some(&ns));
            let service = ServiceName::new(&ns, object.spec.name.unwrap_or_default());
            async move {
                if is_quiet {
                    import(importer, told, service).await;
                }
            }
        })
        .await;
        Self { _tasks: tasks }
    }
}

/// Does so at every change from now on, without waiting for what it did at those before.
async fn follow<K, F>(tasks: &mut JoinSet<()>, api: Api<K>, at: impl Fn(Told, K) -> F + Send + Sync + 'static)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listed = api.list(&ListParams::default()).await.unwrap();
    let version = listed.metadata.resource_version.unwrap();
    let following = async move {
        let events = api.watch(&WatchParams::default(), &version).await.unwrap();
        let told = events.try_filter_map(|event| {
            ready(Ok(match event {
                WatchEvent::Added(object) => Some((Told::Added, object)),
                WatchEvent::Modified(object) => Some((Told::Changed, object)),
                WatchEvent::Deleted(object) => Some((Told::Gone, object)),
                _ => None,
            }))
        });
        told.try_for_each_concurrent(None, |(told, object)| at(told, object).map(Ok)).await.unwrap();
    };
    tasks.spawn_on(following, RUNTIME.handle());
}

async fn export(leader: Arc<Cluster>, told: Told, service: ServiceName) {
    let records = [record::service(FROM, &service), record::slice(FROM, &service, "10.1.0.1")];
    for record in records {
        match told {
            Told::Added => drop(leader.create::<ResourceExport>(AREA, record).await),
            Told::Changed => {}
            Told::Gone => {
                gone::<ResourceExport>(&leader, AREA, record["metadata"]["name"].as_str().unwrap()).await
            }
        }
    }
}

async fn merge(leader: &Cluster, told: Told, record: &ResourceExport) {
    let of = |field: &Option<String>| field.clone().unwrap_or_default();
    let service = ServiceName::new(of(&record.spec.namespace), of(&record.spec.name));
    let name = name::service_import(&service);
    let ports = record.spec.service.as_ref().map(|payload| json!(payload.service_spec.ports));
    let merged = json!({"spec": {"type": "ClusterSetIP", "ports": ports}});
    match told {
        Told::Added => {
            let spec = json!({
                "name": service.name, "namespace": service.namespace, "kind": "ServiceImport",
                "serviceImport": merged, "exporters": [{"clusterID": record.spec.cluster_id}],
            });
            let import = json!({"metadata": {"name": name}, "spec": spec});
            let _: ResourceImport = leader.create(AREA, import).await;
        }
        Told::Changed => {
            let patch = Patch::Merge(json!({"spec": {"serviceImport": merged}}));
            let imports = leader.api::<ResourceImport>(AREA);
            drop(imports.patch(&name, &PatchParams::default(), &patch).await);
        }
        Told::Gone => gone::<ResourceImport>(leader, AREA, &name).await,
    }
}

async fn import(west: Arc<Cluster>, told: Told, service: ServiceName) {
    let (ns, derived) = (&service.namespace, name::imported_service(&service.name));
    match told {
        Told::Added => {}
        Told::Changed => return,
        Told::Gone => {
            gone::<Service>(&west, ns, &derived).await;
            gone::<ServiceImport>(&west, ns, &service.name).await;
            return gone::<EndpointSlice>(&west, ns, &derived).await;
        }
    }
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP"}]);
    let annotations = json!({"multicluster.antrea.io/imported-service": "true"});
    let object = json!({"metadata": {"name": derived, "annotations": annotations}, "spec": {"ports": ports}});
    let made: Service = west.create(ns, object).await;
    let address = made.spec.and_then(|spec| spec.cluster_ip);
    let spec = json!({"type": "ClusterSetIP", "ips": [address], "ipFamilies": ["IPv4"], "ports": ports});
    let object = json!({"metadata": {"name": service.name}, "spec": spec});
    let _: ServiceImport = west.create(ns, object).await;
    let labels = json!({
        "kubernetes.io/service-name": derived,
        "endpointslice.kubernetes.io/managed-by": "freeport",
        "multicluster.kubernetes.io/service-name": service.name,
        "multicluster.kubernetes.io/source-cluster": FROM,
    });
    let slice = json!({
        "metadata": {"name": derived, "labels": labels}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"]}], "ports": [{"name": "http", "port": 8080}],
    });
    let _: EndpointSlice = west.create(ns, slice).await;
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-11-01T12:00:00Z",
    });
    let status = json!({"status": {"clusters": [{"cluster": FROM}], "conditions": [ready]}});
    let imports = west.api::<ServiceImport>(ns);
    imports.patch_status(&service.name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Deletes it if it is there.
async fn gone<K>(cluster: &Cluster, namespace: &str, name: &str)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    drop(cluster.api::<K>(namespace).delete(name, &DeleteParams::default()).await);
}
