//! What an import says of a Service and its endpoints, as the Multi-Cluster Services API wants it said.

use api::mcs::{EndpointSliceObjects, ServiceExport, ServiceImport};
use e2e::{
    fixture::{CLUSTERS, shared},
    seen::{conditions, imported},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

#[e2e::test]
fn r28_ports_are_those_exported_and_their_protocol_is_always_said() {
    shared(async |world| {
        let ns = world.namespace("ports", &CLUSTERS).await;
        let east = world.cluster("east");
        let ports = json!([
            {"name": "http", "port": 80, "appProtocol": "kubernetes.io/h2c"},
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            {"name": "sigtran", "port": 2905, "protocol": "SCTP"},
        ]);
        let _: Service =
            east.create(&ns, json!({"metadata": {"name": "web"}, "spec": {"ports": ports}})).await;
        east.export(&ns, "web").await;
        let mut wanted = ports;
        wanted[0]["protocol"] = json!("TCP");
        let in_order = |ports: Value| {
            let mut ports = ports.as_array().cloned().unwrap_or_default();
            ports.sort_by_key(|port| port["name"].to_string());
            ports
        };
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            eventually(&format!("{name} imports"), || imported(cluster, &ns, "web")).await;
            let import = cluster.api::<ServiceImport>(&ns).get("web").await.unwrap();
            assert_eq!(in_order(json!(import.spec.ports)), in_order(wanted.clone()), "{name}");
        }
        world.release(&ns).await;
    });
}

#[e2e::test]
fn r32_r57_an_import_says_that_there_are_slices() {
    shared(async |world| {
        let ns = world.namespace("present", &CLUSTERS).await;
        world.cluster("east").exported(&ns, "web", &["10.1.0.1"]).await;
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            eventually(&format!("{name} imports"), || imported(cluster, &ns, "web")).await;
            let import = cluster.api::<ServiceImport>(&ns).get("web").await.unwrap();
            assert_eq!(import.annotations()["multicluster.kubernetes.io/derived-service"], "antrea-mc-web");
            let said = import.status.unwrap().endpoint_slice_objects;
            assert_eq!(said, Some(EndpointSliceObjects::Present), "in {name}");
        }
        world.release(&ns).await;
    });
}

#[e2e::test]
fn r30_exported_labels_and_annotations_are_on_the_service_too_but_for_those_of_tools() {
    shared(async |world| {
        let ns = &world.namespace("marked", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.service(ns, "web", &[("http", 80)]).await;
        let (instance, tracking) = ("app.kubernetes.io/instance", "argocd.argoproj.io/tracking-id");
        let spec = json!({
            "exportedLabels": {"team": "shop", instance: "shop", "app.kubernetes.io/managed-by": "argocd"},
            "exportedAnnotations": {"note": "a", tracking: "shop"},
        });
        let _: ServiceExport = east.create(ns, json!({"metadata": {"name": "web"}, "spec": spec})).await;
        eventually("imported", || imported(west, ns, "web")).await;
        let import = west.api::<ServiceImport>(ns).get("web").await.unwrap();
        assert_eq!((&*import.labels()[instance], &*import.annotations()[tracking]), ("shop", "shop"));
        let service = async || west.api::<Service>(ns).get("antrea-mc-web").await.unwrap();
        let made = service().await;
        assert_eq!((&*made.labels()["team"], &*made.annotations()["note"]), ("shop", "a"));
        assert_eq!(made.labels()["app.kubernetes.io/managed-by"], "freeport");
        assert!(
            !made.labels().contains_key(instance) && !made.annotations().contains_key(tracking),
            "{made:?}"
        );
        let said = conditions(east, ns, "web").await.remove("Valid").unwrap();
        let names =
            format!("do not get app.kubernetes.io/instance, app.kubernetes.io/managed-by, {tracking},");
        assert!(said.status == "True" && said.message.contains(&names), "{said:?}");

        let _: ServiceExport = east.patch(ns, "web", &json!({"spec": {"exportedLabels": null}})).await;
        eventually("what is exported no more goes", || async {
            let labels = service().await.metadata.labels.unwrap_or_default();
            if labels.contains_key("team") { Err(format!("{labels:?}")) } else { Ok(()) }
        })
        .await;
        world.release(ns).await;
    });
}
