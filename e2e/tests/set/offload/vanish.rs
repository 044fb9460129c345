//! Nothing is deleted on silence: what merely vanishes takes no twin and no Node along.

use std::fmt::Debug;

use api::offload::{
    map::NamespaceMap, namespace::NamespaceOffloading, offer::OffloadOffer, peer::OffloadPeer,
    shadow_pod::ShadowPod,
};
use e2e::{
    daemon::End,
    fixture::{AREA, World},
    waiting::{always, eventually},
    watched::Watched,
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        coordination::v1::Lease,
        core::v1::{Namespace, Node, Pod},
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    commands::{run, says},
    pods::{
        running,
        world::{bind, is, kubelet_says, twin_pod},
    },
    world::{OFFLOADING, agreed, gone, offload, peer_says, phase},
};

const CONNECTED: (&str, &str) = ("True", "Connected");

/// The uid of the twin, which is not being deleted.
pub(super) async fn twin(world: &World, name: &str) -> Result<Option<String>, String> {
    let twins = Api::<Namespace>::all(world.cluster("east").client.clone());
    let twin = twins.get(name).await.map_err(|error| error.to_string())?;
    match twin.metadata.deletion_timestamp {
        None => Ok(twin.uid()),
        Some(at) => Err(format!("it is being deleted since {at:?}")),
    }
}

pub(super) async fn stays(world: &World, name: &str, before: &Option<String>) {
    always(&format!("{name} stays"), || async {
        let now = twin(world, name).await?;
        if now == *before { Ok(()) } else { Err(format!("{now:?} instead of {before:?}")) }
    })
    .await;
}

pub(super) async fn node(world: &World) -> Result<Node, String> {
    let nodes = Api::<Node>::all(world.cluster("west").client.clone());
    nodes.get("freeport-east").await.map_err(|error| error.to_string())
}

#[e2e::test]
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
        let wrong = json!({"status": {"currentMapping": {"kept": {"phase": "CreationLoopBackOff"}}}});
        maps.patch_status("1.west.east", &PatchParams::default(), &Patch::Merge(wrong)).await.unwrap();
        eventually("what somebody else says of a twin is put right", || async {
            let status = maps.get("1.west.east").await.unwrap().status.unwrap_or_default();
            let phase = &status.current_mapping["kept"].phase;
            if phase == "Accepted" { Ok(()) } else { Err(phase.clone()) }
        })
        .await;
        stays(world, "kept-west", &before).await;
        phase(world, &ns, "Ready").await;
        let edit = json!({"spec": {"desiredMapping": {"kept": "elsewhere"}}});
        maps.patch("1.west.east", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
        eventually("what somebody else wants for us is put right", || async {
            let map = maps.get("1.west.east").await.unwrap();
            let (wanted, said) = (map.spec.desired_mapping, map.status.unwrap_or_default().current_mapping);
            let is_right = wanted["kept"] == "kept-west"
                && said.get("kept").is_some_and(|said| said.phase == "Accepted");
            if is_right { Ok(()) } else { Err(format!("{wanted:?} {said:?}")) }
        })
        .await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "kept-west").await;
        world.release(&ns).await;
    });
}

async fn delete_all<K>(world: &World)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let all = ListParams::default();
    world.leader().api::<K>(AREA).delete_collection(&DeleteParams::default(), &all).await.unwrap();
}

