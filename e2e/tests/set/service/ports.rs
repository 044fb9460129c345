//! Which ports an import has, and whose endpoints get their traffic.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use e2e::{
    fixture::{CLUSTERS, World, shared},
    seen::{imported, imported_slices, right},
    waiting::eventually,
    watched::Watched,
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Resource, ResourceExt};
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

#[e2e::test]
fn r40_r42_a_port_number_under_a_name_that_is_taken_gets_no_traffic() {
    shared(async |world| {
        let ns = &world.namespace("strict", &CLUSTERS).await;
        let metrics = json!({"name": "metrics", "port": 90});
        exported(world, ns, "east", "10.1.0.1", json!([{"name": "http", "port": 80}])).await;
        exported(world, ns, "west", "10.2.0.1", json!([{"name": "http", "port": 8080}, metrics])).await;
        let ports = &[("http".to_owned(), 80), ("metrics".to_owned(), 90)];
        for cluster in world.clusters() {
            let seen = eventually(&format!("both in {}", cluster.name), || async {
                right(imported(cluster, ns, "web").await, |seen| {
                    seen.ports == ports && seen.endpoints.len() == 2
                })
            })
            .await;
            assert_eq!(seen.addresses("east"), ["10.1.0.1:1080"]);
            assert_eq!(seen.addresses("west"), ["10.2.0.1:1090"], "http there is another port");
        }
        world.release(ns).await;
    });
}

#[e2e::test]
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
        let ports = &[("p80-2".to_owned(), 80), ("p80".to_owned(), 81)];
        for cluster in world.clusters() {
            let seen = eventually(&format!("both in {}", cluster.name), || async {
                right(imported(cluster, ns, "web").await, |seen| {
                    seen.ports == ports && seen.endpoints.len() == 2
                })
            })
            .await;
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

/// Names of ports that have endpoints, by the slice.
type Names = BTreeMap<String, BTreeSet<String>>;

/// The Service's name of port 80, where one is told.
fn name_of_80(service: &Service) -> Option<String> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    ports.filter(|port| port.port == 80).map(|port| port.name.clone().unwrap_or_default()).next()
}

/// Issue 14, A9.
#[e2e::test]
fn a9_an_unnamed_port_that_gets_company_has_endpoints_all_the_time() {
    shared(async |world| {
        let ns = &world.namespace("company", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        exported(world, ns, "east", "10.1.0.1", json!([{"port": 80}])).await;
        // As if Kubernetes wrote it, which follows the Service.
        let by = json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}}});
        east.patch::<EndpointSlice>(ns, "web-1", &by).await;
        eventually("imported", || imported(west, ns, "web")).await;
        let services = Watched::<Service>::of(west, ns).await;
        let slices = Watched::<EndpointSlice>::of(west, ns).await;
        let (mut name, mut names) = (String::new(), Names::new());
        for slice in imported_slices(west, ns, "web").await {
            names.insert(slice.name_any(), [String::new()].into());
        }

        let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
        east.patch::<Service>(ns, "web", &json!({"spec": {"ports": ports}})).await;
        eventually("the ports have names", || async {
            right(imported(west, ns, "web").await, |seen| seen.ports.len() == 2)
        })
        .await;
        let ports = json!([{"name": "a", "port": 1080, "protocol": "TCP"}, {"name": "b", "port": 1081, "protocol": "TCP"}]);
        east.patch::<EndpointSlice>(ns, "web-1", &json!({"ports": ports})).await;
        eventually("both have endpoints, under these names alone", || async {
            right(imported(west, ns, "web").await, |seen| {
                seen.endpoints.get("east").is_some_and(|east| east.keys().eq(["a", "b"]))
            })
        })
        .await;

        // One API server counts the versions of all kinds together.
        let mut told = BTreeMap::new();
        services.each(|service| drop(told.insert(version(service), Told::Service(name_of_80(service)))));
        slices.each(|slice| drop(told.insert(version(slice), Told::Slice(slice.name_any(), named(slice)))));
        for (version, told) in told {
            match told {
                Told::Service(of_80) => name = of_80.unwrap_or(name),
                Told::Slice(slice, ports) => drop(names.insert(slice, ports)),
            }
            assert!(
                names.values().flatten().any(|with| *with == name),
                "{version}: {name:?} not in {names:?}"
            );
        }
        slices.nothing_deleted("the slice");
        world.release(ns).await;
    });
}

enum Told {
    Service(Option<String>),
    Slice(String, BTreeSet<String>),
}

fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_ref().unwrap().parse().unwrap()
}

/// Names of a slice's ports, if it has endpoints.
fn named(slice: &EndpointSlice) -> BTreeSet<String> {
    let has_endpoints = slice.endpoints.iter().flatten().next().is_some();
    let ports = slice.ports.iter().flatten().filter(|_| has_endpoints);
    ports.map(|port| port.name.clone().unwrap_or_default()).collect()
}
