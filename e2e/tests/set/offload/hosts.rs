//! Two hosts: where twins are follows selectors, labels of Nodes, names and consents.

use api::offload::{
    namespace::{NamespaceOffloading, OFFLOADING_REQUIRED, READY},
    peer::OffloadPeer,
};
use e2e::{fixture::World, waiting::eventually, watched::Watched};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::world::{OFFLOADING, agreed, gone, offload, peer, phase};

/// Namespaces of west.
const NAMESPACES: [&str; 6] = ["all", "in-us", "on-mars", "samename", "selected", "barred"];
const HOSTS: [&str; 2] = ["east", "leader"];

fn in_region(region: &str) -> Value {
    let expression = json!({"key": "liqo.io/region", "operator": "In", "values": [region]});
    json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]})
}

async fn namespace(world: &World, cluster: &str, name: &str) -> Option<Namespace> {
    Api::<Namespace>::all(world.cluster(cluster).client.clone()).get_opt(name).await.unwrap()
}

/// Status and reason of a condition of a cluster.
async fn says(world: &World, offloaded: &str, cluster: &str, condition: &str) -> (String, String) {
    let offloading =
        world.cluster("west").api::<NamespaceOffloading>(offloaded).get("offloading").await.unwrap();
    let conditions = offloading.status.unwrap_or_default().remote_namespaces_conditions;
    let conditions = conditions.get(cluster).cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|c| c.type_ == condition);
    found.map(|c| (c.status, c.reason)).unwrap_or_default()
}