#[e2e::test]
fn a_hub_that_is_emptied_or_replaced_takes_no_twin_and_no_pod_along() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("hub", &["west"]).await;
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;
        let here = bind(west, &ns, "web").await;
        let there = twin_pod(world, "hub-west", "web", None).await;
        kubelet_says(east, "hub-west", "web", running("10.99.0.7")).await;
        is(world, &ns, "web", "Running", "").await;
        let record = format!("1.west.east.{}", here.uid().unwrap());
        let pods = (Watched::<Pod>::of(west, &ns).await, Watched::<Pod>::of(east, "hub-west").await);
        eventually("the Node is ready", || async {
            let status = node(world).await?.status.unwrap_or_default();
            let mut ready = status.conditions.iter().flatten().filter(|condition| condition.type_ == "Ready");
            let is_ready = ready.any(|condition| condition.status == "True");
            if is_ready { Ok(()) } else { Err(format!("{:?}", status.conditions)) }
        })
        .await;
        let nodes = Watched::<Node>::of_all(west).await;
        let (twin_before, node_before) =
            (twin(world, "hub-west").await.unwrap(), node(world).await.unwrap().uid());
        let is_whole = || async {
            let leader = world.leader();
            let told = leader.api::<ShadowPod>(AREA).get(&record).await.map_err(|error| error.to_string())?;
            let map = leader.api::<NamespaceMap>(AREA).get("1.west.east").await.map_err(|e| e.to_string())?;
            leader.api::<OffloadOffer>(AREA).get("1.east.west").await.map_err(|error| error.to_string())?;
            let phase = told.status.unwrap_or_default().pod.and_then(|pod| pod.phase);
            let current = map.status.unwrap_or_default().current_mapping;
            match phase.as_deref() == Some("Running") && current.contains_key("hub") {
                true => Ok(()),
                false => Err(format!("{phase:?} {current:?}")),
            }
        };
        let all_stayed = async |what: &str| {
            pods.0.nothing_deleted(what);
            pods.1.nothing_deleted(what);
            assert_eq!(twin(world, "hub-west").await, Ok(twin_before.clone()), "{what}");
            assert_eq!(node(world).await.unwrap().uid(), node_before, "{what}");
            is(world, &ns, "web", "Running", "").await;
        };

        delete_all::<Lease>(world).await;
        delete_all::<OffloadOffer>(world).await;
        delete_all::<NamespaceMap>(world).await;
        delete_all::<ShadowPod>(world).await;
        eventually("the hub is whole again", is_whole).await;
        all_stayed("its records and Leases were deleted").await;

        world.replace_leader().await;
        world.set_up_again().await;
        eventually("the new hub is whole", is_whole).await;
        all_stayed("it was replaced").await;
        nodes.each(|node| {
            let ready = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let ready = ready.filter(|condition| condition.type_ == "Ready");
            ready.for_each(|ready| {
                assert_eq!(ready.status, "True", "Services would lose its Pods: {ready:?}")
            });
        });
        phase(world, &ns, "Ready").await;
        assert_eq!(twin_pod(world, "hub-west", "web", None).await.uid(), there.uid());
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "hub-west").await;
        world.release(&ns).await;
    });
}

#[e2e::test(real)]
fn crds_that_vanish_take_nothing_along_and_services_go_on() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("orphan", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let before = twin(world, "orphan-west").await.unwrap();
        let node_before = node(world).await.unwrap().uid();
        let lost = world.namespace("lost", &["west"]).await;
        offload(world, &lost, json!({})).await;
        phase(world, &lost, "Ready").await;
        let lost_before = twin(world, "lost-west").await.unwrap();

        let had = west.take_crd("namespaceoffloadings.offloading.liqo.io").await;
        peer_says(world, "west", "east", "CannotWatch").await;
        world.member_says("west", CONNECTED).await;
        stays(world, "orphan-west", &before).await;
        let here = Api::<Namespace>::all(west.client.clone()).get(&ns).await.unwrap();
        assert_eq!(
            here.labels().get("liqo.io/scheduling-enabled").map(String::as_str),
            Some("true"),
            "without it, new Pods would run here"
        );
        eventually("the home names the twins of which nothing else tells any more", || async {
            let peer = Api::<OffloadPeer>::all(west.client.clone()).get("east").await;
            let lost = peer.map_err(|error| error.to_string())?.status.unwrap_or_default().lost_offloadings;
            match lost.get("orphan").map(String::as_str) {
                Some("orphan-west") if lost.contains_key("lost") => Ok(()),
                _ => Err(format!("{lost:?}")),
            }
        })
        .await;
        let named = format!("twin {lost}-west in east goes");
        says(world, "freeport offload use east --context west --remove", &named).await;
        west.put_back_crd(had).await;
        let narrow = "freeport offload namespace orphan --context west --selector none=such";
        says(world, narrow, "twin orphan-west in east goes").await;
        // Now nobody remembers that `lost` was offloaded, and the map is made anew without it.
        world.end("freeport-member-west", End::Crash).await;
        world
            .leader()
            .api::<NamespaceMap>(AREA)
            .delete("1.west.east", &DeleteParams::default())
            .await
            .unwrap();
        world.start("freeport-member-west").await;
        peer_says(world, "west", "east", "Ready").await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        stays(world, "orphan-west", &before).await;
        stays(world, "lost-west", &lost_before).await;
        eventually("the host tells the home of the twin", || async {
            let peer = Api::<OffloadPeer>::all(west.client.clone()).get("east").await;
            let lost = peer.map_err(|error| error.to_string())?.status.unwrap_or_default().lost_offloadings;
            let is_named = lost.len() == 1 && lost.get("lost").is_some_and(|twin| twin == "lost-west");
            if is_named { Ok(()) } else { Err(format!("{lost:?}")) }
        })
        .await;
        let said = run(world, "! freeport offload status --context west").await;
        let command = "freeport unoffload namespace lost --yes";
        assert!(said.contains("twin lost-west in east") && said.contains(command), "{said}");
        run(world, &format!("{command} --context west")).await;
        gone(world, "east", "lost-west").await;
        world.release(&lost).await;

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
