//! A twin ends when its owner says so, whoever was away meanwhile.

use std::time::{Duration, Instant};

use api::offload::{label::SCHEDULING_ENABLED, map::NamespaceMap, namespace::NamespaceOffloading};
use e2e::{
    daemon::End,
    fixture::{AREA, World},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{
    vanish::{stays, twin},
    world::{OFFLOADING, agreed, gone, offload, phase},
};

const HOME: &str = "freeport-member-west";
const HOST: &str = "freeport-member-east";
const CONNECTED: (&str, &str) = ("True", "Connected");

/// Waits until the NamespaceOffloading of `west` is gone.
async fn comes_home(world: &World, namespace: &str) {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(namespace);
    eventually(&format!("the deletion of NamespaceOffloading {namespace} completes"), || async {
        match offloadings.get_opt("offloading").await.unwrap() {
            None => Ok(()),
            Some(there) => Err(format!("{:?} {:?}", there.metadata.finalizers, there.status)),
        }
    })
    .await;
}

#[e2e::test]
fn a_twin_that_is_withdrawn_while_its_host_is_away_goes_when_the_host_is_back() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("withdrawn", &["west"]).await;
        let beside = world.namespace("withdrawn-beside", &["west"]).await;
        for ns in [&ns, &beside] {
            offload(world, ns, json!({"podOffloadingStrategy": "Local"})).await;
            phase(world, ns, "Ready").await;
        }
        let before = twin(world, "withdrawn-beside-west").await.unwrap();
        // As it is left on a Namespace whose NamespaceOffloading is missing.
        let labelled = world.namespace("withdrawn-label", &["west"]).await;
        let label = json!({"metadata": {"labels": {SCHEDULING_ENABLED: "true"}}});
        let namespaces = Api::<Namespace>::all(west.client.clone());
        namespaces.patch(&labelled, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();

        world.end(HOST, End::Stop).await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        let maps = world.leader().api::<NamespaceMap>(AREA);
        eventually("the home does not want it any more", || async {
            let spec = maps.get("1.west.east").await.map_err(|error| error.to_string())?.spec;
            if spec.desired_mapping.contains_key(&ns) { Err(format!("{spec:?}")) } else { Ok(()) }
        })
        .await;
        world.start(HOST).await;
        gone(world, "east", "withdrawn-west").await;
        comes_home(world, &ns).await;
        stays(world, "withdrawn-beside-west", &before).await;

        west.delete::<NamespaceOffloading>(&beside, "offloading").await;
        gone(world, "east", "withdrawn-beside-west").await;
        for ns in [&ns, &beside, &labelled] {
            world.release(ns).await;
        }
    });
}

/// Withdraws a Namespace while a member is away: before it goes, meanwhile, and when it is back.
async fn withdrawn_around(world: &World, away: &str, seconds: u64) {
    let west = world.cluster("west");
    let mut all = Vec::new();
    for when in ["before", "while", "after"] {
        let who = if away == HOST { "host" } else { "home" };
        let ns = world.namespace(&format!("end-{when}-{who}-{seconds}"), &["west"]).await;
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;
        all.push(ns);
    }
    let [before, meanwhile, after] = all.as_slice() else { unreachable!("three") };
    let end = async |ns: &String| west.delete::<NamespaceOffloading>(ns, "offloading").await;
    end(before).await;
    world.end(away, End::Stop).await;
    end(meanwhile).await;
    if away == HOST {
        edit_by_hand(world, meanwhile).await;
    }
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    world.start(away).await;
    world.member_says(if away == HOST { "east" } else { "west" }, CONNECTED).await;
    let back = Instant::now();
    end(after).await;
    for ns in &all {
        gone(world, "east", &format!("{ns}-west")).await;
        comes_home(world, ns).await;
    }
    println!(
        "{away} was away for {seconds} s: all has ended {:.1} s after its return",
        back.elapsed().as_secs_f32()
    );
    let maps = world.leader().api::<NamespaceMap>(AREA);
    eventually("the map says nothing of them any more", || async {
        let map = maps.get("1.west.east").await.map_err(|error| error.to_string())?;
        let said = map.status.clone().unwrap_or_default().current_mapping;
        let is_left = |ns: &&String| {
            let spec = &map.spec;
            spec.desired_mapping.contains_key(*ns)
                || spec.withdrawn.contains_key(*ns)
                || said.contains_key(*ns)
        };
        if all.iter().any(|ns| is_left(&ns)) { Err(format!("{map:?}")) } else { Ok(()) }
    })
    .await;
    for ns in &all {
        world.release(ns).await;
    }
}

/// Puts a key back that the home has withdrawn, as somebody may who restores a map from a copy.
async fn edit_by_hand(world: &World, ns: &str) {
    let maps = world.leader().api::<NamespaceMap>(AREA);
    let is_withdrawn = async || {
        let spec = maps.get("1.west.east").await.map_err(|error| error.to_string())?.spec;
        if spec.withdraws(ns) { Ok(()) } else { Err(format!("{spec:?}")) }
    };
    eventually("the home has withdrawn it", is_withdrawn).await;
    let copy = json!({"spec": {"desiredMapping": {ns: format!("{ns}-west")}, "withdrawn": {ns: null}}});
    maps.patch("1.west.east", &PatchParams::default(), &Patch::Merge(copy)).await.unwrap();
    eventually("the home withdraws it again", is_withdrawn).await;
}

#[e2e::test]
fn a_withdrawal_ends_whoever_is_away_before_it_meanwhile_or_after() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        for away in [HOST, HOME] {
            // Within a Lease of six seconds, and beyond.
            for seconds in [3, 15] {
                withdrawn_around(world, away, seconds).await;
            }
        }
    });
}
