//! What is written once for each other cluster: offers, Nodes and their Leases, maps, statuses, and the Secret with the key.

use api::{
    cluster_set::ClusterSet,
    label, membership,
    offload::{map::NamespaceMap, namespace::NamespaceOffloading, offer::OffloadOffer, peer::OffloadPeer},
};
use e2e::{
    cluster::Cluster,
    fixture::{AREA, SET, SYSTEM, World},
    forbidden::{NOT_THIS_ONE, forbid_daemons, permit},
    waiting::eventually,
    walk::{
        offloading::{CREATES, DELETES, UPDATES},
        reported::counted,
    },
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Node, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    super::commands::says,
    super::pods::world::offloaded,
    super::world::{OFFLOADING, agreed, gone, offload, peer, peer_says, phase},
    said::{nothing_refused, of_namespace, of_peer, of_set},
};

const KEY: &str = "freeport-offload-key";

/// Refuses an operation on these resources (`nodesstatus` is the status of Nodes), where objects are about `west` and `east`.
async fn refuse(cluster: &Cluster, policy: &str, resources: &[&str], operation: &str) {
    let resources = resources.iter().map(|resource| format!("'{resource}'")).collect::<Vec<_>>().join(", ");
    let is_one = format!("(request.resource.resource + variables.subresource) in [{resources}]");
    let names =
        "variables.name in ['1.east.west', '1.west.east', 'freeport-east', 'west', 'freeport-offload-key']";
    let refused = format!("request.operation == '{operation}' && {is_one} && {names}");
    forbid_daemons(cluster, "default", policy, &refused).await;
}

/// Waits until the OffloadPeer reports that these are refused.
async fn peer_refused(world: &World, cluster: &str, other: &str, parts: &[&str]) {
    eventually(&format!("OffloadPeer {other} of {cluster} says that {parts:?} are refused"), || async {
        let said = of_peer(world, cluster, other).await?;
        let says_all = parts.iter().chain([&NOT_THIS_ONE]).all(|part| said.contains(part));
        if says_all { Ok(()) } else { Err(said) }
    })
    .await;
}

async fn node_changes(world: &World, subresource: Option<&str>, patch: Value) {
    let nodes = Api::<Node>::all(world.cluster("west").client.clone());
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    match subresource {
        Some(subresource) => nodes.patch_subresource(subresource, "freeport-east", &params, &patch).await,
        None => nodes.patch("freeport-east", &params, &patch).await,
    }
    .unwrap();
}

#[e2e::test(real)]
fn each_write_about_a_cluster_that_is_refused_is_reported_and_done_when_it_is_accepted() {
    OFFLOADING.alone(async |world| {
        creates(world).await;
        updates(world).await;
        deletes(world).await;
        agreed(world).await;
    });
}

#[e2e::test(real)]
fn a_record_whose_deletion_is_refused_keeps_no_other_one_when_its_cluster_leaves() {
    OFFLOADING.alone(async |world| {
        let (west, leader) = (world.cluster("west"), world.leader());
        let (ns, twin) = offloaded(world, "leaves").await;
        peer(west, "east", json!({"incoming": {}})).await;
        let offers = leader.api::<OffloadOffer>(AREA);
        eventually("west offers something", || async {
            offers.get("1.west.east").await.map(drop).map_err(|error| error.to_string())
        })
        .await;
        refuse(leader, "no-leaving", &["offloadoffers"], "DELETE").await;
        let set: ClusterSet = west.take(SYSTEM, SET).await;
        let notes = west.api::<ConfigMap>(SYSTEM);
        eventually("the note says it", || async {
            let note = notes.get(membership::NAME).await.map_err(|error| error.to_string())?;
            let said = note.annotations().get(label::REFUSED).cloned().unwrap_or_default();
            if said.contains("delete OffloadOffer") && said.contains(NOT_THIS_ONE) {
                Ok(())
            } else {
                Err(said)
            }
        })
        .await;
        gone(world, "east", &twin).await;
        permit(leader, "no-leaving").await;
        eventually("west has left", || async {
            let note = notes.get_opt(membership::NAME).await.map_err(|error| error.to_string())?;
            note.map_or(Ok(()), |note| Err(format!("{:?}", note.metadata)))
        })
        .await;
        assert!(offers.get_opt("1.west.east").await.unwrap().is_none());
        west.put_back(set).await;
        world.member_says("west", ("True", "Connected")).await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        world.release(&ns).await;
        agreed(world).await;
    });
}

