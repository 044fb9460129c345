//! A Deployment of one cluster whose Pods run in another, by the commands of docs/offload.md.

use std::{collections::BTreeSet, path::PathBuf};

use api::offload::{
    label::{TYPE, VIRTUAL_NODE},
    namespace::{NAME, NamespaceOffloading, PLACEMENT_ENFORCED},
    peer::OffloadPeer,
};
use e2e::{ask::Protocol::Http, cluster::Cluster, shell::shell, waiting::eventually};
use fleet::{
    agnhost::{HTTP_PORT, ready_address, service_spec},
    images, program,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Event, Namespace, Node, Pod, Service},
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::pods::world::{Pods, shared};

const NS: &str = "store";
const TWIN: &str = "store-west";

/// Hosts of west and their regions.
pub(super) const EAST: (&str, &str) = ("east", "us-west-1");
pub(super) const LEADER: (&str, &str) = ("leader", "eu-central-1");

/// Who says what clusters may do, says it alone: what two say at once of the same pair, one of them says in vain.
static CONSENT: Mutex<()> = Mutex::const_new(());

/// A term that selects the hosts of this region.
pub(super) fn region(region: &str) -> Value {
    json!({"matchExpressions": [{"key": "liqo.io/region", "operator": "In", "values": [region]}]})
}

/// [`EAST`] and [`LEADER`] are Nodes of west.
pub(super) async fn agreed(world: &Pods) {
    let _alone = CONSENT.lock().await;
    let freeport = [program::path("cli", "freeport").await.unwrap()];
    for (host, region) in [EAST, LEADER] {
        let commands = format!(
            "freeport offload accept west --context {host} --label liqo.io/region={region}\n\
             freeport offload use {host} --context west"
        );
        shell(&world.real().fleet, &freeport, &commands).await;
    }
}

/// A new Namespace of west that is offloaded so, as soon as its Pods are placed.
pub(super) async fn offloaded(world: &Pods, namespace: &str, spec: Value) {
    let west = world.cluster("west");
    west.create_namespace(namespace).await;
    let object = json!({"metadata": {"name": NAME}, "spec": spec});
    let _: NamespaceOffloading = west.create(namespace, object).await;
    eventually(&format!("{namespace} is offloaded"), || async {
        let offloading = west.api::<NamespaceOffloading>(namespace).get(NAME).await;
        let status = offloading.map_err(|error| error.to_string())?.status.unwrap_or_default();
        let placed = status.conditions.iter().find(|condition| condition.type_ == PLACEMENT_ENFORCED);
        let is_placed = placed.is_some_and(|condition| condition.status == "True");
        match is_placed && status.offloading_phase.as_deref() == Some("Ready") {
            true => Ok(()),
            false => Err(format!("{status:?}")),
        }
    })
    .await;
}

/// The commands of "First steps": those before the last, which ends it, and the last.
fn commands() -> (String, String) {
    let docs = include_str!("../../../docs/offload.md");
    let (_, commands) = docs.split_once("## First steps").unwrap();
    let (_, commands) = commands.split_once("```\n").unwrap();
    let (commands, _) = commands.split_once("```").unwrap();
    let server = format!("--image={} -- /agnhost netexec --http-port={HTTP_PORT}", images::agnhost());
    assert!(commands.contains(&server), "the nodes have {server}");
    let mut lines: Vec<_> = commands.lines().collect();
    let last = lines.pop().unwrap();
    assert!(last.starts_with("freeport unoffload"), "{last}");
    (lines.join("\n"), last.to_owned())
}

/// The ready Pods of `web`: names, uids, and the Node of each.
async fn web(cluster: &Cluster, namespace: &str) -> Result<BTreeSet<(String, String, String)>, String> {
    let params = ListParams::default().labels("app=web");
    let pods = cluster.api::<Pod>(namespace).list(&params).await.map_err(|error| error.to_string())?;
    let told = |pod: &Pod| (pod.name_any(), pod.spec.as_ref().unwrap().node_name.clone(), pod.status.clone());
    if pods.iter().any(|pod| ready_address(pod).is_none()) {
        return Err(format!("{:?}", pods.iter().map(told).collect::<Vec<_>>()));
    }
    let of = |pod: Pod| (pod.name_any(), pod.uid().unwrap(), pod.spec.unwrap().node_name.unwrap());
    Ok(pods.into_iter().map(of).collect())
}

fn names(pods: &BTreeSet<(String, String, String)>) -> BTreeSet<String> {
    pods.iter().map(|(name, _, _)| name.clone()).collect()
}

