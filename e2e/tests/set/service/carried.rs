//! What an import says of a Service and its endpoints, as the Multi-Cluster Services API wants it said.

use api::mcs::{EndpointSliceObjects, ServiceImport};
use e2e::{
    fixture::{CLUSTERS, shared},
    seen::imported,
    waiting::eventually,
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::api::ListParams;
use serde_json::{Value, json};

#[test]
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

#[test]
fn r32_r56_r57_endpoints_are_carried_as_they_are_and_the_import_says_that_there_are_slices() {
    shared(async |world| {
        let ns = world.namespace("carried", &CLUSTERS).await;
        let east = world.cluster("east");
        east.service(&ns, "web", &[("http", 80)]).await;
        let conditions = json!({"ready": false, "serving": true, "terminating": true});
        let endpoint = json!({
            "addresses": ["10.1.0.1"], "hostname": "web-0", "zone": "z1", "nodeName": "n1", "conditions": conditions,
        });
        let slice = json!({
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": [endpoint],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        let _: EndpointSlice = east.create(&ns, slice).await;
        east.export(&ns, "web").await;
        let ours = ListParams::default().labels("multicluster.kubernetes.io/service-name=web");
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            eventually(&format!("{name} imports"), || async {
                let seen = imported(cluster, &ns, "web").await?;
                if seen.endpoints.len() == 1 { Ok(()) } else { Err(format!("{seen:?}")) }
            })
            .await;
            let slices = cluster.api::<EndpointSlice>(&ns).list(&ours).await.unwrap().items;
            let endpoints = slices[0].endpoints.clone().unwrap_or_default();
            let [endpoint] = endpoints.as_slice() else { panic!("{endpoints:?}") };
            assert_eq!(
                (endpoint.hostname.as_deref(), endpoint.zone.as_deref()),
                (Some("web-0"), Some("z1")),
                "in {name}"
            );
            assert_eq!(json!(endpoint.conditions), conditions, "in {name}");
            let import = cluster.api::<ServiceImport>(&ns).get("web").await.unwrap();
            let said = import.status.unwrap().endpoint_slice_objects;
            assert_eq!(said, Some(EndpointSliceObjects::Present), "in {name}");
        }
        world.release(&ns).await;
    });
}
