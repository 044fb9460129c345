//! A database that is spread over clusters: its members find each other by the names of single Pods.

use std::collections::BTreeSet;

use e2e::{
    ask::{Protocol::Http, Silence},
    cluster::Cluster,
    dns::{Type, expected::records},
    waiting::eventually,
};
use fleet::{
    agnhost::{HTTP_PORT, pod_spec},
    dns::clusterset_name,
};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Service};
use serde_json::json;

use crate::pods::world::shared;

const NS: &str = "database";

/// Members `db-<first>` and on, so that no two clusters have one of the same name.
async fn run_members(cluster: &Cluster, first: usize, replicas: usize) {
    let labels = json!({"app": "db"});
    let ports = json!([{"name": "http", "port": HTTP_PORT}]);
    let spec = json!({"clusterIP": "None", "selector": labels, "ports": ports});
    let _: Service = cluster.create(NS, json!({"metadata": {"name": "db"}, "spec": spec})).await;
    let spec = json!({
        "serviceName": "db",
        "replicas": replicas,
        "ordinals": {"start": first},
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
    });
    let _: StatefulSet = cluster.create(NS, json!({"metadata": {"name": "db"}, "spec": spec})).await;
    cluster.servers(NS, "db", replicas).await;
    cluster.export(NS, "db").await;
}

async fn scale(cluster: &Cluster, replicas: usize) {
    let _: StatefulSet = cluster.patch(NS, "db", &json!({"spec": {"replicas": replicas}})).await;
}

/// `by` gets an answer of `member` by its own name.
async fn finds(by: (&Cluster, &str), member: (&str, &str)) {
    let ((cluster, asking), (name, server)) = (by, member);
    eventually(&format!("{asking} of {} finds {name}", cluster.name), || async {
        match cluster.ask_from((NS, asking), Http, (name, HTTP_PORT), "hostname").await {
            Ok(answer) if answer == server => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[e2e::test]
fn r68_members_of_a_stateful_set_in_two_clusters_find_each_other_and_who_comes_back() {
    shared(async |world| {
        world.namespace_everywhere(NS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        tokio::join!(run_members(east, 0, 2), run_members(west, 2, 1));
        let service = clusterset_name(NS, "db");
        let members = [(east, "db-0"), (east, "db-1"), (west, "db-2")];
        let name_of = |(cluster, pod): &(&Cluster, &str)| format!("{pod}.{}.{service}", cluster.name);
        for by in members {
            for member in members {
                finds(by, (&name_of(&member), member.1)).await;
            }
        }
        // Each cluster's DNS server tells just what its slices say.
        for cluster in [east, west] {
            let expected = records(cluster, NS, "db").await;
            let pods: BTreeSet<_> = expected[&(service.clone(), Type::A)].clone();
            assert_eq!(pods.len(), 3, "{expected:?}");
            for ((name, type_), wanted) in &expected {
                cluster.answers(name, *type_, |answer| answer.is(wanted)).await;
            }
        }

        let gone = name_of(&members[2]);
        scale(west, 0).await;
        for (cluster, by) in [members[0], members[1]] {
            eventually(&format!("{gone} is no name for {by}"), || async {
                match cluster.ask_from((NS, by), Http, (&gone, HTTP_PORT), "hostname").await {
                    Err(Silence::NoAnswer(why)) if why.contains("no such host") => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
            finds((cluster, by), (&name_of(&members[0]), "db-0")).await;
        }
        east.answers(&service, Type::A, |answer| answer.records.len() == 2).await;

        scale(west, 1).await;
        west.servers(NS, "db", 1).await;
        for by in members {
            for member in members {
                finds(by, (&name_of(&member), member.1)).await;
            }
        }
        world.release(NS).await;
    });
}
