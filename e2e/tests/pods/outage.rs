//! A home whose leader is gone for two minutes and whose webhook is killed: its Nodes stay as they are, Pods do not move, and those of
//! Namespaces that are not offloaded are created as ever. Meanwhile the webhook of another cluster gets new certificates.
//! Last, one whose authority is lost is trusted again when `freeport join` is done.

use std::time::{Duration, Instant};

use e2e::{
    fixture::{SET, SYSTEM},
    say::say,
    shell::shell,
    waiting::{eventually, throughout},
    watched::Watched,
    webhook::SECRET,
};
use fleet::{Component, program};
use futures::future::join_all;
use k8s_openapi::api::{
    admissionregistration::v1::MutatingWebhookConfiguration,
    apps::v1::Deployment,
    core::v1::{Node, Pod, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::pods::{
    certificates::{is_placed, no_pod_is_refused_while_they_change},
    offload::{EAST, agreed, offloaded, region},
    world::{Pods, alone},
};

/// How long the leader is gone: longer than Kubernetes lets a Node be silent (50 s), and than anybody waits for anybody else.
const OUTAGE: Duration = Duration::from_secs(120);
/// How many replicas of the webhook are killed.
const KILLED: usize = 6;
/// Between two rounds of what is done all the time.
const PAUSE: Duration = Duration::from_millis(250);
const WEBHOOK_NAME: &str = "freeport-webhook";
const WEBHOOK: &str = "app.kubernetes.io/name=freeport-webhook";
const NODE: &str = "freeport-east";

#[e2e::test]
fn a_lost_leader_moves_no_pod_and_a_lost_webhook_stops_nobody_else() {
    // Certificates change whether anybody leads or not, and both tests wait more than they work.
    alone(async |world| {
        tokio::join!(outage(world), no_pod_is_refused_while_they_change(world));
    });
}

async fn outage(world: &Pods) {
    agreed(world).await;
    let (west, east) = (world.cluster("west"), world.cluster("east"));
    let (ns, plain) = ("outage", "bystander");
    let selector = json!({"nodeSelectorTerms": [region(EAST.1)]});
    offloaded(world, ns, json!({"podOffloadingStrategy": "Remote", "clusterSelector": selector})).await;
    world.namespace(plain, &["west"]).await;
    west.run_service(ns, "web", 2).await;
    let (here, there) =
        (Watched::<Pod>::of(west, ns).await, Watched::<Pod>::of(east, &format!("{ns}-west")).await);
    let nodes = Watched::<Node>::of_all(west).await;

    let all_stay = || async {
        nodes.each(|node| assert!(node.name_any() != NODE || is_ready(node), "{node:?}"));
        nodes.nothing_deleted("no Node goes");
        here.nothing_deleted("no Pod goes at home");
        there.nothing_deleted("no Pod goes at the host");
        Ok(())
    };
    let leader = world.real().fleet.cluster("leader").unwrap();
    leader.kill(Component::ApiServer).await.unwrap();
    let begun = Instant::now();
    let created = kill_webhooks(world, plain).await;
    without_webhooks(world, ns, plain).await;
    let rest = OUTAGE.saturating_sub(begun.elapsed());
    throughout(rest, "Nodes and Pods stay while the leader is gone", all_stay).await;
    leader.start(Component::ApiServer).await.unwrap();
    say(&format!("{created} Pods created while the webhooks of west were killed"));

    let _: Deployment = west.patch(ns, "web", &json!({"spec": {"replicas": 3}})).await;
    west.servers(ns, "web", 3).await;
    all_stay().await.unwrap();
    joining_waits_until_it_is_trusted(world, ns).await;
    for namespace in [ns, plain] {
        world.release(namespace).await;
    }
}

/// Kills each replica as soon as it runs, and creates Pods where nothing is offloaded: how many.
async fn kill_webhooks(world: &Pods, plain: &str) -> usize {
    let west = world.cluster("west");
    let webhooks = west.api::<Pod>(SYSTEM);
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let (mut created, mut killed) = (0, 0);
    while killed < KILLED {
        let there = webhooks.list(&ListParams::default().labels(WEBHOOK)).await.unwrap();
        let runs =
            |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        let names: Vec<_> = there.iter().filter(runs).map(ResourceExt::name_any).collect();
        join_all(names.iter().map(|name| webhooks.delete(name, &at_once))).await;
        killed += names.len();
        west.try_pod(plain).await.unwrap();
        created += 1;
        tokio::time::sleep(PAUSE).await;
    }
    created
}

/// Where no replica runs, Pods of the offloaded Namespace are refused, and no others.
async fn without_webhooks(world: &Pods, offloaded: &str, plain: &str) {
    let west = world.cluster("west");
    let replicas = async |number: u8| {
        let _: Deployment = west.patch(SYSTEM, WEBHOOK_NAME, &json!({"spec": {"replicas": number}})).await;
    };
    replicas(0).await;
    eventually("Pods of the offloaded Namespace are refused", || async {
        match west.try_pod(offloaded).await {
            Err(why) if why.contains("failed calling webhook \"pod.mutate.liqo.io\"") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    west.try_pod(plain).await.unwrap();
    replicas(2).await;
}

/// With the Secret and the configuration the authority is lost that signed what the webhook serves.
async fn joining_waits_until_it_is_trusted(world: &Pods, offloaded: &str) {
    let west = world.cluster("west");
    let configurations = Api::<MutatingWebhookConfiguration>::all(west.client.clone());
    configurations.delete(WEBHOOK_NAME, &DeleteParams::default()).await.unwrap();
    west.delete::<Secret>(SYSTEM, SECRET).await;
    let freeport = [program::path("cli", "freeport").await.unwrap()];
    let join = format!(
        "freeport join --offload --clusterset {SET} --cluster-id west --context west --leader-context leader"
    );
    let said = shell(&world.real().fleet, &freeport, &join).await;
    let pod = west.try_pod(offloaded).await.unwrap_or_else(|why| panic!("{why}; {said}"));
    assert!(is_placed(&pod), "{:?}; {said}", pod.spec);
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
