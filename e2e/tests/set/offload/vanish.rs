//! Nothing is deleted on silence: what merely vanishes takes no twin and no Node along.

use std::collections::BTreeMap;

use api::offload::{map::NamespaceMap, namespace::NamespaceOffloading, peer::OffloadPeer};
use e2e::{
    fixture::{AREA, World},
    waiting::{always, eventually},
};
use fleet::Component;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use super::world::{OFFLOADING, agreed, gone, offload, peer_says, phase};

const CONNECTED: (&str, &str) = ("True", "Connected");

/// The uid of the twin, which is not being deleted.
async fn twin(world: &World, name: &str) -> Result<Option<String>, String> {
    let twins = Api::<Namespace>::all(world.cluster("east").client.clone());
    let twin = twins.get(name).await.map_err(|error| error.to_string())?;
    match twin.metadata.deletion_timestamp {
        None => Ok(twin.uid()),
        Some(at) => Err(format!("it is being deleted since {at:?}")),
    }
}

async fn stays(world: &World, name: &str, before: &Option<String>) {
    always(&format!("{name} stays"), || async {
        let now = twin(world, name).await?;
        if now == *before { Ok(()) } else { Err(format!("{now:?} instead of {before:?}")) }
    })
    .await;
}

async fn node(world: &World) -> Result<Node, String> {
    let nodes = Api::<Node>::all(world.cluster("west").client.clone());
    nodes.get("freeport-east").await.map_err(|error| error.to_string())
}

#[test]
fn what_vanishes_takes_no_twin_along_and_comes_back() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("kept", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let before = twin(world, "kept-west").await.unwrap();

        let nodes = Api::<Node>::all(west.client.clone());
        let node = nodes.get("freeport-east").await.unwrap();
        nodes.delete("freeport-east", &DeleteParams::default()).await.unwrap();
        eventually("the node is made anew", || async {
            let now = nodes.get("freeport-east").await.map_err(|error| error.to_string())?;
            if now.uid() == node.uid() { Err("still the old one".to_owned()) } else { Ok(()) }
        })
        .await;
        let maps = world.leader().api::<NamespaceMap>(AREA);
        maps.delete("1.west.east", &DeleteParams::default()).await.unwrap();
        eventually("the map is put back whole", || async {
            let map = maps.get("1.west.east").await.map_err(|error| error.to_string())?;
            let wanted = map.spec.desired_mapping.get("kept").map(String::as_str) == Some("kept-west");
            let said = map.status.is_some_and(|status| status.current_mapping.contains_key("kept"));
            if wanted && said { Ok(()) } else { Err(format!("wanted: {wanted}, said: {said}")) }
        })
        .await;
        stays(world, "kept-west", &before).await;
        phase(world, &ns, "Ready").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "kept-west").await;
        world.release(&ns).await;
    });
}

#[test]
fn crds_that_vanish_take_nothing_along_and_services_go_on() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("orphan", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let before = twin(world, "orphan-west").await.unwrap();
        let node_before = node(world).await.unwrap().uid();

        let had = west.take_crd("namespaceoffloadings.offloading.liqo.io").await;
        peer_says(world, "west", "east", "CannotWatch").await;
        world.member_says("west", CONNECTED).await;
        stays(world, "orphan-west", &before).await;
        west.put_back_crd(had).await;
        peer_says(world, "west", "east", "Ready").await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        stays(world, "orphan-west", &before).await;

        let peers = Api::<OffloadPeer>::all(west.client.clone());
        let peer = peers.get("east").await.unwrap();
        let had = west.take_crd("offloadpeers.multicluster.freeport.dev").await;
        stays(world, "orphan-west", &before).await;
        west.put_back_crd(had).await;
        stays(world, "orphan-west", &before).await;
        assert_eq!(node(world).await.unwrap().uid(), node_before);
        let peer = OffloadPeer::new("east", peer.spec);
        peers.create(&PostParams::default(), &peer).await.unwrap();
        peer_says(world, "west", "east", "Ready").await;
        phase(world, &ns, "Ready").await;

        peers.delete("east", &DeleteParams::default()).await.unwrap();
        gone(world, "east", "orphan-west").await;
        eventually("a decision takes the node along", || async {
            node(world).await.map_or_else(|_| Ok(()), |node| Err(format!("{:?}", node.spec)))
        })
        .await;
        phase(world, &ns, "NoClusterSelected").await;
        agreed(world).await;
        phase(world, &ns, "Ready").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "orphan-west").await;
        world.release(&ns).await;
    });
}

#[test]
fn while_only_the_leader_is_away_the_node_stays_ready_and_takes_no_new_pods() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let ns = world.namespace("hubless", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let before = twin(world, "hubless-west").await.unwrap();
        let seen = |takes_pods: bool| async move {
            let node = node(world).await?;
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            let words: BTreeMap<_, _> = conditions.into_iter().map(|c| (c.type_, c.status)).collect();
            let taints: Vec<Value> = node
                .spec
                .and_then(|spec| spec.taints)
                .unwrap_or_default()
                .into_iter()
                .map(|taint| json!(taint))
                .collect();
            let none = taints.iter().any(|taint| taint["key"] == "multicluster.freeport.dev/no-new-pods");
            match words.get("Ready").map(String::as_str) == Some("True") && none != takes_pods {
                true => Ok(()),
                false => Err(format!("{words:?} {taints:?}; {}", world.log_tail("freeport-member-west"))),
            }
        };
        eventually("ready at first", || seen(true)).await;
        let leader = world.fleet.cluster("leader").unwrap();
        leader.kill(Component::ApiServer).await.unwrap();
        eventually("ready, without new Pods", || seen(false)).await;
        always("and stays so", || seen(false)).await;
        leader.start(Component::ApiServer).await.unwrap();
        eventually("with new Pods again", || seen(true)).await;
        stays(world, "hubless-west", &before).await;
        phase(world, &ns, "Ready").await;
        world.cluster("west").delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "hubless-west").await;
        world.release(&ns).await;
    });
}
