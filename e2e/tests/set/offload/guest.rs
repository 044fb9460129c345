//! Cluster `south`, a home for which no daemon runs: what it writes into the Common Area, these tests write.

use std::collections::BTreeMap;

use api::offload::{
    map::NamespaceMap,
    offer::OffloadOffer,
    peer::OffloadPeer,
    seal::{KEY_LENGTH, PrivateKey, PublicKey, seal},
    shadow_pod::{ACCEPTED, ShadowPod, ShadowPodSpec, ShadowPodStatus},
    travel::Travelling,
};
use e2e::{
    fixture::{AREA, World},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::world::{gone, peer};

/// The map of its twins in `east`.
pub(super) const MAP: &str = "1.south.east";

/// Cluster `south` with one Namespace that has a twin in `east`.
pub(super) struct Guest<'a> {
    world: &'a World,
    /// The twin.
    pub(super) twin: String,
    key: PublicKey,
}

impl<'a> Guest<'a> {
    /// Namespace `namespace` of `south` gets its twin.
    pub(super) async fn new(world: &'a World, namespace: &str) -> Self {
        peer(world.cluster("east"), "south", json!({"incoming": {}})).await;
        let twin = format!("{namespace}-south");
        let spec = json!({"origin": "south", "destination": "east", "desiredMapping": {namespace: twin}});
        let map = json!({"metadata": {"name": MAP}, "spec": spec});
        let _: NamespaceMap = world.leader().create(AREA, map).await;
        eventually("the twin is accepted", || async {
            let map = world.leader().api::<NamespaceMap>(AREA).get(MAP).await.unwrap();
            let current = map.status.unwrap_or_default().current_mapping;
            match current.get(namespace).is_some_and(|entry| entry.phase == "Accepted") {
                true => Ok(()),
                false => Err(format!("{current:?}; {}", log(world))),
            }
        })
        .await;
        let key = eventually("its key is in the offer", || async {
            let offers = world.leader().api::<OffloadOffer>(AREA);
            let offer = offers.get("1.east.south").await.map_err(|error| error.to_string())?;
            offer.spec.public_key.parse().map_err(|error| format!("{error}: {:?}", offer.spec))
        })
        .await;
        Self { world, twin, key }
    }

    /// The key of `east`, to which it seals.
    pub(super) fn key(&self) -> PublicKey {
        self.key.clone()
    }

    /// What it asks for as the Pod of this name and uid.
    pub(super) fn asks(&self, pod: &str, uid: &str, spec: Value) -> ShadowPodSpec {
        self.asks_in(&self.twin, pod, uid, spec, &self.key)
    }

    /// The same in another Namespace, and sealed to another key.
    pub(super) fn asks_in(
        &self,
        namespace: &str,
        pod: &str,
        uid: &str,
        spec: Value,
        key: &PublicKey,
    ) -> ShadowPodSpec {
        let mut asked = ShadowPodSpec {
            origin: "south".into(),
            destination: "east".into(),
            namespace: namespace.into(),
            pod: pod.into(),
            uid: uid.into(),
            ..ShadowPodSpec::default()
        };
        let labels = [("app".to_owned(), "web".to_owned())].into();
        let content = Travelling { labels, annotations: [].into(), spec };
        let content = serde_json::to_vec(&content).unwrap();
        asked.sealed = seal(&content, &asked.about(), key, &own_key()).unwrap();
        asked
    }

    /// Writes the record; its name.
    pub(super) async fn write(&self, spec: &ShadowPodSpec) -> String {
        let record = json!({"metadata": {"name": spec.name()}, "spec": spec});
        let _: ShadowPod = self.world.leader().create(AREA, record).await;
        spec.name()
    }

    /// Asks for the deletion of the Pod.
    pub(super) async fn take_back(&self, record: &str, grace: i32) {
        let deletion = json!({"spec": {"deletion": {"gracePeriodSeconds": grace}}});
        let _: ShadowPod = self.world.leader().patch(AREA, record, &deletion).await;
    }

