//! What is in the EndpointSlices of an import (rules of the Multi-Cluster Services API).

use std::collections::BTreeSet;

use e2e::{
    cluster::Cluster,
    fixture::{CLUSTERS, shared},
    seen::{imported, imported_slices, right},
    waiting::eventually,
};
use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointSlice},
};
use kube::ResourceExt;
use serde_json::{Value, json};

/// A slice of `web` with these endpoints on port 8080.
async fn slice(cluster: &Cluster, ns: &str, name: &str, endpoints: Value) {
    let slice = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    });
    let _: EndpointSlice = cluster.create(ns, slice).await;
}

/// The endpoint with this address, once it is imported.
async fn endpoint(cluster: &Cluster, ns: &str, address: &str) -> Endpoint {
    eventually(&format!("{} imports {address}", cluster.name), || async {
        let slices = imported_slices(cluster, ns, "web").await;
        let mut endpoints = slices.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
        endpoints
            .find(|endpoint| endpoint.addresses.iter().any(|a| a == address))
            .ok_or_else(|| "not there".to_owned())
    })
    .await
}

#[e2e::test]
fn r53_r56_endpoints_carry_what_means_something_elsewhere() {
    shared(async |world| {
        let ns = &world.namespace("carried", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.service(ns, "web", &[("http", 80)]).await;
        let pod = json!({"kind": "Pod", "namespace": ns, "name": "web-0", "uid": "6d6e8b1e-0000-4000-8000-000000000000"});
        let going = json!({"ready": false, "serving": true, "terminating": true});
        let endpoints = json!([
            {"addresses": ["10.1.0.1"], "conditions": {"ready": true}, "hostname": "web-0", "zone": "eu-1a", "nodeName": "n1", "targetRef": pod},
            {"addresses": ["10.1.0.2"], "conditions": going, "nodeName": "n2"},
        ]);
        slice(east, ns, "web-1", endpoints).await;
        east.export(ns, "web").await;
        for cluster in [east, west] {
            let ready = endpoint(cluster, ns, "10.1.0.1").await;
            assert_eq!((ready.hostname.as_deref(), ready.zone.as_deref()), (Some("web-0"), Some("eu-1a")));
            let going = endpoint(cluster, ns, "10.1.0.2").await.conditions.unwrap();
            assert_eq!(
                (going.ready, going.serving, going.terminating),
                (Some(false), Some(true), Some(true))
            );
            let place = (ready.node_name, ready.target_ref.and_then(|pod| pod.name));
            let expected = (cluster.name == "east").then(|| ("n1".to_owned(), "web-0".to_owned())).unzip();
            assert_eq!(place, expected, "nodes and Pods mean nothing elsewhere: {}", cluster.name);
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn r46_near_endpoints_are_hinted_where_the_export_asks_for_them() {
    shared(async |world| {
        let ns = &world.namespace("near", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.service(ns, "web", &[("http", 80)]).await;
        let endpoints = json!([{"addresses": ["10.1.0.1"], "zone": "eu-1a", "nodeName": "n1"}]);
        slice(east, ns, "web-1", endpoints).await;
        let near = async |distribution: Value| {
            let _: Service =
                east.patch(ns, "web", &json!({"spec": {"trafficDistribution": distribution}})).await;
        };
        let hints = async |cluster: &Cluster, wanted: Value| {
            eventually(&format!("{} hints {wanted}", cluster.name), || async {
                let hints = serde_json::to_value(endpoint(cluster, ns, "10.1.0.1").await.hints).unwrap();
                if hints == wanted { Ok(()) } else { Err(hints.to_string()) }
            })
            .await;
        };
        east.export(ns, "web").await;
        hints(west, Value::Null).await;
        near(json!("PreferSameZone")).await;
        for cluster in [east, west] {
            hints(cluster, json!({"forZones": [{"name": "eu-1a"}]})).await;
        }
        near(json!("PreferSameNode")).await;
        hints(east, json!({"forNodes": [{"name": "n1"}], "forZones": [{"name": "eu-1a"}]})).await;
        let nobody = "east.elsewhere.multicluster.freeport.dev";
        hints(west, json!({"forNodes": [{"name": nobody}], "forZones": [{"name": "eu-1a"}]})).await;
        near(Value::Null).await;
        for cluster in [east, west] {
            hints(cluster, Value::Null).await;
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn r51_r52_r55_one_slice_for_each_source_slice_however_long() {
    shared(async |world| {
        let ns = &world.namespace("long-slices", &CLUSTERS).await;
        let east = world.cluster("east");
        east.service(ns, "web", &[("http", 80)]).await;
        let many = |net: usize| {
            let endpoint = |n: usize| json!({"addresses": [format!("10.{net}.{}.{}", n / 250, n % 250 + 1)], "nodeName": "n1"});
            (0..1000).map(endpoint).collect::<Value>()
        };
        slice(east, ns, "web-1", many(1)).await;
        slice(east, ns, "web-2", many(2)).await;
        east.export(ns, "web").await;
        let mut names = BTreeSet::new();
        for cluster in world.clusters() {
            eventually(&format!("all in {}", cluster.name), || async {
                right(imported(cluster, ns, "web").await, |seen| seen.addresses("east").len() == 2000)
                    .map_err(|_| "not all 2000 addresses".to_owned())
            })
            .await;
            let slices = imported_slices(cluster, ns, "web").await;
            let sizes: Vec<_> = slices.iter().map(|s| s.endpoints.as_ref().map_or(0, Vec::len)).collect();
            assert_eq!(sizes, [1000, 1000], "no slice is split");
            names.insert(slices.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
        }
        assert_eq!(names.len(), 1, "named alike everywhere: {names:?}");
        world.release(ns).await;
    });
}
