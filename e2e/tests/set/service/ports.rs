//! Which ports an import has, and whose endpoints get their traffic.

use std::time::Duration;

use e2e::{
    fixture::{CLUSTERS, World, shared},
    seen::{imported, right},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

/// `web` with these ports, and a slice with the same names and target ports that are higher by 1000.
async fn exported(world: &World, ns: &str, cluster: &str, address: &str, ports: Value) {
    let of = world.cluster(cluster);
    let spec = json!({"ports": ports});
    let _: Service = of.create(ns, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let names: Vec<_> = ports
        .as_array()
        .unwrap()
        .iter()
        .map(|port| {
            (
                port["name"].as_str().unwrap_or_default(),
                i32::try_from(port["port"].as_i64().unwrap()).unwrap() + 1000,
            )
        })
        .collect();
    of.slice(ns, "web", "web-1", &[address], &names).await;
    of.export(ns, "web").await;
    tokio::time::sleep(Duration::from_millis(1100)).await; // ages are told in seconds
}

#[test]
fn r40_r42_a_port_number_under_a_name_that_is_taken_gets_no_traffic() {
    shared(async |world| {
        let ns = &world.namespace("strict", &CLUSTERS).await;
        let metrics = json!({"name": "metrics", "port": 90});
        exported(world, ns, "east", "10.1.0.1", json!([{"name": "http", "port": 80}])).await;
        exported(world, ns, "west", "10.2.0.1", json!([{"name": "http", "port": 8080}, metrics])).await;
        for cluster in world.clusters() {
            let seen = eventually(&format!("both in {}", cluster.name), || async {
                right(imported(cluster, ns, "web").await, |seen| seen.endpoints.len() == 2)
            })
            .await;
            assert_eq!(seen.ports, [("http".to_owned(), 80), ("metrics".to_owned(), 90)]);
            assert_eq!(seen.addresses("east"), ["10.1.0.1:1080"]);
            assert_eq!(seen.addresses("west"), ["10.2.0.1:1090"], "http there is another port");
        }
        world.release(ns).await;
    });
}

#[test]
fn r40_r43_an_unnamed_port_beside_named_ones_works() {
    shared(async |world| {
        let ns = &world.namespace("unnamed", &CLUSTERS).await;
        exported(world, ns, "east", "10.1.0.1", json!([{"port": 80}])).await;
        for cluster in world.clusters() {
            let seen = eventually("alone", || async {
                right(imported(cluster, ns, "web").await, |seen| seen.endpoints.len() == 1)
            })
            .await;
            assert_eq!(seen.ports, [(String::new(), 80)], "alone it needs no name");
        }
        let of_west = json!([{"name": "web", "port": 80}, {"name": "p80", "port": 81}]);
        exported(world, ns, "west", "10.2.0.1", of_west).await;
        for cluster in world.clusters() {
            let seen = eventually(&format!("both in {}", cluster.name), || async {
                right(imported(cluster, ns, "web").await, |seen| seen.endpoints.len() == 2)
            })
            .await;
            assert_eq!(seen.ports, [("p80-2".to_owned(), 80), ("p80".to_owned(), 81)]);
            assert_eq!(seen.endpoints["east"]["p80-2"], ["10.1.0.1:1080".to_owned()].into());
            assert_eq!(
                seen.endpoints["west"]["p80-2"],
                ["10.2.0.1:1080".to_owned()].into(),
                "renamed, not dropped"
            );
            assert_eq!(seen.endpoints["west"]["p80"], ["10.2.0.1:1081".to_owned()].into());
        }
        world.release(ns).await;
    });
}
