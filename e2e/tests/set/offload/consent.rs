//! What a host allows, and what it leaves alone.

use api::offload::{
    map::NamespaceMap,
    namespace::{NamespaceOffloading, READY},
};
use e2e::{
    fixture::AREA,
    waiting::{always, eventually},
};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{Api, Resource, ResourceExt, api::DeleteParams};
use serde_json::json;

use super::world::{OFFLOADING, agreed, gone, offload, peer, peer_says, phase};

#[test]
fn without_consent_there_is_no_new_twin_and_those_that_are_there_stay() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let before = world.namespace("before", &["west"]).await;
        offload(world, &before, json!({})).await;
        phase(world, &before, "Ready").await;
        let twins = Api::<Namespace>::all(east.client.clone());
        let twin = twins.get("before-west").await.unwrap();

        peer(east, "west", json!({"incoming": null})).await;
        peer_says(world, "west", "east", "NotOffered").await;
        let ns = world.namespace("refused", &["west"]).await;
        offload(world, &ns, json!({})).await;
        let status = phase(world, &ns, "AllFailed").await;
        let ready = status.remote_namespaces_conditions["east"].iter().find(|c| c.type_ == READY).unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "CreationLoopBackOff"));
        assert!(ready.message.contains("NotAccepted: "), "{}", ready.message);
        assert!(ready.message.contains("freeport offload accept west"), "{}", ready.message);
        assert_eq!(twins.get_opt("refused-west").await.unwrap().map(|_| ()), None);
        let stays = twins.get("before-west").await.unwrap();
        assert_eq!((stays.uid(), stays.metadata.deletion_timestamp), (twin.uid(), None));
        let node = Api::<Node>::all(west.client.clone()).get("freeport-east").await.unwrap();
        let taints = node.spec.unwrap().taints.unwrap_or_default();
        assert!(
            taints.iter().any(|taint| taint.key == "multicluster.freeport.dev/no-new-pods"),
            "{taints:?}"
        );

        agreed(world).await;
        phase(world, &ns, "Ready").await;
        for ns in [&before, &ns] {
            west.delete::<NamespaceOffloading>(ns, "offloading").await;
            gone(world, "east", &format!("{ns}-west")).await;
            world.release(ns).await;
        }
    });
}

#[test]
fn a_namespace_that_is_not_ours_is_never_touched() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("taken", &["west"]).await;
        let foreign = world.namespace("taken-west", &["east"]).await;
        let there = Api::<Namespace>::all(east.client.clone());
        let before = there.get(&foreign).await.unwrap();
        offload(world, &ns, json!({})).await;
        let status = phase(world, &ns, "AllFailed").await;
        let said = format!("{:?}", status.remote_namespaces_conditions["east"]);
        assert!(said.contains("NotOurs: Namespace taken-west exists"), "{said}");

        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        let offloadings = west.api::<NamespaceOffloading>(&ns);
        eventually("offloading ends", || async {
            let there = offloadings.get_opt("offloading").await.unwrap();
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.status)))
        })
        .await;
        let after = there.get(&foreign).await.unwrap();
        assert_eq!(before.meta().resource_version, after.meta().resource_version);
        world.release(&ns).await;
        world.release(&foreign).await;
    });
}

#[test]
fn what_vanishes_takes_no_twin_along_and_comes_back() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("kept", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let twins = Api::<Namespace>::all(east.client.clone());
        let twin = twins.get("kept-west").await.unwrap();

        let nodes = Api::<Node>::all(west.client.clone());
        let node = nodes.get("freeport-east").await.unwrap();
        nodes.delete("freeport-east", &DeleteParams::default()).await.unwrap();
        eventually("the node is made anew", || async {
            let now = nodes.get("freeport-east").await.map_err(|error| error.to_string())?;
            if now.uid() == node.uid() { Err("still the old one".to_owned()) } else { Ok(()) }
        })
        .await;
        let maps = west.api::<NamespaceMap>(AREA);
        maps.delete("1.west.east", &DeleteParams::default()).await.unwrap();
        eventually("the map is put back whole", || async {
            let map = maps.get("1.west.east").await.map_err(|error| error.to_string())?;
            let wanted = map.spec.desired_mapping.get("kept").map(String::as_str) == Some("kept-west");
            let said = map.status.is_some_and(|status| status.current_mapping.contains_key("kept"));
            if wanted && said { Ok(()) } else { Err(format!("wanted: {wanted}, said: {said}")) }
        })
        .await;
        always("the twin stays", || async {
            let now = twins.get("kept-west").await.map_err(|error| error.to_string())?;
            let stays = now.uid() == twin.uid() && now.metadata.deletion_timestamp.is_none();
            if stays { Ok(()) } else { Err(format!("{:?}", now.metadata)) }
        })
        .await;
        phase(world, &ns, "Ready").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "kept-west").await;
        world.release(&ns).await;
    });
}
