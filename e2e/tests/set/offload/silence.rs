//! Who is silent: a host, or the leader.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::offload::namespace::{NamespaceOffloading, READY};
use e2e::{
    daemon::End,
    seen::event,
    waiting::{VOUCHED, eventually, throughout, within},
    watched::Watched,
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Condition};
use serde_json::{Value, json};

use super::{
    pods::{
        running,
        world::{bind, is, kubelet_says, twin_pod},
    },
    vanish::{node, stays, twin},
    world::{OFFLOADING, agreed, gone, measures, offload, peer_says, phase},
};

/// How long the leader is gone: longer than Kubernetes lets a Node be silent (50 s), and than anybody here waits for anybody else.
const OUTAGE: Duration = Duration::from_secs(55);

#[e2e::test]
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

#[e2e::test]
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
        world.kill_api_server("leader").await;
        let begun = Instant::now();
        eventually("ready, without new Pods", || seen(false)).await;
        throughout(OUTAGE.saturating_sub(begun.elapsed()), "and stays so", || seen(false)).await;
        world.start_api_server("leader").await;
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
