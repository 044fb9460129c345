//! Issue 38: what cannot be exported as somebody edited it keeps its last valid export, in all clusters and whatever daemon starts again.
//! What is being deleted says so.

use api::mcs::{ServiceExport, ServiceImport};
use e2e::{
    cluster::Cluster,
    daemon::End,
    fixture::{World, alone, shared},
    seen::{Imported, conditions, event, imported, not_imported, right},
    waiting::eventually,
    watched::Watched,
};
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

const EAST: &str = "freeport-member-east";

/// `Ok` with the message if condition `Valid` of `web` has this status and reason.
async fn valid(cluster: &Cluster, ns: &str, status: &str, reason: &str) -> Result<String, String> {
    match conditions(cluster, ns, "web").await.remove("Valid") {
        Some(valid) if (valid.status.as_str(), valid.reason.as_str()) == (status, reason) => {
            Ok(valid.message)
        }
        other => Err(format!("{other:?}")),
    }
}

/// A Pod behind `web` of east is replaced by one with this address: west follows, and nothing else changes there.
async fn follows(world: &World, ns: &str, before: &Imported, address: &str, port: &str) {
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    east.replace_slice(ns, "web", "web-1", &[address], &[(port, 8080)]).await;
    let after = eventually(&format!("west follows to {address}"), || async {
        let there = format!("{address}:8080");
        right(imported(west, ns, "web").await, |seen| seen.addresses("east") == [there.as_str()])
    })
    .await;
    assert_eq!(
        (&after.vip, &after.ports, &after.clusters, &after.import_uid),
        (&before.vip, &before.ports, &before.clusters, &before.import_uid)
    );
}

#[e2e::test]
fn a_careless_edit_keeps_the_last_valid_export_until_it_is_taken_back() {
    alone(async |world| {
        let ns = &world.namespace("careless", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(ns, "web", &["10.1.0.1"]).await;
        let before = eventually("imported", || async {
            right(imported(west, ns, "web").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        let services = Watched::<Service>::of(west, ns).await;
        let imports = Watched::<ServiceImport>::of(west, ns).await;
        let own = Watched::<ServiceImport>::of(east, ns).await;

        let annotations = |value: Value| json!({"spec": {"exportedAnnotations": value}});
        let _: ServiceExport = east.patch(ns, "web", &annotations(json!({"note": "x".repeat(70_000)}))).await;
        let message = eventually("InvalidExport", || valid(east, ns, "False", "InvalidExport")).await;
        assert!(message.contains("70004 bytes") && message.contains("still served"), "{message}");
        eventually("its Event", || event(east, ns, "web", "InvalidExport")).await;
        follows(world, ns, &before, "10.1.0.2", "http").await;
        let _: ServiceExport = east.patch(ns, "web", &annotations(Value::Null)).await;
        eventually("taken back", || valid(east, ns, "True", "Valid")).await;
        eventually("its Event", || event(east, ns, "web", "Valid")).await;

        // None of these ports is the one that is exported.
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let many = ports((0..251).map(|n| json!({"name": format!("p{n}"), "port": 1000 + n})).collect());
        let _: Service = east.patch(ns, "web", &many).await;
        let message = eventually("TooManyPorts", || valid(east, ns, "False", "TooManyPorts")).await;
        assert!(message.contains("251 ports") && message.contains("still served"), "{message}");
        follows(world, ns, &before, "10.1.0.3", "p0").await;
        for (how, address) in [(End::Stop, "10.1.0.4"), (End::Crash, "10.1.0.5")] {
            world.end(EAST, how).await;
            world.start(EAST).await;
            follows(world, ns, &before, address, "p0").await;
            eventually("and says so still", || valid(east, ns, "False", "TooManyPorts")).await;
            let own = eventually("in its own cluster, too", || imported(east, ns, "web")).await;
            assert_eq!(own.ports, before.ports);
        }
        let _: Service = east.patch(ns, "web", &ports(json!([{"name": "http", "port": 80}]))).await;
        eventually("taken back", || valid(east, ns, "True", "Valid")).await;
        follows(world, ns, &before, "10.1.0.6", "http").await;
        services.nothing_deleted("the Service");
        imports.nothing_deleted("the ServiceImport");
        own.nothing_deleted("the ServiceImport");
        world.release(ns).await;
    });
}

#[e2e::test]
fn what_is_being_deleted_is_not_exported_and_says_so() {
    shared(async |world| {
        let ns = &world.namespace("terminating", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let held = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("imported", || imported(west, ns, "web")).await;
        let _: Service = east.patch(ns, "web", &held(json!(["example.com/held"]))).await;
        east.delete::<Service>(ns, "web").await;
        let message = eventually("the Service", || valid(east, ns, "False", "Terminating")).await;
        assert!(message.starts_with(&format!("Service {ns}/web is being deleted")), "{message}");
        eventually("withdrawn", || not_imported(west, ns, "web")).await;
        let _: Service = east.patch(ns, "web", &held(Value::Null)).await;
        eventually("gone", || valid(east, ns, "False", "NoService")).await;

        east.service(ns, "web", &[("http", 80)]).await;
        eventually("another one", || imported(west, ns, "web")).await;
        let _: ServiceExport = east.patch(ns, "web", &held(json!(["example.com/held"]))).await;
        east.unexport(ns, "web").await;
        let message = eventually("the ServiceExport", || valid(east, ns, "False", "Terminating")).await;
        assert!(message.starts_with("this ServiceExport is being deleted"), "{message}");
        eventually("withdrawn", || not_imported(west, ns, "web")).await;
        let _: ServiceExport = east.patch(ns, "web", &held(Value::Null)).await;
        world.release(ns).await;
    });
}
