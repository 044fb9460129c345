//! What cannot be exported or judged is said where the user looks, and disturbs nobody.

use api::{ServiceName, name, resource_export::ResourceExport};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    audit,
    fixture::{AREA, Cluster, always, eventually, shared},
    seen::{imported, records, says},
};

/// There is an Event of this reason about an object of this name.
async fn event(cluster: &Cluster, namespace: &str, about: &str, reason: &str) -> Result<(), String> {
    let events = cluster.api::<Event>(namespace).list(&ListParams::default()).await.unwrap().items;
    let is = |event: &Event| {
        event.reason.as_deref() == Some(reason)
            && event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(about)
    };
    let reasons: Vec<_> = events.iter().filter_map(|event| event.reason.clone()).collect();
    if events.iter().any(is) { Ok(()) } else { Err(format!("Events: {reasons:?}")) }
}

#[test]
fn what_cannot_be_exported_says_why_and_leaves_no_record() {
    shared(async |world| {
        let ns = world.namespace("invalid", &["east"]).await;
        let east = world.cluster("east");
        let service = |name: &str, rest: Value| {
            let mut object = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
            object["metadata"]["annotations"] = rest["annotations"].clone();
            for (key, value) in rest["spec"].as_object().into_iter().flatten() {
                object["spec"][key] = value.clone();
            }
            object
        };
        let _: k8s_openapi::api::core::v1::Service = east
            .create(
                &ns,
                service("external", json!({"spec": {"type": "ExternalName", "externalName": "example.com"}})),
            )
            .await;
        let imported = json!({"annotations": {"multicluster.antrea.io/imported-service": "true"}});
        let _: k8s_openapi::api::core::v1::Service = east.create(&ns, service("antrea-mc-x", imported)).await;
        let _: k8s_openapi::api::core::v1::Service =
            east.create(&ns, service("headless", json!({"spec": {"clusterIP": "None"}}))).await;
        let wrong = [
            ("nothing", "NoService"),
            ("external", "InvalidServiceType"),
            ("antrea-mc-x", "ImportedService"),
            ("headless", "InvalidServiceType"),
        ];
        for (name, reason) in wrong {
            east.export(&ns, name).await;
            eventually(name, || says(east, (&ns, name), "Valid", "False", reason)).await;
            eventually(name, || says(east, (&ns, name), "Ready", "False", "Pending")).await;
            eventually("its Event", || event(east, &ns, name, reason)).await;
        }
        let (mark, looks) =
            (audit::mark(world), world.metric("freeport-member-east", "freeport_reconcile_total").await);
        always("nothing is written or tried", || async {
            for (name, _) in wrong {
                let records = records(world, &ns, name).await;
                if !records.is_empty() {
                    return Err(format!("{records:?}"));
                }
            }
            Ok(())
        })
        .await;
        let about: Vec<_> =
            audit::writes(world, &mark).into_iter().filter(|w| w.contains(&format!("/{ns}/"))).collect();
        assert_eq!(about, Vec::<String>::new());
        let looked = world.metric("freeport-member-east", "freeport_reconcile_total").await - looks;
        assert!(looked < 500.0, "{looked} looks in three seconds: a storm");
        east.delete_namespace(&ns).await;
    });
}

/// A ResourceExport by an administrator.
fn record(cluster: &str, service: &ServiceName) -> Value {
    json!({
        "apiVersion": "multicluster.crd.antrea.io/v1alpha1",
        "kind": "ResourceExport",
        "metadata": {
            "name": name::service_export(cluster, service),
            "labels": {
                "sourceClusterID": cluster, "sourceNamespace": service.namespace, "sourceName": service.name,
                "sourceKind": "Service",
            },
        },
        "spec": {
            "clusterID": cluster, "namespace": service.namespace, "name": service.name, "kind": "Service",
            "service": {"serviceSpec": {"ports": [{"port": 80, "protocol": "TCP"}]}},
        },
    })
}