/// The Pods of `web` at home and at the host, once there are so many of the same names.
async fn both(world: &Pods, number: usize) -> [BTreeSet<(String, String, String)>; 2] {
    eventually(&format!("{number} Pods run in {TWIN}"), || async {
        let (here, there) = (web(world.cluster("west"), NS).await?, web(world.cluster("east"), TWIN).await?);
        let is_remote = here.iter().all(|(_, _, node)| node == "freeport-east");
        match is_remote && here.len() == number && names(&here) == names(&there) {
            true => Ok([here, there]),
            false => Err(format!("{here:?}, {there:?}")),
        }
    })
    .await
}

#[e2e::test]
fn a_deployment_runs_in_another_cluster_by_the_commands_of_the_docs() {
    shared(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        west.create_namespace(NS).await;
        let freeport = [program::path("cli", "freeport").await.unwrap()];
        let (commands, unoffload) = commands();
        let alone = CONSENT.lock().await;
        shell(&world.real().fleet, &freeport, &commands).await;
        drop(alone);
        let [here, there] = both(world, 3).await;
        virtual_nodes_have_a_range(west).await;

        asks_before_twins_go(world, &freeport).await;

        let service = json!({"metadata": {"name": "web"}, "spec": service_spec("web")});
        let _: Service = west.create(NS, service).await;
        world.answer("west", Http, ("web.store.svc.cluster.local", 80), &names(&here)).await;

        let (name, uid, _) = there.first().unwrap();
        east.delete::<Pod>(TWIN, name).await;
        let again = eventually("the Pod that was deleted there is made again", || async {
            let [here_now, there_now] = both(world, 3).await;
            let is_other = there_now.iter().all(|(_, now, _)| now != uid);
            if is_other { Ok(here_now) } else { Err(format!("{there_now:?}")) }
        })
        .await;
        assert_eq!(again, here, "and at home it is the same");

        let one = json!({"spec": {"replicas": 1}});
        let _: Deployment = west.patch(NS, "web", &one).await;
        both(world, 1).await;

        shell(&world.real().fleet, &freeport, &unoffload).await;
        let twins = Api::<Namespace>::all(east.client.clone());
        assert!(twins.get_opt(TWIN).await.unwrap().is_none());
        // Not a moment later: it was made before the twin went.
        let pods = west.api::<Pod>(NS).list(&ListParams::default().labels("app=web")).await.unwrap();
        let at_home = pods.iter().filter(|pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node.is_some_and(|node| node != "freeport-east") && ready_address(pod).is_some()
        });
        assert_eq!(at_home.count(), 1, "the Deployment has another Pod, at home: {:?}", pods.items);
        west.delete_namespace(NS).await;
    });
}

/// Kubernetes has a range of Pod addresses for each virtual Node, and does not say again and again that it has none.
async fn virtual_nodes_have_a_range(cluster: &Cluster) {
    let nodes = Api::<Node>::all(cluster.client.clone());
    eventually("each virtual Node has a range of addresses", || async {
        let virtual_ones = ListParams::default().labels(&format!("{TYPE}={VIRTUAL_NODE}"));
        let nodes = nodes.list(&virtual_ones).await.map_err(|error| error.to_string())?;
        let has_none = |node: &&Node| node.spec.as_ref().is_none_or(|spec| spec.pod_cidr.is_none());
        let without: Vec<_> = nodes.iter().filter(has_none).map(ResourceExt::name_any).collect();
        if without.is_empty() { Ok(()) } else { Err(format!("{without:?}")) }
    })
    .await;
    let refused = ListParams::default().fields("reason=CIDRNotAvailable");
    let refused = Api::<Event>::all(cluster.client.clone()).list(&refused).await.unwrap();
    let of = |event: &Event| event.involved_object.name.clone().unwrap_or_default();
    let refused: Vec<_> = refused.iter().map(of).filter(|node| node.starts_with("freeport-")).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

/// What would take the twin away says so, and changes nothing without `--yes`.
async fn asks_before_twins_go(world: &Pods, freeport: &[PathBuf]) {
    let west = world.cluster("west");
    let peers = Api::<OffloadPeer>::all(west.client.clone());
    let before = (
        peers.get("east").await.unwrap().spec,
        west.api::<NamespaceOffloading>(NS).get(NAME).await.unwrap().spec,
    );
    for command in [
        "! freeport offload use east --context west --remove 2>&1",
        "! freeport offload namespace store --context west --selector liqo.io/region=nowhere 2>&1",
    ] {
        let said = shell(&world.real().fleet, freeport, command).await;
        for part in ["Namespace store-west goes in east", "run it again with --yes"] {
            assert!(said.contains(part), "{command}: {said}");
        }
    }
    let now = (
        peers.get("east").await.unwrap().spec,
        west.api::<NamespaceOffloading>(NS).get(NAME).await.unwrap().spec,
    );
    assert_eq!(now, before);
}
