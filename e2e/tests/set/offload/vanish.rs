//! Nothing is deleted on silence: what merely vanishes takes no twin and no Node along.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    time::{Duration, Instant},
};

use api::offload::{
    map::NamespaceMap,
    namespace::{NamespaceOffloading, READY},
    offer::OffloadOffer,
    peer::OffloadPeer,
    shadow_pod::ShadowPod,
};
use e2e::{
    daemon::End,
    fixture::{AREA, World},
    seen::event,
    waiting::{VOUCHED, always, eventually, throughout, within},
    watched::Watched,
};
use fleet::Component;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        coordination::v1::Lease,
        core::v1::{Namespace, Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    pods::{
        running,
        world::{bind, is, kubelet_says, twin_pod},
    },
    world::{OFFLOADING, agreed, composition, gone, measures, offload, peer_says, phase},
};

/// How long the leader is gone: longer than Kubernetes lets a Node be silent (50 s), and than anybody here waits for anybody else.
const OUTAGE: Duration = Duration::from_secs(55);
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

#[test]
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
        world.set_up_again_as(&composition(world)).await;
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

#[test]
fn of_a_host_that_is_silent_nothing_is_known_and_nothing_goes() {
    OFFLOADING.alone(async |world| {
        const HOME: &str = "freeport-member-west";
        const HOST: &str = "freeport-member-east";
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("silent", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let before = twin(world, "silent-west").await.unwrap();

        world.end(HOST, End::Crash).await;
        let offloadings = west.api::<NamespaceOffloading>(&ns);
        within(VOUCHED, "the twin may be as it was or not", || async {
            let status = offloadings.get("offloading").await.unwrap().status.unwrap_or_default();
            let said = status.remote_namespaces_conditions.get("east").cloned().unwrap_or_default();
            let is_unknown =
                |c: &Condition| c.type_ == READY && c.status == "Unknown" && c.reason == "HostSilent";
            if said.iter().any(is_unknown) { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        peer_says(world, "west", "east", "HostSilent").await;
        eventually("an Event says so", || event(west, "default", "east", "HostSilent")).await;
        measures(world, HOME, ("freeport_offload_nodes", "cluster=\"east\",ready", "Unknown"), 1.0).await;
        eventually("its node is not known to be ready", || async {
            let conditions =
                node(world).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
            match ready.is_some_and(|ready| ready.status == "Unknown") {
                true => Ok(()),
                false => Err(format!("{ready:?}")),
            }
        })
        .await;
        stays(world, "silent-west", &before).await;

        world.start(HOST).await;
        phase(world, &ns, "Ready").await;
        peer_says(world, "west", "east", "Ready").await;
        eventually("an Event says so", || event(west, "default", "east", "Ready")).await;
        measures(world, HOME, ("freeport_offload_nodes", "cluster=\"east\",ready", "True"), 1.0).await;
        measures(world, HOME, ("freeport_offload_nodes", "cluster=\"east\",ready", "Unknown"), 0.0).await;
        assert_eq!(twin(world, "silent-west").await, Ok(before));
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "silent-west").await;
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
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        bind(west, &ns, "web").await;
        twin_pod(world, "hubless-west", "web", None).await;
        kubelet_says(east, "hubless-west", "web", running("10.99.0.7")).await;
        is(world, &ns, "web", "Running", "").await;
        let pods = [Watched::<Pod>::of(west, &ns).await, Watched::<Pod>::of(east, "hubless-west").await];
        let leader = world.fleet.cluster("leader").unwrap();
        leader.kill(Component::ApiServer).await.unwrap();
        let begun = Instant::now();
        eventually("ready, without new Pods", || seen(false)).await;
        throughout(OUTAGE.saturating_sub(begun.elapsed()), "and stays so", || seen(false)).await;
        leader.start(Component::ApiServer).await.unwrap();
        eventually("with new Pods again", || seen(true)).await;
        pods.iter().for_each(|pods| pods.nothing_deleted("no Pod goes"));
        is(world, &ns, "web", "Running", "").await;
        stays(world, "hubless-west", &before).await;
        phase(world, &ns, "Ready").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "hubless-west").await;
        world.release(&ns).await;
    });
}
