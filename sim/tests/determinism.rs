//! A seed decides everything that happens.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{Api, api::PostParams};
use serde_json::{from_value, json};
use sim::{
    simulation::simulate,
    world::{ClusterPlan, Plan, World},
};
use tokio::time::sleep;

fn plan(seed: u64) -> Plan {
    let cluster = |name: &str| ClusterPlan { name: name.into(), is_dual: false };
    Plan {
        seed,
        set: "demo".into(),
        clusters: ["leader", "east", "west"].map(cluster).into(),
        lease_seconds: 6,
        offload: false,
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

async fn until(holds: impl Fn() -> Result<(), String>) {
    for _ in 0..600 {
        if holds().is_ok() {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("after a minute: {}", holds().unwrap_err());
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let [one, other] = [7, 7].map(|seed| simulate(seed, move || export(seed)));
    let differ = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    assert_eq!(differ, None, "of {} lines", one.lines().count());
    assert_eq!(one.len(), other.len());
    let third = simulate(8, || export(8));
    assert_ne!(one, third);
}
