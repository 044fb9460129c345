//! Two clusters with nodes: Pods run, reach each other across clusters, use Services and names, and can be looked into.

use std::env;

use e2e::{
    ask::{Protocol::Http, Silence},
    bring_up::administrators,
    cluster::Cluster,
    harness::record::uses_fleet,
    pod::nodes_are_possible,
    say::say,
    waiting::eventually,
};
use fleet::{Component, Fleet, Image, Lifetime, Options, agnhost::HTTP_PORT};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::LogParams;
use serde_json::json;

use crate::nodes::{
    in_turn,
    traces::{Places, Traces},
};

const NAMESPACE: &str = "default";
const CLIENT: (&str, &str) = (NAMESPACE, "client");

pub(crate) fn options(name: &str, clusters: &[&str], lifetime: Lifetime) -> Options {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let dir = env::temp_dir().join(format!("freeport-nodes-{}-{name}", std::process::id()));
    uses_fleet(&dir);
    Options {
        dir,
        clusters: clusters.iter().map(|cluster| cluster.parse().unwrap()).collect(),
        nodes: true,
        lifetime,
    }
}

#[e2e::test]
async fn pods_reach_each_other() {
    if !nodes_are_possible() {
        return;
    }
    let _turn = in_turn().await;
    let before = Places::look();
    let options = options("pods", &["east", "west"], Lifetime::Attached { remove: true });
    let dir = options.dir.clone();
    let fleet = Fleet::up(options, say).await.unwrap();
    let clusters = administrators(&fleet).await.unwrap();
    let [east, west] = clusters.as_slice() else { panic!("two clusters") };

    let (in_east, _) =
        tokio::join!(east.run_server(NAMESPACE, "server"), west.run_server(NAMESPACE, "client"));
    a_pod_reaches_one_of_another_cluster(west, &in_east).await;
    a_service_works_by_address_and_name(west).await;
    a_pod_can_be_looked_into(west).await;
    an_image_that_was_loaded_runs(&fleet, west).await;
    pods_outlive_what_runs_them(fleet.cluster("west").unwrap(), west).await;

    let traces = Traces::of(&fleet).await;
    Fleet::down(&dir, say).await.unwrap();
    traces.are_gone().await;
    assert!(!dir.exists());
    assert_eq!(Places::look(), before);
}

/// Unmasqueraded: who asks is seen as who it is.
async fn a_pod_reaches_one_of_another_cluster(west: &Cluster, in_east: &str) {
    let own = west.api::<Pod>(NAMESPACE).get("client").await.unwrap().status.unwrap().pod_ip.unwrap();
    assert_eq!(west.ask_from(CLIENT, Http, (in_east, HTTP_PORT), "hostname").await.unwrap(), "server");
    let seen = west.ask_from(CLIENT, Http, (in_east, HTTP_PORT), "clientip").await.unwrap();
    assert_eq!(seen.rsplit_once(':').unwrap().0, own);
}

async fn a_service_works_by_address_and_name(west: &Cluster) {
    west.run_server(NAMESPACE, "backend").await;
    let spec = json!({
        "selector": {"app": "backend"},
        "ports": [{"port": 80, "targetPort": HTTP_PORT}],
    });
    let service: Service =
        west.create(NAMESPACE, json!({"metadata": {"name": "backend"}, "spec": spec})).await;
    let address = service.spec.unwrap().cluster_ip.unwrap();
    for host in [address.as_str(), "backend", "backend.default.svc.cluster.local"] {
        eventually(&format!("{host} answers"), || async {
            match west.ask_from(CLIENT, Http, (host, 80), "hostname").await {
                Ok(server) if server == "backend" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}

/// Which takes the API server to the kubelet.
async fn a_pod_can_be_looked_into(west: &Cluster) {
    let servers = west.exec(NAMESPACE, "client", &["/agnhost", "dns-server-list"]).await.unwrap();
    assert!(servers.trim().ends_with(".10"), "{servers}");
    let failed = west.exec(NAMESPACE, "client", &["/agnhost", "no-such-command"]).await.unwrap_err();
    assert!(failed.contains("no-such-command"), "{failed}");
    let log = west.api::<Pod>(NAMESPACE).logs("client", &LogParams::default()).await.unwrap();
    assert!(log.contains("Started HTTP server"), "{log}");
}

/// Statically linked, without anything else in its image.
async fn an_image_that_was_loaded_runs(fleet: &Fleet, west: &Cluster) {
    let program = fleet::program::static_path("pause", "pause").await.unwrap();
    let image = Image { reference: "localhost/loaded:1".into(), ..Image::of(program, "1") };
    let archive = fleet.dir().join("images").join("loaded.tar");
    image.write(&archive).unwrap();
    fleet.load(&[archive]).await.unwrap();
    let container = json!({"name": "loaded", "image": image.reference, "imagePullPolicy": "Never"});
    let pod = json!({"metadata": {"name": "loaded"}, "spec": {"containers": [container]}});
    let _: Pod = west.create(NAMESPACE, pod).await;
    eventually("the image that was loaded runs", || async {
        let status = west.api::<Pod>(NAMESPACE).get("loaded").await.unwrap().status.unwrap();
        if status.phase.as_deref() == Some("Running") { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

async fn pods_outlive_what_runs_them(cluster: &fleet::Cluster, west: &Cluster) {
    for component in [Component::Kubelet, Component::Containerd, Component::KubeProxy] {
        cluster.kill(component).await.unwrap();
        // A kubelet that has just started says no address of the client for a moment.
        let asked = eventually("the client can be told to ask", || async {
            match west.ask_from(CLIENT, Http, ("backend", 80), "hostname").await {
                Err(Silence::NotAsked(why)) => Err(why),
                asked => Ok(asked),
            }
        })
        .await;
        assert_eq!(asked.unwrap(), "backend", "without {component}");
        cluster.start(component).await.unwrap();
    }
    west.run_server(NAMESPACE, "later").await;
    let client = west.api::<Pod>(NAMESPACE).get("client").await.unwrap().status.unwrap();
    assert_eq!(client.container_statuses.unwrap()[0].restart_count, 0);
}
