//! What outlives a restart, and what leaving takes along.

use api::{
    cluster_set::ClusterSet,
    offload::{
        map::NamespaceMap, namespace::NamespaceOffloading, offer::OffloadOffer, shadow_pod::ShadowPod,
    },
};
use e2e::{
    audit::writes_while,
    daemon::{DAEMONS, End},
    fixture::{AREA, SET, SYSTEM, World},
    waiting::eventually,
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;

use super::{
    pods::{
        running,
        world::{bind, is, kubelet_says, offloaded, twin_pod},
    },
    world::{OFFLOADING, agreed, gone, offload, phase},
};

const CONNECTED: (&str, &str) = ("True", "Connected");

/// What looks again now and then without an event, by daemon.
const RESYNCED: [(&str, &str); 3] = [
    ("freeport-member-west", "offload-status"),
    ("freeport-member-west", "offload-peer"),
    ("freeport-member-east", "offload-map"),
];

/// Waits until all that is [`RESYNCED`] has looked again, and all daemons have said that nothing is left to write.
pub(super) async fn looked_again(world: &World) {
    let looks = async |(daemon, controller): (&str, &str)| {
        let label = format!("controller=\"{controller}\",result");
        world.metrics(daemon).await.map(|metrics| metrics.of("freeport_reconcile_total", &label, "ok"))
    };
    let before = join_all(RESYNCED.map(looks)).await;
    for (what, before) in RESYNCED.into_iter().zip(before) {
        let before = before.unwrap();
        eventually(&format!("{what:?} has looked again"), || async {
            let now = looks(what).await?;
            if now > before { Ok(()) } else { Err(format!("{now:?}; {}", world.log_tail(what.0))) }
        })
        .await;
    }
    world.settled().await;
}

#[e2e::test]
fn a_settled_set_writes_leases_only_also_after_a_restart_of_everything() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        world.quiet().await;
        let (ns, twin) = offloaded(world, "restarted").await;
        bind(west, &ns, "web").await;
        twin_pod(world, &twin, "web", None).await;
        kubelet_says(east, &twin, "web", running("10.99.0.7")).await;
        is(world, &ns, "web", "Running", "").await;
        world.settled().await;
        let writes = writes_while(world, async || looked_again(world).await).await;
        assert_eq!(writes, Vec::<String>::new(), "nothing happens");
        for how in [End::Stop, End::Crash] {
            let restarted = async || {
                for daemon in DAEMONS {
                    world.end(daemon, how).await;
                }
                for daemon in DAEMONS {
                    world.start(daemon).await;
                }
                looked_again(world).await;
            };
            assert_eq!(writes_while(world, restarted).await, Vec::<String>::new(), "{how:?}");
        }
        // And they are not just idle.
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &twin).await;
        is(world, &ns, "web", "Failed", "OffloadingAborted").await;
        world.release(&ns).await;
    });
}

/// What a cluster left in the Common Area.
async fn records(world: &World, cluster: &str) -> Vec<String> {
    let maps = world.leader().api::<NamespaceMap>(AREA).list(&ListParams::default()).await.unwrap();
    let offers = world.leader().api::<OffloadOffer>(AREA).list(&ListParams::default()).await.unwrap();
    let maps = maps.into_iter().filter(|map| map.spec.origin == cluster).map(|map| map.name_any());
    let offers = offers.into_iter().filter(|offer| offer.spec.host == cluster).map(|offer| offer.name_any());
    let pods = world.leader().api::<ShadowPod>(AREA).list(&ListParams::default()).await.unwrap();
    let pods = pods.into_iter().filter(|pod| pod.spec.origin == cluster).map(|pod| pod.name_any());
    maps.chain(offers).chain(pods).collect()
}

#[e2e::test]
fn leaving_leaves_nothing_and_joining_again_brings_it_back() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("leaving", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        bind(west, &ns, "web").await;
        twin_pod(world, "leaving-west", "web", None).await;

        let set: ClusterSet = west.take(SYSTEM, SET).await;
        gone(world, "east", "leaving-west").await;
        eventually("the home has nothing of it", || async {
            let nodes = Api::<Node>::all(west.client.clone()).list(&ListParams::default()).await.unwrap();
            let offloading = west.api::<NamespaceOffloading>(&ns).get("offloading").await.unwrap();
            let home = Api::<Namespace>::all(west.client.clone()).get(&ns).await.unwrap();
            let is_labelled = home.labels().contains_key("liqo.io/scheduling-enabled");
            let (records, nodes) = (records(world, "west").await, nodes.items.len());
            let seen = (records.len(), nodes, offloading.finalizers().len(), is_labelled);
            match seen == (0, 0, 0, false) {
                true => Ok(()),
                false => Err(format!("{seen:?} {records:?}; {}", world.log_tail("freeport-member-west"))),
            }
        })
        .await;
        west.put_back(set).await;
        world.member_says("west", CONNECTED).await;
        phase(world, &ns, "Ready").await;

        let set: ClusterSet = east.take(SYSTEM, SET).await;
        gone(world, "east", "leaving-west").await;
        eventually("no record of the host is left", || async {
            let records = records(world, "east").await;
            if records.is_empty() { Ok(()) } else { Err(format!("{records:?}")) }
        })
        .await;
        let node = Api::<Node>::all(west.client.clone()).get("freeport-east").await.unwrap();
        assert_eq!(node.metadata.deletion_timestamp, None, "nobody at home has decided that");
        east.put_back(set).await;
        world.member_says("east", CONNECTED).await;
        agreed(world).await;
        eventually("the twin is made anew", || async {
            let twin = Api::<Namespace>::all(east.client.clone()).get_opt("leaving-west").await.unwrap();
            twin.map(drop).ok_or_else(|| world.log_tail("freeport-member-east"))
        })
        .await;
        phase(world, &ns, "Ready").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "leaving-west").await;
        world.release(&ns).await;
    });
}
