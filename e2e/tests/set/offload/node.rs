//! Virtual Nodes that are deleted, by mistake and by decision.

use api::offload::{
    label::FINALIZER, map::NamespaceMap, namespace::NamespaceOffloading, peer::OffloadPeer,
    pod_status::ABORTED,
};
use e2e::{
    daemon::End,
    fixture::{AREA, World},
    waiting::eventually,
    watched::Watched,
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    pods::{
        running,
        world::{bind, is, kubelet_says, offloaded, twin_pod},
    },
    world::{OFFLOADING, agreed, gone, offload, peer, phase},
};

const NODE: &str = "freeport-east";
const HOME: &str = "freeport-member-west";

fn nodes(world: &World) -> Api<Node> {
    Api::all(world.cluster("west").client.clone())
}

/// Waits until the Node is there and is not the one with this uid.
async fn made_anew(world: &World, before: &Node) -> Node {
    eventually("the Node is made anew", || async {
        let now = nodes(world).get(NODE).await.map_err(|error| error.to_string())?;
        if now.uid() == before.uid() { Err("still the old one".to_owned()) } else { Ok(now) }
    })
    .await
}

async fn twin(world: &World, name: &str) -> Namespace {
    Api::all(world.cluster("east").client.clone()).get(name).await.unwrap()
}

async fn label(world: &World, labels: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    nodes(world).patch(NODE, &PatchParams::default(), &patch).await.unwrap();
}

#[e2e::test]
fn a_deleted_node_is_made_anew_before_kubernetes_collects_its_pods() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        let (ns, twin) = offloaded(world, "noded").await;
        let here = bind(west, &ns, "web").await;
        let there = twin_pod(world, &twin, "web", None).await;
        kubelet_says(east, &twin, "web", running("10.99.0.7")).await;
        is(world, &ns, "web", "Running", "").await;
        let pods = [Watched::<Pod>::of(west, &ns).await, Watched::<Pod>::of(east, &twin).await];

        let before = nodes(world).get(NODE).await.unwrap();
        nodes(world).delete(NODE, &DeleteParams::default()).await.unwrap();
        let after = made_anew(world, &before).await;
        eventually("its Lease is renewed for the new one", || async {
            let lease = west.api::<Lease>("kube-node-lease").get(NODE).await.map_err(|e| e.to_string())?;
            let owners: Vec<_> = lease.owner_references().iter().map(|owner| owner.uid.clone()).collect();
            if owners == [after.uid().unwrap()] { Ok(()) } else { Err(format!("{owners:?}")) }
        })
        .await;
        eventually("it is ready", || async {
            let status = nodes(world).get(NODE).await.unwrap().status.unwrap_or_default();
            let mut ready = status.conditions.iter().flatten().filter(|c| c.type_ == "Ready");
            if ready.any(|c| c.status == "True") { Ok(()) } else { Err(format!("{:?}", status.conditions)) }
        })
        .await;
        let now = is(world, &ns, "web", "Running", "").await;
        assert_eq!((now.uid(), now.spec.unwrap().node_name.as_deref()), (here.uid(), Some(NODE)));
        assert_eq!(twin_pod(world, &twin, "web", None).await.uid(), there.uid());
        pods.iter().for_each(|pods| pods.nothing_deleted("Pods stay"));
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &twin).await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn a_node_that_is_deleted_while_no_member_runs_has_the_labels_of_others_again() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        eventually("the Node is there", || async { nodes(world).get(NODE).await.map_err(|e| e.to_string()) })
            .await;
        label(world, json!({"tier": "gold"})).await;
        let ns = world.namespace("golden", &["west"]).await;
        let expression = json!({"key": "tier", "operator": "In", "values": ["gold"]});
        let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        offload(world, &ns, json!({"podOffloadingStrategy": "Local", "clusterSelector": selector})).await;
        phase(world, &ns, "Ready").await;
        let before = twin(world, "golden-west").await.uid();
        let peers = Api::<OffloadPeer>::all(west.client.clone());
        eventually("the label is remembered", || async {
            let status = peers.get("east").await.unwrap().status.unwrap_or_default();
            match status.node_labels.get("tier").map(String::as_str) {
                Some("gold") => Ok(()),
                _ => Err(format!("{status:?}")),
            }
        })
        .await;

        let node = nodes(world).get(NODE).await.unwrap();
        world.end(HOME, End::Crash).await;
        nodes(world).delete(NODE, &DeleteParams::default()).await.unwrap();
        world.start(HOME).await;
        let again = made_anew(world, &node).await;
        assert_eq!(again.labels().get("tier").map(String::as_str), Some("gold"), "from the beginning");
        world.settled().await;
        let now = twin(world, "golden-west").await;
        assert_eq!((now.uid(), now.metadata.deletion_timestamp), (before, None));
        phase(world, &ns, "Ready").await;

        label(world, json!({"tier": null})).await;
        gone(world, "east", "golden-west").await;
        phase(world, &ns, "NoClusterSelected").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn a_cluster_that_is_not_used_any_more_gives_twins_and_pods_back_before_its_node_goes() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        let (ns, twin) = offloaded(world, "unused").await;
        bind(west, &ns, "web").await;
        twin_pod(world, &twin, "web", None).await;
        kubelet_says(east, &twin, "web", running("10.99.0.7")).await;
        is(world, &ns, "web", "Running", "").await;
        // As a DaemonSet has it that tolerates everything.
        let beside = world.namespace("unused-beside", &["west"]).await;
        bind(west, &beside, "everywhere").await;
        is(world, &beside, "everywhere", "Pending", "OffloadingBackOff").await;
        // Its NamespaceOffloading vanished with its CRD, and was not made again.
        let maps = world.leader().api::<NamespaceMap>(AREA);
        let key = json!({"spec": {"desiredMapping": {"orphaned": "orphaned-west"}}});
        maps.patch("1.west.east", &PatchParams::default(), &Patch::Merge(key)).await.unwrap();
        let namespaces = Api::<Namespace>::all(east.client.clone());
        eventually("nobody takes it out", || async {
            namespaces.get("orphaned-west").await.map(drop).map_err(|error| error.to_string())
        })
        .await;

        peer(west, "east", json!({"outgoing": null})).await;
        eventually("the Node goes", || async {
            let node = nodes(world).get_opt(NODE).await.unwrap();
            node.map_or(Ok(()), |node| Err(format!("{:?}; {}", node.metadata, world.log_tail(HOME))))
        })
        .await;
        let pod = west.api::<Pod>(&ns).get("web").await.unwrap().status.unwrap();
        let says = (pod.phase.as_deref(), pod.reason.as_deref());
        assert_eq!(says, (Some("Failed"), Some(ABORTED)), "it has ended before the Node went");
        assert!(namespaces.get_opt(&twin).await.unwrap().is_none(), "it went before");
        gone(world, "east", "orphaned-west").await;
        let map = maps.get("1.west.east").await.unwrap();
        assert_eq!(map.spec.desired_mapping.len(), 0, "{:?}", map.spec);
        let offloading = west.api::<NamespaceOffloading>(&ns).get("offloading").await.unwrap();
        assert_eq!(offloading.finalizers(), [FINALIZER], "it may be used again");

        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        west.api::<Pod>(&beside).delete("everywhere", &at_once).await.unwrap();
        agreed(world).await;
        phase(world, &ns, "Ready").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &twin).await;
        for ns in [&ns, &beside] {
            world.release(ns).await;
        }
    });
}
