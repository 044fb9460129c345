//! One exporter: what it exports appears everywhere, follows it, and goes with it.

use std::time::Instant;

use k8s_openapi::api::core::v1::Service;
use serde_json::json;

use e2e::{
    fixture::{CLUSTERS, shared},
    seen::{holds, imported, not_imported, right, says},
    waiting::eventually,
};

#[e2e::test]
fn r3_r18_r21_r51_r55_an_export_appears_in_every_cluster_and_goes_everywhere() {
    shared(async |world| {
        let ns = world.namespace("export", &CLUSTERS).await;
        let (east, begun) = (world.cluster("east"), Instant::now());
        east.exported(&ns, "web", &["10.1.0.7", "10.1.0.8"]).await;
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            let seen = eventually(&format!("the import in {name}"), || async {
                right(imported(cluster, &ns, "web").await, |seen| seen.addresses("east").len() == 2)
            })
            .await;
            assert_eq!(seen.ports, [("http".to_owned(), 80)]);
            assert_eq!(seen.clusters, ["east".to_owned()].into());
            assert_eq!(seen.addresses("east"), ["10.1.0.7:8080", "10.1.0.8:8080"]);
        }
        e2e::note!("from creating Service, slice and export to the last import: {:?}", begun.elapsed());
        eventually("Valid", || says(east, (&ns, "web"), "Valid", "True", "Valid")).await;
        eventually("Ready", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;

        let before = east.api::<Service>(&ns).get("web").await.unwrap();
        east.unexport(&ns, "web").await;
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            eventually(&format!("gone from {name}"), || not_imported(cluster, &ns, "web")).await;
        }
        eventually("the Common Area is empty of it", || holds(world, &ns, "web", 0)).await;
        let after = east.api::<Service>(&ns).get("web").await.unwrap();
        assert_eq!(before, after, "the local Service is untouched (R-6)");
        world.release(&ns).await;
    });
}

#[e2e::test]
fn r9_r14_an_export_outlives_its_service_and_speaks_for_the_next_one() {
    shared(async |world| {
        let ns = world.namespace("service-deletion", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.7"]).await;
        eventually("imported", || imported(west, &ns, "web")).await;

        east.delete::<Service>(&ns, "web").await;
        eventually("NoService", || says(east, (&ns, "web"), "Valid", "False", "NoService")).await;
        eventually("gone", || not_imported(west, &ns, "web")).await;

        east.service(&ns, "web", &[("http", 81)]).await;
        let seen = eventually("imported again", || imported(west, &ns, "web")).await;
        assert_eq!(seen.ports, [("http".to_owned(), 81)]);
        eventually("Ready", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn r12_r15_node_ports_and_load_balancers_are_exported_like_any_service() {
    shared(async |world| {
        let ns = world.namespace("service-types", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for (name, type_) in [("node", "NodePort"), ("balanced", "LoadBalancer")] {
            let ports = json!([{"name": "http", "port": 80, "appProtocol": "http"}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
            let _: Service = east
                .create(&ns, json!({"metadata": {"name": name}, "spec": {"type": type_, "ports": ports}}))
                .await;
            east.export(&ns, name).await;
            let seen = eventually(type_, || imported(west, &ns, name)).await;
            assert_eq!(seen.ports, [("dns".to_owned(), 53), ("http".to_owned(), 80)]);
            let derived = west.api::<Service>(&ns).get(&format!("antrea-mc-{name}")).await.unwrap();
            assert_eq!(derived.spec.unwrap().type_.as_deref(), Some("ClusterIP"));
        }
        world.release(&ns).await;
    });
}

#[e2e::test]
fn endpoints_follow_wherever_they_are_imported() {
    shared(async |world| {
        let ns = world.namespace("endpoints", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        let has = |addresses: &'static [&'static str]| {
            let ns = ns.clone();
            async move {
                for cluster in [east, west] {
                    let what = format!("{} has {addresses:?}", cluster.name);
                    eventually(&what, || async {
                        right(imported(cluster, &ns, "web").await, |seen| seen.addresses("east") == addresses)
                    })
                    .await;
                }
            }
        };
        has(&["10.1.0.1:8080"]).await;
        east.replace_slice(&ns, "web", "web-1", &["10.1.0.1", "10.1.0.2"], &[("http", 8080)]).await;
        has(&["10.1.0.1:8080", "10.1.0.2:8080"]).await;
        east.slice(&ns, "web", "web-2", &["10.1.0.3"], &[("http", 9090)]).await;
        has(&["10.1.0.1:8080", "10.1.0.2:8080", "10.1.0.3:9090"]).await;
        east.replace_slice(&ns, "web", "web-1", &[], &[("http", 8080)]).await;
        has(&["10.1.0.3:9090"]).await;
        east.delete::<k8s_openapi::api::discovery::v1::EndpointSlice>(&ns, "web-2").await;
        has(&[]).await;
        east.replace_slice(&ns, "web", "web-1", &["10.1.0.9"], &[("http", 8080)]).await;
        has(&["10.1.0.9:8080"]).await;
        world.release(&ns).await;
    });
}
