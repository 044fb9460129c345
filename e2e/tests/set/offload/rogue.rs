//! A host that says what it may not.

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
    fixture::{AREA, SET, World},
    waiting::eventually,
};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Service, events::v1::Event},
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    foreign::{nodes, unused},
    pods::world::{bind_with, is},
    world::{OFFLOADING, offload, peer, peer_says, phase},
};

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
        renews.spawn(async move {
            loop {
                let now = json!({"spec": {"renewTime": format!("{:.6}", Timestamp::now())}});
                let name = member_lease(HOST);
                leases.patch(&name, &PatchParams::default(), &Patch::Merge(now)).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
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

#[e2e::test]
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
