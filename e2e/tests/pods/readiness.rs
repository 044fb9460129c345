//! A Pod that stops being ready gets no more traffic from other clusters.

use std::{cell::Cell, collections::BTreeSet, time::Instant};

use e2e::{ask::Protocol::Http, cluster::Cluster, say::say, waiting::eventually};
use fleet::agnhost;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::pods::world::{CLIENT, Pods, shared};

const NS: &str = "ready";
/// A condition of our own, which the kubelet waits for: so the test says when a Pod is ready.
const GATE: &str = "test.freeport.dev/wanted";

#[e2e::test]
fn a_pod_that_is_not_ready_gets_no_traffic() {
    shared(async |world| {
        world.namespace_everywhere(NS).await;
        let east = world.cluster("east");
        let spec = agnhost::service_spec("web");
        let _: Service = east.create(NS, json!({"metadata": {"name": "web"}, "spec": spec})).await;
        for name in ["stays", "goes"] {
            let metadata = json!({"name": name, "labels": {"app": "web"}});
            let mut spec = agnhost::pod_spec();
            spec["readinessGates"] = json!([{"conditionType": GATE}]);
            let _: Pod = east.create(NS, json!({"metadata": metadata, "spec": spec})).await;
            is_wanted(east, name, true).await;
        }
        east.servers(NS, "web", 2).await;
        east.export(NS, "web").await;
        let vip = world.vip("west", NS, "web").await;
        let both = BTreeSet::from(["goes".to_owned(), "stays".to_owned()]);
        world.answer("west", Http, (&vip, 80), &both).await;

        for turn in 1..=3 {
            let begun = Instant::now();
            is_wanted(east, "goes", false).await;
            let last = last_answer(world, &vip, "goes").await;
            let after = last.saturating_duration_since(begun).as_secs_f64();
            say(&format!(
                "{turn}: the last answer of a Pod that stopped being ready came after {after:.2} s"
            ));
            is_wanted(east, "goes", true).await;
            world.answer("west", Http, (&vip, 80), &both).await;
        }
        world.release(NS).await;
    });
}

async fn is_wanted(cluster: &Cluster, pod: &str, wanted: bool) {
    let status = if wanted { "True" } else { "False" };
    let condition = json!({"status": {"conditions": [{"type": GATE, "status": status}]}});
    let patch = Patch::Strategic(condition);
    cluster.api::<Pod>(NS).patch_status(pod, &PatchParams::default(), &patch).await.unwrap();
}

/// When a server answered for the last time: it has stopped when all of many questions go to others.
async fn last_answer(world: &Pods, vip: &str, server: &str) -> Instant {
    let (last, client) = (Cell::new(Instant::now()), world.cluster("west"));
    eventually(&format!("{server} gets no more traffic"), || async {
        match client.answers_to(CLIENT, Http, (vip, 80)).await {
            Ok(answers) if !answers.contains(server) => Ok(()),
            other => {
                last.set(Instant::now());
                Err(format!("{other:?}"))
            }
        }
    })
    .await;
    last.get()
}
