//! What outlives a restart, and what leaving takes along.

use std::collections::BTreeMap;

use api::{
    cluster_set::ClusterSet,
    offload::{
        map::NamespaceMap, namespace::NamespaceOffloading, offer::OffloadOffer, peer::OffloadPeer,
        shadow_pod::ShadowPod,
    },
};
use e2e::{
    daemon::End,
    fixture::{AREA, SET, SYSTEM, World},
    waiting::{always, eventually},
};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use serde_json::json;

use super::{
    pods::world::{bind, twin_pod},
    world::{OFFLOADING, agreed, gone, offload, phase},
};

const CONNECTED: (&str, &str) = ("True", "Connected");

fn version<K: Resource>(object: &K) -> String {
    format!("{:?} {:?}", object.meta().uid, object.meta().resource_version)
}

/// Versions of all that offloading `namespace` consists of.
async fn versions(world: &World, namespace: &str) -> BTreeMap<&'static str, String> {
    let (west, east) = (world.cluster("west"), world.cluster("east"));
    let twin = format!("{namespace}-west");
    let peers = |cluster: &e2e::cluster::Cluster| Api::<OffloadPeer>::all(cluster.client.clone());
    let of = |what, version: String| (what, version);
    BTreeMap::from([
        of("node", version(&Api::<Node>::all(west.client.clone()).get("freeport-east").await.unwrap())),
        of("peer of west", version(&peers(west).get("east").await.unwrap())),
        of("peer of east", version(&peers(east).get("west").await.unwrap())),
        of(
            "offloading",
            version(&west.api::<NamespaceOffloading>(namespace).get("offloading").await.unwrap()),
        ),
        of("map", version(&world.leader().api::<NamespaceMap>(AREA).get("1.west.east").await.unwrap())),
        of("offer", version(&world.leader().api::<OffloadOffer>(AREA).get("1.east.west").await.unwrap())),
        of("twin", version(&Api::<Namespace>::all(east.client.clone()).get(&twin).await.unwrap())),
        of("home", version(&Api::<Namespace>::all(west.client.clone()).get(namespace).await.unwrap())),
    ])
}

#[test]
fn a_restart_of_all_members_writes_nothing() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let ns = world.namespace("restarted", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let before = versions(world, &ns).await;
        let daemons = [("freeport-member-west", "offload-status"), ("freeport-member-east", "offload-map")];
        for (daemon, _) in daemons {
            world.end(daemon, End::Stop).await;
        }
        for (daemon, controller) in daemons {
            world.launch(daemon).await;
            eventually(&format!("{controller} of {daemon} has looked again"), || async {
                let label = format!("controller=\"{controller}\",result");
                let reconciled = world.metrics(daemon).await?.of("freeport_reconcile_total", &label, "ok");
                if reconciled > Some(0.0) { Ok(()) } else { Err(world.log_tail(daemon)) }
            })
            .await;
        }
        always("nothing is written", || async {
            let now = versions(world, &ns).await;
            let differing: Vec<_> = now.iter().filter(|(what, now)| before[**what] != **now).collect();
            if differing.is_empty() { Ok(()) } else { Err(format!("{differing:?}, before {before:?}")) }
        })
        .await;
        world.cluster("west").delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "restarted-west").await;
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

#[test]
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