async fn creates(world: &World) {
    let (west, east, leader) = (world.cluster("west"), world.cluster("east"), world.leader());
    let [offer, secret, node, lease, map] = CREATES else { panic!("each is refused below: {CREATES:?}") };
    peer(west, "east", json!({"outgoing": null})).await;
    peer(east, "west", json!({"incoming": null})).await;
    eventually("there is no offer and no Node", || async {
        let offer = leader.api::<OffloadOffer>(AREA).get_opt("1.east.west").await.unwrap();
        let node = Api::<Node>::all(west.client.clone()).get_opt("freeport-east").await.unwrap();
        if offer.is_none() && node.is_none() { Ok(()) } else { Err(format!("{offer:?} {node:?}")) }
    })
    .await;
    refuse(leader, "no-offers", &["offloadoffers"], "CREATE").await;
    refuse(west, "no-nodes", &["nodes"], "CREATE").await;
    refuse(west, "no-leases", &["leases"], "CREATE").await;
    refuse(leader, "no-maps", &["namespacemaps"], "CREATE").await;
    refuse(east, "no-secrets", &["secrets"], "CREATE").await;
    // Of tests before.
    leader.api::<NamespaceMap>(AREA).delete("1.west.east", &DeleteParams::default()).await.ok();

    peer(east, "west", json!({"incoming": {}})).await;
    peer(west, "east", json!({"outgoing": {}})).await;
    east.delete::<Secret>(SYSTEM, KEY).await;
    peer_refused(world, "east", "west", &["create OffloadOffer", "create Secret"]).await;
    counted(world, &[*offer, *secret]).await;
    permit(leader, "no-offers").await;
    peer_refused(world, "west", "east", &["create Node freeport-east"]).await;
    counted(world, &[*node]).await;
    permit(west, "no-nodes").await;
    peer_refused(world, "west", "east", &["change Lease kube-node-lease/freeport-east"]).await;
    counted(world, &[*lease]).await;
    let ns = world.namespace("no-map", &["west"]).await;
    offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
    peer_refused(world, "west", "east", &["create NamespaceMap"]).await;
    counted(world, &[*map]).await;
    eventually("so does the NamespaceOffloading", || of_namespace(world, &ns)).await;
    for (cluster, policy) in [(west, "no-leases"), (leader, "no-maps"), (east, "no-secrets")] {
        permit(cluster, policy).await;
    }
    phase(world, &ns, "Ready").await;
    nothing_refused(world).await;
    let leases = west.api::<Lease>("kube-node-lease");
    eventually("the Lease is there", || async {
        leases.get("freeport-east").await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    east.api::<Secret>(SYSTEM).get(KEY).await.unwrap();
    west.delete::<NamespaceOffloading>(&ns, "offloading").await;
    gone(world, "east", &format!("{ns}-west")).await;
    world.release(&ns).await;
}

async fn updates(world: &World) {
    let (west, east, leader) = (world.cluster("west"), world.cluster("east"), world.leader());
    let (before, ns) =
        (world.namespace("map-before", &["west"]).await, world.namespace("map-after", &["west"]).await);
    offload(world, &before, json!({"podOffloadingStrategy": "Local"})).await;
    phase(world, &before, "Ready").await;
    refuse(leader, "no-updates", &["offloadoffers", "namespacemaps", "namespacemapsstatus"], "UPDATE").await;
    refuse(west, "no-updates", &["nodes", "nodesstatus", "leases"], "UPDATE").await;
    refuse(east, "no-updates", &["offloadpeersstatus"], "UPDATE").await;

    peer(east, "west", json!({"incoming": {"nodeLabels": {"tier": "gold"}}})).await;
    offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
    node_changes(world, None, json!({"metadata": {"labels": {"liqo.io/remote-cluster-id": null}}})).await;
    node_changes(world, Some("status"), json!({"status": {"capacity": {"cpu": "1"}}})).await;
    let entry =
        json!({"status": {"currentMapping": {&before: {"remoteNamespace": "other", "phase": "Accepted"}}}});
    let maps = leader.api::<NamespaceMap>(AREA);
    maps.patch_status("1.west.east", &PatchParams::default(), &Patch::Merge(entry)).await.unwrap();
    counted(world, UPDATES).await;
    peer_refused(world, "west", "east", &["NamespaceMap"]).await;
    eventually("the NamespaceOffloading says it", || of_namespace(world, &ns)).await;
    eventually("the ClusterSet of east says it", || of_set(world, "east")).await;
    for cluster in [leader, west, east] {
        permit(cluster, "no-updates").await;
    }
    for ns in [&before, &ns] {
        phase(world, ns, "Ready").await;
    }
    nothing_refused(world).await;
    peer_says(world, "west", "east", "Ready").await;
    eventually("the Node is as it is offered", || async {
        let node = Api::<Node>::all(west.client.clone()).get("freeport-east").await.unwrap();
        let labels = node.metadata.labels.unwrap_or_default();
        let has = ["tier", "liqo.io/remote-cluster-id"].iter().all(|label| labels.contains_key(*label));
        if has { Ok(()) } else { Err(format!("{labels:?}")) }
    })
    .await;
    for ns in [&before, &ns] {
        west.delete::<NamespaceOffloading>(ns, "offloading").await;
        gone(world, "east", &format!("{ns}-west")).await;
        world.release(ns).await;
    }
}

async fn deletes(world: &World) {
    let (west, east, leader) = (world.cluster("west"), world.cluster("east"), world.leader());
    refuse(leader, "no-deletes", &["offloadoffers"], "DELETE").await;
    refuse(west, "no-deletes", &["nodes"], "DELETE").await;
    peer(east, "west", json!({"incoming": null})).await;
    // Another test of this ClusterSet may have accepted east there.
    peer(west, "east", json!({"outgoing": null, "incoming": null})).await;
    peer_refused(world, "east", "west", &["delete OffloadOffer"]).await;
    peer_refused(world, "west", "east", &["delete Node freeport-east"]).await;
    counted(world, DELETES).await;
    // This deletes the OffloadPeer, so the Node itself reports what is refused.
    let unuse = "freeport offload use east --remove --yes --context west --timeout 300";
    says(world, unuse, "refuses to delete Node freeport-east").await;
    assert!(Api::<OffloadPeer>::all(west.client.clone()).get_opt("east").await.unwrap().is_none());
    says(world, "freeport offload status --context west", "problem: Node freeport-east: the API server")
        .await;
    for cluster in [leader, west] {
        permit(cluster, "no-deletes").await;
    }
    nothing_refused(world).await;
    eventually("offer and Node are gone", || async {
        let offer = leader.api::<OffloadOffer>(AREA).get_opt("1.east.west").await.unwrap();
        let node = Api::<Node>::all(west.client.clone()).get_opt("freeport-east").await.unwrap();
        if offer.is_none() && node.is_none() { Ok(()) } else { Err(format!("{offer:?} {node:?}")) }
    })
    .await;
}