/// Sets labels of a Namespace of west.
async fn label(world: &World, name: &str, labels: Value) {
    let namespaces = Api::<Namespace>::all(world.cluster("west").client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    namespaces.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[e2e::test]
fn twins_are_where_selectors_names_and_labels_say() {
    OFFLOADING.alone(async |world| {
        let [west, east, leader] = ["west", "east", "leader"].map(|name| world.cluster(name));
        agreed(world).await;
        peer(east, "west", json!({"incoming": {"namespaces": ["same*", "chosen"]}})).await;
        world.namespace("barred-west", &HOSTS).await;
        for (name, spec) in NAMESPACES.into_iter().zip([
            json!({}),
            json!({"clusterSelector": in_region("us")}),
            json!({"podOffloadingStrategy": "Remote", "clusterSelector": in_region("mars")}),
            json!({"namespaceMappingStrategy": "EnforceSameName"}),
            json!({"namespaceMappingStrategy": "SelectedName", "remoteNamespaceName": "chosen"}),
            json!({}),
        ]) {
            world.namespace(name, &["west"]).await;
            offload(world, name, spec).await;
        }
        for name in ["all", "in-us", "samename", "selected"] {
            phase(world, name, "Ready").await;
        }
        phase(world, "on-mars", "NoClusterSelected").await;
        phase(world, "barred", "AllFailed").await;
        let home = namespace(world, "west", "on-mars").await.unwrap();
        assert_eq!(home.labels()["liqo.io/scheduling-enabled"], "true", "its Pods wait for such a host");
        for (twin, original) in [("all-west", "all"), ("samename", "samename"), ("chosen", "selected")] {
            let twin = namespace(world, "east", twin).await.unwrap();
            assert_eq!(twin.annotations()["liqo.io/original-name"], original);
            assert_eq!(twin.labels()["liqo.io/remote-cluster-id"], "west");
        }

        // Another host, where somebody has the name of one twin. Nobody touches the NamespaceOffloadings.
        world.namespace("all-west", &["leader"]).await;
        let at_leader = Watched::<Namespace>::of_all(leader).await;
        peer(leader, "west", json!({"incoming": {"nodeLabels": {"liqo.io/region": "eu"}}})).await;
        peer(west, "leader", json!({"outgoing": {}})).await;
        phase(world, "all", "SomeFailed").await;
        phase(world, "samename", "SomeFailed").await;
        let refused = says(world, "samename", "leader", READY).await;
        assert_eq!(refused, ("False".into(), "CreationLoopBackOff".into()), "it allows no such name");
        leader.release_namespace("all-west").await;
        names_that_a_host_allows_are_used_there(world).await;
        a_name_that_was_taken_everywhere_is_used_when_it_is_free(world).await;
        asked_for_by_a_label(world).await;
        let status = phase(world, "all", "Ready").await;
        assert_eq!(status.observed_generation, Some(1));
        assert!(
            namespace(world, "leader", "all-west")
                .await
                .unwrap()
                .annotations()
                .contains_key("liqo.io/original-name")
        );
        phase(world, "in-us", "Ready").await;
        assert_eq!(says(world, "in-us", "leader", OFFLOADING_REQUIRED).await.0, "False");

        // The host has moved.
        peer(east, "west", json!({"incoming": {"nodeLabels": {"liqo.io/region": "mars"}}})).await;
        phase(world, "on-mars", "Ready").await;
        phase(world, "in-us", "NoClusterSelected").await;
        gone(world, "east", "in-us-west").await;
        let node = Api::<Node>::all(west.client.clone()).get("freeport-east").await.unwrap();
        assert_eq!(node.labels()["liqo.io/region"], "mars");
        at_leader.each(|there| assert_ne!(there.name_any(), "in-us-west", "nobody selects it"));

        nothing_is_left_when_it_has_ended(world).await;
        is_unoffloaded(world, "quick").await;
        for (cluster, other) in [(west, "leader"), (leader, "west")] {
            let peers = Api::<OffloadPeer>::all(cluster.client.clone());
            peers.delete(other, &DeleteParams::default()).await.unwrap();
        }
        peer(east, "west", json!({"incoming": {"namespaces": null}})).await;
        join_all(NAMESPACES.iter().chain(&["quick"]).map(|name| world.release(name))).await;
    });
}

async fn names_that_a_host_allows_are_used_there(world: &World) {
    peer(world.leader(), "west", json!({"incoming": {"namespaces": ["same*", "chosen"]}})).await;
    for (name, twin) in [("samename", "samename"), ("selected", "chosen")] {
        phase(world, name, "Ready").await;
        for host in HOSTS {
            let twin = namespace(world, host, twin).await.unwrap();
            assert_eq!(twin.annotations()["liqo.io/original-name"], name, "{host}");
        }
    }
}

async fn a_name_that_was_taken_everywhere_is_used_when_it_is_free(world: &World) {
    eventually("the new host says that it is taken, too", || async {
        let said = says(world, "barred", "leader", READY).await;
        if said.0 == "False" { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    phase(world, "barred", "AllFailed").await;
    for host in HOSTS {
        let theirs = namespace(world, host, "barred-west").await.unwrap();
        assert!(!theirs.annotations().contains_key("liqo.io/original-name"), "it is theirs: {theirs:?}");
        world.cluster(host).release_namespace("barred-west").await;
    }
    phase(world, "barred", "Ready").await;
    for host in HOSTS {
        let twin = namespace(world, host, "barred-west").await.unwrap();
        assert_eq!(twin.annotations()["liqo.io/original-name"], "barred", "{host}");
    }
}

/// What goes with the label, and stays without it if somebody else made it.
async fn asked_for_by_a_label(world: &World) {
    let west = world.cluster("west");
    world.namespace("quick", &["west"]).await;
    for name in ["quick", "all"] {
        label(world, name, json!({"liqo.io/enabled": "true"})).await;
    }
    for host in HOSTS {
        eventually(&format!("{host} has the twin"), || async {
            namespace(world, host, "quick-west")
                .await
                .map(drop)
                .ok_or_else(|| world.log_tail("freeport-member-west"))
        })
        .await;
    }
    for name in ["quick", "all"] {
        label(world, name, json!({"liqo.io/enabled": null})).await;
    }
    eventually("what the label asked for goes with it", || async {
        let quick = west.api::<NamespaceOffloading>("quick").get_opt("offloading").await.unwrap();
        let stays = quick.filter(|quick| quick.metadata.deletion_timestamp.is_none());
        stays.map_or(Ok(()), |quick| Err(format!("{:?}", quick.metadata)))
    })
    .await;
    let all = west.api::<NamespaceOffloading>("all").get("offloading").await.unwrap();
    assert_eq!(all.metadata.deletion_timestamp, None, "a user made it");
}

/// Waits until it has no NamespaceOffloading.
async fn is_unoffloaded(world: &World, name: &str) {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(name);
    eventually(&format!("offloading of {name} ends"), || async {
        let there = offloadings.get_opt("offloading").await.unwrap();
        there.map_or(Ok(()), |there| Err(format!("{:?}", there.status)))
    })
    .await;
}

async fn nothing_is_left_when_it_has_ended(world: &World) {
    let west = world.cluster("west");
    let watched = Watched::<NamespaceOffloading>::of(west, "all").await;
    join_all(NAMESPACES.iter().map(|name| west.delete::<NamespaceOffloading>(name, "offloading"))).await;
    is_unoffloaded(world, "all").await;
    for host in HOSTS {
        assert!(namespace(world, host, "all-west").await.is_none(), "at that instant no twin is left");
    }
    let mut phases = Vec::new();
    watched.each(|offloading| {
        phases.extend(offloading.status.as_ref().and_then(|status| status.offloading_phase.clone()));
    });
    assert_eq!(phases.last().map(String::as_str), Some("Terminating"), "{phases:?}");
    join_all(NAMESPACES.iter().map(|name| is_unoffloaded(world, name))).await;
    for (host, twin) in
        [("east", "samename"), ("east", "chosen"), ("east", "on-mars-west"), ("leader", "samename")]
    {
        assert!(namespace(world, host, twin).await.is_none(), "{twin} of {host}");
    }
}
