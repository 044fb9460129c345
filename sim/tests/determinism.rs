//! A seed decides everything that happens.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{Api, api::PostParams};
use serde_json::{Value, from_value, json};
use sim::{
    simulation::simulate,
    world::{ClusterPlan, Plan, SetPlan, World},
};
use tokio::time::sleep;

const CLUSTERS: [&str; 3] = ["leader", "east", "west"];

fn plan(seed: u64) -> Plan {
    let cluster = |name: &str| ClusterPlan { name: name.into(), is_dual: false };
    Plan {
        seed,
        clusters: CLUSTERS.map(cluster).into(),
        sets: vec![SetPlan { name: "demo".into(), members: CLUSTERS.map(str::to_owned).into() }],
        lease_seconds: 6,
        offload: false,
        bind: false,
    }
}

/// Exports Service `shop/web` of `east` and waits for its import in `west`. Returns the log of the network.
async fn export(seed: u64) -> String {
    let world = World::new(plan(seed));
    world.start_all();
    until(|| world.is_connected()).await;
    for cluster in world.names() {
        let namespace: Namespace = from_value(json!({"metadata": {"name": "shop"}})).unwrap();
        Api::all(world.admin(cluster)).create(&PostParams::default(), &namespace).await.unwrap();
    }
    let service: Service = from_value(json!({
        "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
    }))
    .unwrap();
    Api::namespaced(world.admin("east"), "shop").create(&PostParams::default(), &service).await.unwrap();
    world.server("east").install(&json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport",
        "metadata": {"name": "web", "namespace": "shop"},
    }));
    until(|| {
        let services = world.server("west").all("", "services");
        match services.iter().any(|service| service["metadata"]["name"] == "antrea-mc-web") {
            true => Ok(()),
            false => {
                Err(format!("{:?}", world.server("east").all("multicluster.x-k8s.io", "serviceexports")))
            }
        }
    })
    .await;
    world.end();
    world.net.take_log()
}

/// Offloads Namespace `shop` of `west` and waits for its twin in `east`. Returns the log of the network.
async fn offload(seed: u64) -> String {
    let world = World::new(Plan { offload: true, ..plan(seed) });
    world.start_all();
    until(|| world.is_connected()).await;
    let peer = |name: &str, spec: Value| {
        json!({
            "apiVersion": "multicluster.freeport.dev/v1alpha1", "kind": "OffloadPeer",
            "metadata": {"name": name}, "spec": spec,
        })
    };
    let (west, east) = (world.server("west"), world.server("east"));
    east.install(&peer("west", json!({"incoming": {}})));
    west.install(&peer("east", json!({"outgoing": {}})));
    west.install(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    west.install(&json!({
        "apiVersion": "offloading.liqo.io/v1beta1", "kind": "NamespaceOffloading",
        "metadata": {"name": "offloading", "namespace": "shop"}, "spec": {},
    }));
    until(|| match east.names("", "namespaces").iter().any(|name| name == "shop-west") {
        true => Ok(()),
        false => Err(format!("{:?}", west.all("offloading.liqo.io", "namespaceoffloadings"))),
    })
    .await;
    world.end();
    world.net.take_log()
}

async fn until(holds: impl Fn() -> Result<(), String>) {
    for _ in 0..600 {
        if holds().is_ok() {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("after a minute: {}", holds().unwrap_err());
}

fn assert_equal(one: &str, other: &str) {
    let differ = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    assert_eq!(differ, None, "of {} lines", one.lines().count());
    assert_eq!(one.len(), other.len());
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let [one, other] = [7, 7].map(|seed| simulate(seed, move || export(seed)));
    assert_equal(&one, &other);
    let third = simulate(8, || export(8));
    assert_ne!(one, third);
}

#[test]
fn the_same_seed_gives_the_same_log_of_offloading() {
    let [one, other] = [7, 7].map(|seed| simulate(seed, move || offload(seed)));
    assert_equal(&one, &other);
}
