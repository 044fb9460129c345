//! A member that exports ClusterIPs instead of Pods.

use k8s_openapi::api::core::v1::Service;
use serde_json::json;

use e2e::{
    daemon::End,
    fixture::{CLUSTERS, alone},
    seen::{conditions, imported, right, says},
    waiting::eventually,
};

const EAST: &str = "freeport-member-east";

#[e2e::test(real)]
fn a_cluster_ip_is_exported_as_the_one_endpoint_and_a_headless_service_cannot_be() {
    alone(async |world| {
        let ns = &world.namespace("clusterip", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(ns, "web", &["10.1.0.1", "10.1.0.2"]).await;
        eventually("its Pods", || async {
            right(imported(west, ns, "web").await, |seen| seen.addresses("east").len() == 2)
        })
        .await;
        world.end(EAST, End::Stop).await;
        let daemon = world.real().daemons.iter().find(|daemon| daemon.spec.name == EAST).unwrap();
        world.real().fleet.run(daemon.spec.clone().args(["--endpoint-ip", "cluster"])).await.unwrap();
        let service = east.api::<Service>(ns).get("web").await.unwrap();
        let address = format!("{}:80", service.spec.unwrap().cluster_ip.unwrap());
        eventually("its ClusterIP", || async {
            right(imported(west, ns, "web").await, |seen| seen.addresses("east") == [address.as_str()])
        })
        .await;
        let own = imported(east, ns, "web").await.unwrap();
        assert_eq!(own.addresses("east").len(), 2, "east itself reaches its Pods");

        let headless =
            json!({"metadata": {"name": "db"}, "spec": {"clusterIP": "None", "ports": [{"port": 5432}]}});
        let _: Service = east.create(ns, headless).await;
        east.export(ns, "db").await;
        eventually("it says so", || says(east, (ns, "db"), "Valid", "False", "InvalidServiceType")).await;
        let said = conditions(east, ns, "db").await.remove("Valid").unwrap().message;
        assert!(said.contains("--endpoint-ip cluster") && said.contains("headless"), "{said}");

        world.end(EAST, End::Stop).await;
        world.start(EAST).await;
        eventually("exported with its Pods", || says(east, (ns, "db"), "Ready", "True", "Exported")).await;
        eventually("its Pods again", || async {
            right(imported(west, ns, "web").await, |seen| seen.addresses("east").len() == 2)
        })
        .await;
        for service in ["web", "db"] {
            east.unexport(ns, service).await;
        }
        world.release(ns).await;
    });
}