    pub(super) async fn status(&self, record: &str) -> Result<ShadowPodStatus, String> {
        let record = self.world.leader().api::<ShadowPod>(AREA).get(record).await;
        Ok(record.map_err(|error| error.to_string())?.status.unwrap_or_default())
    }

    /// Waits until the host says this of the record; with which words.
    pub(super) async fn is_told(&self, record: &str, reason: &str) -> String {
        eventually(&format!("{record} is told {reason}"), || async {
            let status = self.status(record).await?;
            let accepted = status.conditions.iter().find(|c| c.type_ == ACCEPTED && c.reason == reason);
            accepted.map(|c| c.message.clone()).ok_or_else(|| format!("{status:?}; {}", log(self.world)))
        })
        .await
    }

    /// Waits until the Pod is in this phase, as far as its home knows.
    pub(super) async fn is_in(&self, record: &str, phase: &str) -> ShadowPodStatus {
        eventually(&format!("{record} is {phase}"), || async {
            let status = self.status(record).await?;
            let said = status.pod.as_ref().and_then(|pod| pod.phase.clone());
            if said.as_deref() == Some(phase) {
                Ok(status)
            } else {
                Err(format!("{status:?}; {}", log(self.world)))
            }
        })
        .await
    }

    /// Waits until nothing of the Pod is left, as the host says.
    pub(super) async fn is_deleted(&self, record: &str) {
        eventually(&format!("{record} is deleted"), || async {
            let status = self.status(record).await?;
            if status.deleted { Ok(()) } else { Err(format!("{status:?}; {}", log(self.world))) }
        })
        .await;
    }

    /// Pods of the twin.
    pub(super) fn pods(&self) -> Api<Pod> {
        self.world.cluster("east").api(&self.twin)
    }

    /// Says of the Pod what a kubelet would.
    pub(super) async fn kubelet_says(&self, pod: &str, status: &Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.pods().patch_status(pod, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Takes everything back.
    pub(super) async fn leave(self, records: &[&str]) {
        let leader = self.world.leader();
        for record in records {
            leader.delete::<ShadowPod>(AREA, record).await;
        }
        self.give_up().await;
        // The leader may have been first.
        let deleted = leader.api::<NamespaceMap>(AREA).delete(MAP, &DeleteParams::default()).await;
        assert!(deleted.is_ok() || leader.api::<NamespaceMap>(AREA).get_opt(MAP).await.unwrap().is_none());
        self.is_forgotten().await;
    }

    /// Wants nothing any more, until its twin is gone.
    pub(super) async fn give_up(&self) {
        self.wants_nothing().await;
        gone(self.world, "east", &self.twin).await;
    }

    /// Withdraws all that is in its map.
    pub(super) async fn wants_nothing(&self) {
        let leader = self.world.leader();
        let map = leader.api::<NamespaceMap>(AREA).get(MAP).await.unwrap();
        let names = map.spec.desired_mapping.into_keys();
        let none: serde_json::Map<_, _> = names.map(|name| (name, Value::Null)).collect();
        let withdrawn: BTreeMap<_, _> = none.keys().map(|name| (name, map.metadata.generation)).collect();
        let spec = json!({"desiredMapping": none, "withdrawn": withdrawn});
        let _: NamespaceMap = leader.patch(AREA, MAP, &json!({"spec": spec})).await;
    }

    /// Its host does not accept it any more.
    pub(super) async fn is_forgotten(&self) {
        let peers = Api::<OffloadPeer>::all(self.world.cluster("east").client.clone());
        peers.delete("south", &DeleteParams::default()).await.unwrap();
    }
}

fn own_key() -> PrivateKey {
    PrivateKey::read(&[7; KEY_LENGTH]).unwrap()
}

fn log(world: &World) -> String {
    world.log_tail("freeport-member-east")
}

/// A Pod of one container.
pub(super) fn plain() -> Value {
    json!({"containers": [{"name": "web", "image": "example.com/web:1"}], "terminationGracePeriodSeconds": 1})
}
