//! Exports that differ: the oldest one wins, and everybody is told. Tests are named after the rules of the Multi-Cluster Services
//! API that they hold it to.

use std::time::Duration;

use api::mcs::{ServiceExport, ServiceImport};
use e2e::{
    fixture::{CLUSTERS, World, shared},
    seen::{conditions, imported, right},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

/// Ages of exports are told in seconds.
const OLDER: Duration = Duration::from_millis(1100);

/// `web` of east and then of west, exported, with these specs beside port 80.
async fn exported(world: &World, ns: &str, specs: [(&str, Value); 2]) {
    for (cluster, spec) in specs {
        let of = world.cluster(cluster);
        of.service(ns, "web", &[("http", 80)]).await;
        let _: Service = of.patch(ns, "web", &json!({"spec": spec})).await;
        of.export(ns, "web").await;
        tokio::time::sleep(OLDER).await;
    }
}

/// Waits until `Conflict` on the export of each of these has this reason. The messages.
async fn conflicting(world: &World, ns: &str, clusters: &[&str], reason: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for cluster in clusters {
        let message = eventually(&format!("{cluster} is told {reason}"), || async {
            let found = conditions(world.cluster(cluster), ns, "web")
                .await
                .remove("Conflict")
                .ok_or("no Conflict")?;
            if found.reason == reason { Ok(found.message) } else { Err(format!("{found:?}")) }
        })
        .await;
        messages.push(message);
    }
    messages
}

async fn import(world: &World, cluster: &str, ns: &str) -> ServiceImport {
    world.cluster(cluster).api::<ServiceImport>(ns).get("web").await.unwrap()
}

#[e2e::test]
fn r37_r39_all_exporters_are_told_of_all_conflicts_until_there_are_none() {
    shared(async |world| {
        let ns = &world.namespace("conflict", &CLUSTERS).await;
        let sticky = json!({"sessionAffinity": "ClientIP", "internalTrafficPolicy": "Local"});
        exported(world, ns, [("east", json!({})), ("west", sticky)]).await;
        let all = "SessionAffinityConflict,SessionAffinityConfigConflict,InternalTrafficPolicyConflict";
        let messages = conflicting(world, ns, &["east", "west"], all).await;
        for message in &messages {
            for part in
                ["is \"None\", as in cluster east, the oldest export", "cluster west disagrees (1 of 2)"]
            {
                assert!(message.contains(part), "{message}");
            }
        }
        assert!(messages[0].contains("this export agrees with it"), "{}", messages[0]);
        assert!(messages[1].contains("in this export it is \"ClientIP\""), "{}", messages[1]);
        let import = import(world, "leader", ns).await;
        assert_eq!(import.spec.session_affinity.as_deref(), Some("None"), "the oldest one's");

        let agrees = json!({"spec": {"sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}});
        let _: Service = world.cluster("west").patch(ns, "web", &agrees).await;
        conflicting(world, ns, &["east", "west"], "NoConflicts").await;
        let changed = conditions(world.cluster("west"), ns, "web").await;
        assert_eq!(changed["Conflict"].status, "False");
        world.release(ns).await;
    });
}

#[e2e::test]
fn r13_r41_a_port_more_is_a_conflict_and_who_leaves_takes_it_along() {
    shared(async |world| {
        let ns = &world.namespace("superset", &CLUSTERS).await;
        let more = json!({"ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 90}]});
        exported(world, ns, [("east", json!({})), ("west", more)]).await;
        let messages = conflicting(world, ns, &["east", "west"], "PortConflict").await;
        assert!(messages[1].contains("this export has http 80/TCP, admin 90/TCP"), "{}", messages[1]);
        world.cluster("west").unexport(ns, "web").await;
        conflicting(world, ns, &["east"], "NoConflicts").await;
        eventually("the port is gone with its exporter (R-13)", || async {
            let seen = imported(world.leader(), ns, "web").await;
            right(seen, |seen| seen.ports == [("http".to_owned(), 80)]).map(drop)
        })
        .await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn r29_what_an_exporter_says_is_passed_on_literally() {
    shared(async |world| {
        let ns = &world.namespace("literal", &CLUSTERS).await;
        let east = world.cluster("east");
        east.service(ns, "web", &[("http", 80)]).await;
        let spec = json!({
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 77}},
            "trafficDistribution": "PreferClose",
            "internalTrafficPolicy": "Cluster",
        });
        let _: Service = east.patch(ns, "web", &json!({"spec": spec})).await;
        east.export(ns, "web").await;
        for cluster in CLUSTERS {
            eventually(&format!("{cluster} imports"), || imported(world.cluster(cluster), ns, "web")).await;
            let import = serde_json::to_value(import(world, cluster, ns).await.spec).unwrap();
            let derived = world.cluster(cluster).api::<Service>(ns).get("antrea-mc-web").await.unwrap();
            let derived = serde_json::to_value(derived.spec).unwrap();
            for (field, value) in spec.as_object().unwrap() {
                assert_eq!((&import[field], &derived[field]), (value, value), "{field} in {cluster}");
            }
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn r30_exported_labels_and_annotations_come_and_go_and_nothing_else_does() {
    shared(async |world| {
        let ns = &world.namespace("metadata", &CLUSTERS).await;
        let east = world.cluster("east");
        east.service(ns, "web", &[("http", 80)]).await;
        let labelled =
            json!({"metadata": {"labels": {"of-the-service": "x"}, "annotations": {"of-the-service": "x"}}});
        let _: Service = east.patch(ns, "web", &labelled).await;
        let spec =
            json!({"exportedLabels": {"team": "shop", "tier": "1"}, "exportedAnnotations": {"note": "a"}});
        let export = json!({"metadata": {"name": "web", "labels": {"of-the-export": "x"}}, "spec": spec});
        let _: ServiceExport = east.create(ns, export).await;
        let has = async |wanted: &[(&str, &str)], not: &[&str]| {
            eventually("labels and annotations are as exported", || async {
                let import = world.leader().api::<ServiceImport>(ns).get_opt("web").await.unwrap();
                let import = import.ok_or("no ServiceImport")?;
                let all: Vec<_> = import.labels().iter().chain(import.annotations()).collect();
                let is_there = |(key, value): &(&str, &str)| all.iter().any(|(k, v)| k == key && v == value);
                let has_none = not.iter().all(|key| all.iter().all(|(k, _)| k != key));
                if wanted.iter().all(is_there) && has_none { Ok(()) } else { Err(format!("{all:?}")) }
            })
            .await;
        };
        has(&[("team", "shop"), ("tier", "1"), ("note", "a")], &["of-the-service", "of-the-export"]).await;

        let theirs = json!({"metadata": {"labels": {"theirs": "x"}}});
        let _: ServiceImport = world.leader().patch(ns, "web", &theirs).await;
        let spec =
            json!({"spec": {"exportedLabels": {"team": "sales", "tier": null}, "exportedAnnotations": null}});
        let _: ServiceExport = east.patch(ns, "web", &spec).await;
        has(&[("team", "sales"), ("theirs", "x")], &["tier", "note"]).await;
        world.release(ns).await;
    });
}
