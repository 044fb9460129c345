//! Hollow members: for the leader and its API server what members are, without clusters of their own. Each has a connection, a Lease that
//! it renews, an announce, the watches of a member, and records of the Services that it exports. What they are told they forget.

use std::{fmt::Debug, sync::Arc, time::Duration};

use api::{
    ServiceName,
    announce::MemberClusterAnnounce,
    label,
    lease::{LeaseView, Pace},
    name,
    resource_export::{ENDPOINT_SLICE, ResourceExport, SERVICE},
    resource_import::ResourceImport,
};
use e2e::{
    cluster::Cluster,
    fixture::{AREA, SET},
};
use futures::{StreamExt, future::join_all};
use k8s_openapi::{NamespaceResourceScope, api::coordination::v1::Lease, jiff::Timestamp};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    endpoints, meter,
    set::{Set, each},
};

/// Where their Services are; no other cluster has this Namespace.
const NAMESPACE: &str = "hollow";
/// Watches of each: its own records, slice records of others, imports, the leader's Lease and its own.
const WATCHES: usize = 5;

/// Present until they are dropped.
pub(crate) struct Hollow {
    ids: Vec<String>,
    /// How many lists and Leases are there.
    served: watch::Receiver<usize>,
    _members: JoinSet<()>,
}

impl Hollow {
    /// So many of them connect at once.
    pub(crate) async fn connect(set: &Set, count: usize) -> Self {
        let ids: Vec<_> = (0..count).map(|n| format!("hollow-{n:03}")).collect();
        let (send, served) = watch::channel(0);
        let (send, mut members) = (Arc::new(send), JoinSet::new());
        for (nth, id) in ids.iter().enumerate() {
            let client = set.world.real().fleet.cluster("leader").unwrap().client().await.unwrap();
            // A crowd that has been there for long renews at any time.
            let phase = Pace::default().renew() * nth as u32 / count as u32;
            be(&mut members, client, id, phase, &send);
        }
        Self { ids, served, _members: members }
    }

    /// Waits until each has a Lease and has read all lists.
    pub(crate) async fn served(&self) {
        let all = self.ids.len() * (WATCHES + 1);
        let mut served = self.served.clone();
        let done = tokio::time::timeout(meter::LIMIT, served.wait_for(|served| *served >= all)).await;
        assert!(done.is_ok(), "{} of {all} are served", *self.served.borrow());
    }

    /// Each exports so many Services. How many that are in all.
    pub(crate) async fn export(&self, leader: &Cluster, services: usize) -> usize {
        each(&self.ids, |id| async move {
            for nth in 0..services {
                export(leader, id, nth).await;
            }
        })
        .await;
        self.ids.len() * services
    }

    /// They leave: nothing of them stays in the Common Area.
    pub(crate) async fn leave(self, leader: &Cluster) {
        let Self { ids, .. } = self;
        let records: Api<ResourceExport> = leader.api(AREA);
        let of = format!("{}={NAMESPACE}", label::SOURCE_NAMESPACE);
        let theirs = ListParams::default().labels(&of);
        let of_services = format!("{of},{}={SERVICE}", label::SOURCE_KIND);
        let withdrawn = json!({"spec": {"service": {"withdrawn": true}}});
        let listed = records.list_metadata(&ListParams::default().labels(&of_services)).await.unwrap();
        let services: Vec<_> = listed.items.into_iter().filter_map(|record| record.metadata.name).collect();
        each(&services, |name| {
            let (records, withdrawn) = (&records, &withdrawn);
            async move {
                let patch = Patch::Merge(withdrawn);
                // A server with so many connections closes some that are in use.
                while let Err(error) = records.patch(name, &PatchParams::default(), &patch).await {
                    assert!(!matches!(error, kube::Error::Api(_)), "{error}");
                }
            }
        })
        .await;
        records.delete_collection(&DeleteParams::default(), &theirs).await.unwrap();
        each(&ids, |id| async move {
            leader.delete::<MemberClusterAnnounce>(AREA, &name::announce(id)).await;
            leader.delete::<Lease>(AREA, &name::member_lease(id)).await;
        })
        .await;
    }
}

