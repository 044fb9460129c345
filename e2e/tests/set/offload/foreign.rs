//! What others claim: a Node that somebody else made, and a host that says what it may not.

use std::{collections::BTreeMap, time::Duration};

use api::{
    label::SETTLED,
    name::member_lease,
    offload::{
        map::NamespaceMap,
        namespace::NamespaceOffloading,
        offer::OffloadOffer,
        peer::{OffloadPeer, READY},
        seal::{KEY_LENGTH, PrivateKey},
        shadow_pod::ShadowPod,
    },
};
use cli::objects::access;
use e2e::{
    account::by_token,
    cluster::Cluster,
    fixture::{AREA, SET, World},
    forbidden::{forbid, permit},
    seen::event,
    shared::RUNTIME,
    waiting::eventually,
};
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, Service},
        events::v1::Event,
    },
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    pods::world::{bind_with, is},
    world::{OFFLOADING, agreed, offload, peer, peer_says, phase},
};

fn nodes(cluster: &Cluster) -> Api<Node> {
    Api::all(cluster.client.clone())
}

/// Takes back what an administrator said about another cluster, and waits until it is no Node any more.
async fn unused(cluster: &Cluster, other: &str) {
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

#[test]
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

#[test]
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

const HOST: &str = "rogue";
const MAP: &str = "1.west.rogue";
/// Reserved labels that it claims, and one that it may.
const CLAIMED: [(&str, &str); 5] = [
    ("liqo.io/type", "trusted"),
    ("liqo.io/remote-cluster-id", "east"),
    ("kubernetes.io/hostname", "east"),
    ("node-role.kubernetes.io/control-plane", "true"),
    ("liqo.io/region", "rogue"),
];

/// A host of which no daemon runs: it has its token, and says what it likes.
struct Rogue<'a> {
    world: &'a World,
    client: Client,
    renews: JoinSet<()>,
}