async fn failure(world: &crate::fixture::World, record: &str, reason: &str) -> Result<(), String> {
    let record = world.leader().api::<ResourceExport>(AREA).get(record).await.unwrap();
    let conditions = record.status.unwrap_or_default().conditions;
    match conditions.as_slice() {
        [one] if one.type_.as_deref() == Some("Failure") && one.reason.as_deref() == Some(reason) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn records_that_cannot_be_judged_are_reported_and_the_others_go_on() {
    shared(async |world| {
        let ns = world.namespace("bad-records", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let tuple = |name: &str| ServiceName::new(&ns, name);
        let mut no_payload = record("north", &tuple("no-payload"));
        no_payload["spec"]["service"] = Value::Null;
        let mut foreign = record("north", &tuple("foreign"));
        foreign["spec"]["clusterID"] = json!("west");
        let mut mislabelled = record("north", &tuple("mislabelled"));
        mislabelled["metadata"]["labels"]["sourceClusterID"] = json!("west");
        let mut no_slice = record("north", &tuple("no-slice"));
        no_slice["metadata"]["name"] = json!(name::slice_export("north", &tuple("no-slice"), "x"));
        no_slice["metadata"]["labels"]["sourceKind"] = json!("EndpointSlice");
        no_slice["spec"]["kind"] = json!("EndpointSlice");
        let mut bad_slice = no_slice.clone();
        bad_slice["metadata"]["name"] = json!(name::slice_export("north", &tuple("no-slice"), "y"));
        bad_slice["spec"]["endpointSlice"] =
            json!({"addressType": "IPv4", "ports": [], "endpoints": [{"addresses": ["not an address"]}]});
        let mut bad_port = record("north", &tuple("bad-port"));
        bad_port["spec"]["service"]["serviceSpec"]["ports"][0]["port"] = json!(0);
        let bad = [
            (no_payload, "NoPayload"),
            (foreign, "ForeignTuple"),
            (mislabelled, "ForeignTuple"),
            (no_slice, "NoPayload"),
            (bad_slice, "InvalidSlice"),
            (bad_port, "InvalidService"),
        ];
        for (record, reason) in &bad {
            let created: ResourceExport = leader.create(AREA, record.clone()).await;
            let name = created.metadata.name.unwrap();
            eventually(&format!("{name}: {reason}"), || failure(world, &name, reason)).await;
            eventually("its Event", || event(leader, AREA, &name, reason)).await;
        }
        let refused = world.metric("freeport-leader-leader", "freeport_records_refused").await;
        assert!(refused >= 6.0, "{refused}");

        east.exported(&ns, "good", &["10.1.0.1"]).await;
        eventually("others go on", || imported(west, &ns, "good")).await;

        let name = name::service_export("north", &tuple("no-payload"));
        let mended = json!({"spec": {"service": record("north", &tuple("x"))["spec"]["service"]}});
        let exports = leader.api::<ResourceExport>(AREA);
        exports.patch(&name, &PatchParams::default(), &Patch::Merge(&mended)).await.unwrap();
        eventually("mended", || async {
            let record = exports.get(&name).await.unwrap();
            let conditions = record.status.unwrap_or_default().conditions;
            let succeeded = conditions.iter().any(|c| c.type_.as_deref() == Some("Succeeded"));
            if succeeded { Ok(()) } else { Err(format!("{conditions:?}")) }
        })
        .await;
        eventually("and taken in", || imported(west, &ns, "no-payload")).await;
        let withdrawn = json!({"spec": {"service": {"withdrawn": true}}});
        exports.patch(&name, &PatchParams::default(), &Patch::Merge(&withdrawn)).await.unwrap();
        for (record, _) in bad.iter().skip(1) {
            leader.delete::<ResourceExport>(AREA, record["metadata"]["name"].as_str().unwrap()).await;
        }
        east.delete_namespace(&ns).await;
        west.delete_namespace(&ns).await;
    });
}