/// One member, from now on.
fn be(
    members: &mut JoinSet<()>,
    client: Client,
    id: &str,
    phase: Duration,
    served: &Arc<watch::Sender<usize>>,
) {
    let records: Api<DynamicObject> = dynamic::<ResourceExport>(&client);
    let own = format!("{}={id}", label::SOURCE_CLUSTER_ID);
    let others = format!("{}!={id},{}={ENDPOINT_SLICE}", label::SOURCE_CLUSTER_ID, label::SOURCE_KIND);
    let labelled = |labels: &str| watcher::Config::default().labels(labels);
    members.spawn(hear(records.clone(), labelled(&own), served.clone()));
    members.spawn(hear(records, labelled(&others), served.clone()));
    members.spawn(hear(dynamic::<ResourceImport>(&client), watcher::Config::default(), served.clone()));
    let leases = Api::<LeaseView>::namespaced(client.clone(), AREA);
    for lease in [name::LEADER_LEASE, &name::member_lease(id)] {
        let config = watcher::Config::default().fields(&format!("metadata.name={lease}"));
        members.spawn(hear(leases.clone(), config, served.clone()));
    }
    members.spawn(stay(client, id.to_owned(), phase, served.clone()));
}

fn dynamic<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), AREA, &ApiResource::erase::<K>(&()))
}

/// Watches as the daemons do (`kit::watch`).
async fn hear<K>(objects: Api<K>, config: watcher::Config, served: Arc<watch::Sender<usize>>)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = watcher(objects, config.timeout(60).page_size(50)).default_backoff().boxed();
    let mut is_listed = false;
    while let Some(event) = events.next().await {
        if matches!(event, Ok(watcher::Event::InitDone)) && !std::mem::replace(&mut is_listed, true) {
            served.send_modify(|served| *served += 1);
        }
    }
}

/// Writes its announce and its Lease, and renews the Lease.
async fn stay(client: Client, id: String, phase: Duration, served: Arc<watch::Sender<usize>>) {
    let announce = json!({
        "apiVersion": api_version::<MemberClusterAnnounce>(), "kind": "MemberClusterAnnounce",
        "metadata": {"name": name::announce(&id)},
        "clusterID": id, "clusterSetID": SET, "leaderClusterID": "leader",
    });
    apply::<MemberClusterAnnounce>(&client, &announce).await;
    apply::<Lease>(&client, &lease(&id)).await;
    served.send_modify(|served| *served += 1);
    tokio::time::sleep(phase).await;
    loop {
        apply::<Lease>(&client, &lease(&id)).await;
        tokio::time::sleep(Pace::default().renew()).await;
    }
}

fn lease(id: &str) -> Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    json!({
        "apiVersion": api_version::<Lease>(), "kind": "Lease",
        "metadata": {"name": name::member_lease(id), "annotations": {
            label::SETTLED: label::TRUE, label::WIRE: label::WIRE_VERSION, label::VERSION: env!("CARGO_PKG_VERSION"),
        }},
        "spec": {"holderIdentity": format!("{id}/hollow"), "leaseDurationSeconds": Pace::default().seconds(), "renewTime": now},
    })
}

async fn export(leader: &Cluster, id: &str, nth: usize) {
    let of = ServiceName { namespace: NAMESPACE.to_owned(), name: format!("{id}-{nth}") };
    let endpoints = endpoints::addresses(endpoints::FIRST);
    let endpoints: Vec<_> = endpoints
        .iter()
        .map(|address| json!({"addresses": [address], "conditions": {"ready": true, "serving": true, "terminating": false}}))
        .collect();
    let service = json!({
        "serviceSpec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}], "ipFamilies": ["IPv4"]},
        "exportedAt": "2026-11-01T12:00:00Z",
    });
    let slice = json!({
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080, "servicePort": 80}],
    });
    let records = [
        (name::service_export(id, &of), SERVICE, "service", service),
        (name::slice_export(id, &of, &of.name), ENDPOINT_SLICE, "endpointSlice", slice),
    ];
    let writes = records.map(|(name, kind, field, content)| {
        let labels = json!({
            label::SOURCE_CLUSTER_ID: id, label::SOURCE_NAMESPACE: of.namespace, label::SOURCE_NAME: of.name,
            label::SOURCE_KIND: kind,
        });
        let record = json!({
            "apiVersion": api_version::<ResourceExport>(), "kind": "ResourceExport",
            "metadata": {"name": name, "labels": labels},
            "spec": {"clusterID": id, "namespace": of.namespace, "name": of.name, "kind": kind, field: content},
        });
        async move { apply::<ResourceExport>(&leader.client, &record).await }
    });
    join_all(writes).await;
}

fn api_version<K: Resource<DynamicType = ()>>() -> String {
    K::api_version(&()).into_owned()
}

async fn apply<K>(client: &Client, object: &Value)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("hollow").force();
    dynamic::<K>(client).patch(name, &params, &Patch::Apply(object)).await.unwrap();
}
