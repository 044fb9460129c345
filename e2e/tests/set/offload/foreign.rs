//! What others made before us: a Node under the name of a virtual one, and a policy that refuses its labels.

use api::offload::{namespace::NamespaceOffloading, peer::OffloadPeer};
use e2e::{
    cluster::Cluster,
    forbidden::{forbid, permit},
    seen::event,
    waiting::eventually,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Node};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::world::{OFFLOADING, agreed, offload, peer, peer_says, phase};

pub(super) fn nodes(cluster: &Cluster) -> Api<Node> {
    Api::all(cluster.client.clone())
}

/// Takes back what an administrator said about another cluster, and waits until it is no Node any more.
pub(super) async fn unused(cluster: &Cluster, other: &str) {
    let peers = Api::<OffloadPeer>::all(cluster.client.clone());
    peers.delete(other, &DeleteParams::default()).await.unwrap();
    is_no_node(cluster, other).await;
}

async fn is_no_node(cluster: &Cluster, other: &str) {
    eventually(&format!("{other} is no Node"), || async {
        let there = nodes(cluster).get_opt(&format!("freeport-{other}")).await.unwrap();
        there.map_or(Ok(()), |node| Err(format!("{:?}", node.metadata)))
    })
    .await;
}

#[e2e::test]
fn a_node_that_somebody_else_made_is_left_alone_and_said() {
    OFFLOADING.alone(async |world| {
        let (west, leader) = (world.cluster("west"), world.leader());
        let name = "freeport-leader";
        let labels = json!({"rack": "7"});
        is_no_node(west, "leader").await;
        west.create_cluster_wide::<Node>(json!({"metadata": {"name": name, "labels": labels}})).await;
        peer(leader, "west", json!({"incoming": {}})).await;
        peer(west, "leader", json!({"outgoing": {}})).await;
        peer_says(world, "west", "leader", "NodeRefused").await;
        // Events of what is in no Namespace are in this one.
        eventually("an Event says so", || event(west, "default", "leader", "NodeRefused")).await;
        let ns = world.namespace("beside-a-node", &["west"]).await;
        let term = json!({"matchExpressions": [{"key": "rack", "operator": "Exists"}]});
        offload(world, &ns, json!({"clusterSelector": {"nodeSelectorTerms": [term]}})).await;
        phase(world, &ns, "NoClusterSelected").await;
        let node = nodes(west).get(name).await.unwrap();
        assert_eq!(json!(node.labels())["rack"], "7");
        assert!(!node.labels().contains_key("liqo.io/type"), "{:?}", node.labels());
        let writers: Vec<_> = node.managed_fields().iter().filter_map(|of| of.manager.as_deref()).collect();
        assert!(!writers.iter().any(|writer| writer.starts_with("freeport")), "{writers:?}");
        assert!(west.api::<Lease>("kube-node-lease").get_opt(name).await.unwrap().is_none());

        nodes(west).delete(name, &DeleteParams::default()).await.unwrap();
        peer_says(world, "west", "leader", "Ready").await;
        assert_eq!(json!(nodes(west).get(name).await.unwrap().labels())["liqo.io/type"], "virtual-node");
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        unused(west, "leader").await;
        Api::<OffloadPeer>::all(leader.client.clone())
            .delete("west", &DeleteParams::default())
            .await
            .unwrap();
        world.release(&ns).await;
    });
}

const POLICY: &str = "no-planet";

/// Whether Node `freeport-east` of west may have label `planet`.
async fn is_refused(west: &Cluster, refused: bool) -> Result<(), String> {
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": {"labels": {"planet": "mars"}}}));
    let answer = nodes(west).patch("freeport-east", &dry, &patch).await.map(drop);
    if answer.is_err() == refused { Ok(()) } else { Err(format!("{answer:?}")) }
}

#[e2e::test(real)]
fn a_node_whose_labels_are_refused_says_so_and_is_not_given_up() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["nodes"]});
        let spec = json!({
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "!('planet' in object.metadata.?labels.orValue({}))", "message": "no planets"}],
        });
        forbid(west, POLICY, spec).await;
        eventually("the policy holds", || is_refused(west, true)).await;
        peer(east, "west", json!({"incoming": {"nodeLabels": {"planet": "mars"}}})).await;
        peer_says(world, "west", "east", "NodeRefused").await;
        let peers = Api::<OffloadPeer>::all(west.client.clone());
        let said = peers.get("east").await.unwrap().status.unwrap().conditions;
        assert!(said.iter().any(|said| said.message.contains("no planets")), "{said:?}");
        let leases = west.api::<Lease>("kube-node-lease");
        let renewed = async || leases.get("freeport-east").await.unwrap().spec.unwrap().renew_time.unwrap().0;
        let before = renewed().await;
        eventually("its Lease is renewed", || async {
            let now = renewed().await;
            if now > before { Ok(()) } else { Err(now.to_string()) }
        })
        .await;
        let node = nodes(west).get("freeport-east").await.unwrap();
        assert!(!node.labels().contains_key("planet"), "{:?}", node.labels());
        let conditions = node.status.unwrap().conditions.unwrap_or_default();
        assert!(conditions.iter().any(|of| of.type_ == "Ready" && of.status == "True"), "{conditions:?}");

        permit(west, POLICY).await;
        eventually("the policy is gone", || is_refused(west, false)).await;
        peer_says(world, "west", "east", "Ready").await;
        eventually("its Node has the label", || async {
            let node = nodes(west).get("freeport-east").await.unwrap();
            node.labels().get("planet").map(drop).ok_or_else(|| format!("{:?}", node.labels()))
        })
        .await;
        peer(east, "west", json!({"incoming": {"nodeLabels": {"planet": null}}})).await;
        eventually("it has not any more", || async {
            let node = nodes(west).get("freeport-east").await.unwrap();
            node.labels().get("planet").map_or(Ok(()), |planet| Err(planet.clone()))
        })
        .await;
    });
}
