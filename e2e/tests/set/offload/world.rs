//! ClusterSet `demo` of a home, `west`, a host, `east`, and the `leader`, with daemons that offload.

use api::offload::{
    namespace::{NamespaceOffloading, NamespaceOffloadingStatus},
    peer::OffloadPeer,
    phase::Phase,
};
use e2e::{
    cluster::Cluster,
    fixture::{SET, make_whole},
    pool::{Pool, Set},
    waiting::eventually,
    world::World,
};
use fleet::cluster_set::Composition;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

pub(super) static OFFLOADING: Pool = Pool::new(
    "e2e-offload",
    &["leader", "west", "east"],
    Set { name: SET, offload: true },
    |world| Box::pin(offloading(world)),
    |world| Box::pin(make_whole(world)),
);

async fn offloading(mut world: World) -> World {
    let set = Composition { offload: true, ..Composition::of_all(&world.real().fleet, SET) };
    world.add_set(&set).await;
    world
}

/// What the administrator of a cluster says about another one, and changes of what was said.
pub(super) async fn peer(cluster: &Cluster, other: &str, spec: Value) {
    let peers = Api::<OffloadPeer>::all(cluster.client.clone());
    if peers.get_opt(other).await.unwrap().is_some() {
        let patch = Patch::Merge(json!({"spec": spec}));
        peers.patch(other, &PatchParams::default(), &patch).await.unwrap();
    } else {
        let peer = serde_json::from_value(json!({"metadata": {"name": other}, "spec": spec})).unwrap();
        peers.create(&PostParams::default(), &peer).await.unwrap();
    }
}

/// Replaces the terms of an OffloadPeer. An earlier test on this fixture may have set others.
async fn terms(cluster: &Cluster, other: &str, spec: Value) {
    let peers = Api::<OffloadPeer>::all(cluster.client.clone());
    let old = peers.get_opt(other).await.unwrap().map_or(Value::Null, |old| json!(old.spec));
    peer(cluster, other, replacing(&old, spec)).await;
}

/// Returns the merge patch that makes `old` equal to `new`.
fn replacing(old: &Value, mut new: Value) -> Value {
    if let (Some(old), Some(new)) = (old.as_object(), new.as_object_mut()) {
        for (key, old) in old {
            let patch = new.remove(key).map_or(Value::Null, |new| replacing(old, new));
            new.insert(key.clone(), patch);
        }
    }
    new
}

/// Waits until the OffloadPeer says this.
pub(super) async fn peer_says(world: &World, cluster: &str, other: &str, reason: &str) {
    let peers = Api::<OffloadPeer>::all(world.cluster(cluster).client.clone());
    eventually(&format!("OffloadPeer {other} of {cluster} says {reason}"), || async {
        let peer = peers.get(other).await.unwrap();
        let conditions = peer.status.map(|status| status.conditions).unwrap_or_default();
        match conditions.iter().any(|condition| condition.reason == reason) {
            true => Ok(()),
            false => {
                let log = world.log_tail(&format!("freeport-member-{cluster}"));
                Err(format!("{conditions:?}; its log:\n{log}"))
            }
        }
    })
    .await;
}

/// East may be used by west, and is.
pub(super) async fn agreed(world: &World) {
    terms(world.cluster("east"), "west", json!({"incoming": {"nodeLabels": {"liqo.io/region": "us"}}})).await;
    terms(world.cluster("west"), "east", json!({"outgoing": {}})).await;
    peer_says(world, "west", "east", "Ready").await;
    peer_says(world, "east", "west", "Ready").await;
}

/// Offloads a Namespace of `west`.
pub(super) async fn offload(world: &World, namespace: &str, spec: Value) {
    let object = json!({"metadata": {"name": "offloading"}, "spec": spec});
    let _: NamespaceOffloading = world.cluster("west").create(namespace, object).await;
}

/// Waits until the NamespaceOffloading of `west` is in this phase; its status. No webhook is installed in these clusters, so where all
/// twins are there and Pods are to run elsewhere, `Ready` is said as [`Phase::PlacementNotEnforced`].
pub(super) async fn phase(world: &World, namespace: &str, phase: &str) -> NamespaceOffloadingStatus {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(namespace);
    eventually(&format!("{namespace} is {phase}"), || async {
        let status = offloadings.get("offloading").await.unwrap().status.unwrap_or_default();
        let said = status.offloading_phase.as_deref();
        let is_unplaced = said == Some(Phase::PlacementNotEnforced.as_str());
        match said == Some(phase) || is_unplaced && phase == Phase::Ready.as_str() {
            true => Ok(status),
            false => {
                let logs = ["west", "east"].map(|id| world.log_tail(&format!("freeport-member-{id}")));
                Err(format!("{status:?}; logs:\n{}", logs.join("\n---\n")))
            }
        }
    })
    .await
}

/// Waits until the Namespace is gone from a cluster.
pub(super) async fn gone(world: &World, cluster: &str, namespace: &str) {
    let namespaces = Api::<Namespace>::all(world.cluster(cluster).client.clone());
    eventually(&format!("{namespace} is gone from {cluster}"), || async {
        match namespaces.get_opt(namespace).await.unwrap() {
            None => Ok(()),
            Some(there) => Err(format!("{:?} {:?}", there.name_any(), there.status)),
        }
    })
    .await;
}

/// Waits until a metric of a daemon has this value where it has this label.
pub(super) async fn measures(
    world: &World,
    daemon: &str,
    (metric, label, is): (&str, &str, &str),
    value: f64,
) {
    eventually(&format!("{metric} with {label} {is} is {value}"), || async {
        let now = world.metrics(daemon).await?.of(metric, label, is);
        if now.unwrap_or_default() == value { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
}