impl<'a> Rogue<'a> {
    async fn joins(world: &'a World) -> Self {
        let leader = world.leader();
        for object in access::objects(SET, HOST, None) {
            let body: DynamicObject = serde_json::from_value(object.body.clone()).unwrap();
            let api = Api::<DynamicObject>::namespaced_with(leader.client.clone(), AREA, &object.resource);
            api.create(&PostParams::default(), &body).await.unwrap();
        }
        let client = by_token(world, "leader", AREA, &access::account(HOST)).await;
        let lease: Lease = serde_json::from_value(json!({
            "metadata": {"name": member_lease(HOST), "annotations": {SETTLED: "true"}},
            "spec": {"holderIdentity": format!("{HOST}/1"), "leaseDurationSeconds": 6},
        }))
        .unwrap();
        let leases = Api::<Lease>::namespaced(client.clone(), AREA);
        eventually("its rights are known", || async {
            leases.create(&PostParams::default(), &lease).await.map(drop).map_err(|error| error.to_string())
        })
        .await;
        let mut renews = JoinSet::new();
        renews.spawn_on(
            async move {
                loop {
                    let now = json!({"spec": {"renewTime": format!("{:.6}", Timestamp::now())}});
                    let name = member_lease(HOST);
                    leases.patch(&name, &PatchParams::default(), &Patch::Merge(now)).await.unwrap();
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            },
            RUNTIME.handle(),
        );
        Self { world, client, renews }
    }

    async fn offers(&self) {
        let key = PrivateKey::read(&[9; KEY_LENGTH]).unwrap().public().to_string();
        let labels = BTreeMap::from(CLAIMED);
        let spec = json!({"host": HOST, "home": "west", "nodeLabels": labels, "publicKey": key,
            "resources": {"cpu": "4", "memory": "8Gi", "pods": "110"}});
        let offer = json!({"metadata": {"name": format!("1.{HOST}.west")}, "spec": spec});
        let offer: OffloadOffer = serde_json::from_value(offer).unwrap();
        let offers = Api::<OffloadOffer>::namespaced(self.client.clone(), AREA);
        offers.create(&PostParams::default(), &offer).await.unwrap();
    }

    /// Answers the map: the twins that it says to have.
    async fn has_twins(&self, twins: Value) {
        let maps = Api::<NamespaceMap>::namespaced(self.client.clone(), AREA);
        let generation = eventually("it is asked", || async {
            let map = maps.get(MAP).await.map_err(|error| error.to_string())?;
            let asked: Vec<_> = map.spec.desired_mapping.keys().cloned().collect();
            let says: Vec<_> =
                twins.as_object().unwrap().iter().filter(|(_, twin)| !twin.is_null()).collect();
            match asked.len() == says.len() {
                true => Ok(map.metadata.generation),
                false => Err(format!("{asked:?}")),
            }
        })
        .await;
        let status = json!({"status": {"currentMapping": twins, "observedGeneration": generation}});
        maps.patch_status(MAP, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Says this of the Pod, once it is asked for it.
    async fn says_of_the_pod(&self, record: &str, is_asked: fn(&ShadowPod) -> bool, status: Value) {
        let records = Api::<ShadowPod>::namespaced(self.client.clone(), AREA);
        eventually("it is asked for the Pod", || async {
            let found = records.get(record).await.map_err(|error| error.to_string())?;
            if is_asked(&found) { Ok(()) } else { Err(format!("{:?}", found.spec.deletion)) }
        })
        .await;
        let status = Patch::Merge(json!({"status": status}));
        records.patch_status(record, &PatchParams::default(), &status).await.unwrap();
    }

    /// Takes everything of it away.
    async fn leaves(mut self) {
        self.renews.shutdown().await;
        let leader = self.world.leader();
        leader.delete::<OffloadOffer>(AREA, &format!("1.{HOST}.west")).await;
        for object in access::objects(SET, HOST, None) {
            let api = Api::<DynamicObject>::namespaced_with(leader.client.clone(), AREA, &object.resource);
            let deleted =
                api.delete(object.body["metadata"]["name"].as_str().unwrap(), &DeleteParams::default()).await;
            // The Secret goes with its ServiceAccount.
            let is_gone = deleted
                .as_ref()
                .is_err_and(|error| matches!(error, kube::Error::Api(status) if status.is_not_found()));
            assert!(deleted.is_ok() || is_gone, "{:?}", deleted.err());
        }
        leader.delete::<Lease>(AREA, &member_lease(HOST)).await;
    }
}

#[test]
fn what_a_hostile_host_claims_shows_nowhere_and_is_said() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        let rogue = Rogue::joins(world).await;
        rogue.offers().await;
        peer(west, HOST, json!({"outgoing": {}})).await;
        peer_says(world, "west", HOST, "Ready").await;
        let node = nodes(west).get("freeport-rogue").await.unwrap();
        let labels = json!(node.labels());
        for (label, value) in [
            ("liqo.io/type", json!("virtual-node")),
            ("liqo.io/remote-cluster-id", json!(HOST)),
            ("kubernetes.io/hostname", json!("freeport-rogue")),
            ("node-role.kubernetes.io/control-plane", Value::Null),
            ("liqo.io/region", json!("rogue")),
        ] {
            assert_eq!(labels[label], value, "{label}");
        }
        its_pods_have_no_impossible_address(world, &rogue).await;
        eventually("the OffloadPeer says which labels it claims", || async {
            let peer = Api::<OffloadPeer>::all(west.client.clone()).get(HOST).await.unwrap();
            let conditions = peer.status.unwrap_or_default().conditions;
            let said = conditions.iter().find(|condition| condition.type_ == READY);
            let is_said = |(label, _): &(&str, &str)| said.is_some_and(|said| said.message.contains(label));
            let (reserved, _) = CLAIMED.split_at(4);
            if reserved.iter().all(is_said) { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        unused(west, HOST).await;
        rogue.leaves().await;
    });
}

async fn its_pods_have_no_impossible_address(world: &World, rogue: &Rogue<'_>) {
    let west = world.cluster("west");
    let ns = world.namespace("lured", &["west"]).await;
    let term = json!({"matchExpressions": [{"key": "liqo.io/region", "operator": "In", "values": [HOST]}]});
    let selector = json!({"nodeSelectorTerms": [term]});
    offload(world, &ns, json!({"podOffloadingStrategy": "Local", "clusterSelector": selector})).await;
    let twin = json!({"remoteNamespace": "lured-west", "phase": "Accepted"});
    rogue.has_twins(json!({&ns: twin})).await;
    phase(world, &ns, "Ready").await;
    let pod = bind_with(west, &ns, "web", json!({"nodeName": "freeport-rogue"})).await;
    let record = format!("{MAP}.{}", pod.uid().unwrap());
    let service = west.api::<Service>("default").get("kubernetes").await.unwrap().spec.unwrap();
    let service = service.cluster_ip.unwrap();
    let addresses = json!([{"ip": "127.0.0.1"}, {"ip": service}]);
    let says = json!({"pod": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "podIPs": addresses}});
    rogue.says_of_the_pod(&record, |record| record.spec.deletion.is_none(), says).await;
    let status = is(world, &ns, "web", "Running", "").await.status.unwrap();
    assert_eq!((status.pod_ip, status.pod_ips), (None, None));
    eventually("an Event names both", || async {
        let events = west.api::<Event>(&ns).list(&ListParams::default()).await.unwrap();
        let notes: Vec<_> = events.into_iter().filter_map(|event| event.note).collect();
        let names_both = |note: &String| note.contains("127.0.0.1") && note.contains(&service);
        if notes.iter().any(names_both) { Ok(()) } else { Err(format!("{notes:?}")) }
    })
    .await;

    west.delete::<NamespaceOffloading>(&ns, "offloading").await;
    rogue.has_twins(json!({&ns: null})).await;
    rogue.says_of_the_pod(&record, |record| record.spec.deletion.is_some(), json!({"deleted": true})).await;
    eventually("the record goes", || async {
        let there = world.leader().api::<ShadowPod>(AREA).get_opt(&record).await.unwrap();
        there.map_or(Ok(()), |there| {
            Err(format!("{:?}; {}", there.spec.deletion, world.log_tail("freeport-member-west")))
        })
    })
    .await;
    world.release(&ns).await;
}
