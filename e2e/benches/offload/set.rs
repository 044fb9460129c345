//! A ClusterSet whose members offload, and what its users do.

use std::{collections::HashMap, sync::Arc, time::Instant};

use api::offload::{namespace::NamespaceOffloading, peer::OffloadPeer, phase::Phase};
use e2e::{fixture::SET, waiting::eventually, world::World};
use fleet::cluster_set::Composition;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, wait::await_condition, watcher},
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

pub(crate) const HOME: &str = "west";
const HOSTS: [&str; 2] = ["east", "leader"];

pub(crate) struct Set {
    pub(crate) world: World,
}

impl Set {
    pub(crate) async fn up() -> Self {
        let mut world = World::bring_up("bench-offload", &["leader", "east", HOME]).await;
        let composition = Composition { offload: true, ..Composition::of_all(&world.real().fleet, SET) };
        world.add_set(&composition).await;
        let set = Self { world };
        for host in HOSTS {
            let incoming = json!({"nodeLabels": {"liqo.io/region": host}, "maxNamespaces": 2000});
            set.peer(host, HOME, json!({"incoming": incoming})).await;
            set.peer(HOME, host, json!({"outgoing": {}})).await;
        }
        for host in HOSTS {
            set.peer_is_ready(host).await;
        }
        set
    }

    async fn peer(&self, cluster: &str, other: &str, spec: Value) {
        self.world
            .cluster(cluster)
            .create_cluster_wide::<OffloadPeer>(json!({"metadata": {"name": other}, "spec": spec}))
            .await;
    }

    async fn peer_is_ready(&self, host: &str) {
        let peers = Api::<OffloadPeer>::all(self.world.cluster(HOME).client.clone());
        eventually(&format!("{host} can be used"), || async {
            let status = peers.get(host).await.map_err(|error| error.to_string())?.status.unwrap_or_default();
            match status
                .conditions
                .iter()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            {
                true => Ok(()),
                false => Err(format!("{:?}", status.conditions)),
            }
        })
        .await;
    }

    pub(crate) async fn namespaces(&self, cluster: &str, names: &[String]) {
        let cluster = self.world.cluster(cluster);
        stream::iter(names)
            .map(|name| cluster.create_namespace(name))
            .buffer_unordered(8)
            .collect::<Vec<()>>()
            .await;
    }

    pub(crate) async fn offload(&self, namespace: &str, term: Value) {
        let spec =
            json!({"podOffloadingStrategy": "Remote", "clusterSelector": {"nodeSelectorTerms": [term]}});
        let offloading = json!({"metadata": {"name": "offloading"}, "spec": spec});
        self.world.cluster(HOME).create::<NamespaceOffloading>(namespace, offloading).await;
    }

    pub(crate) async fn unoffload(&self, namespace: &str) {
        self.world.cluster(HOME).delete::<NamespaceOffloading>(namespace, "offloading").await;
    }

    /// A Pod that is bound to the virtual Node of `east`, as the scheduler would bind it.
    pub(crate) async fn bound_pod(&self, namespace: &str, name: &str) {
        let pod = json!({"metadata": {"name": name}, "spec": {
            "nodeName": "freeport-east",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "web", "image": "example.com/web:1"}],
        }});
        let pods = self.world.cluster(HOME).api::<Pod>(namespace);
        let pod = serde_json::from_value(pod).unwrap();
        eventually("the Pod can be made", || async {
            pods.create(&PostParams::default(), &pod).await.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Waits until the Pod runs at home.
    pub(crate) async fn running(&self, namespace: &str, name: &str) -> Instant {
        let pods = self.world.cluster(HOME).api::<Pod>(namespace);
        let runs = |pod: Option<&Pod>| {
            let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
            phase == Some("Running")
        };
        await_condition(pods, name, runs).await.unwrap();
        Instant::now()
    }

    /// Says of the Pod at the host what a kubelet would, as soon as it is there; when.
    pub(crate) async fn runs_at_the_host(&self, namespace: &str, name: &str) -> Instant {
        let pods = self.world.cluster("east").api::<Pod>(namespace);
        await_condition(pods.clone(), name, |pod: Option<&Pod>| pod.is_some()).await.unwrap();
        let status = json!({"status": {
            "phase": "Running", "podIP": "10.9.0.7", "podIPs": [{"ip": "10.9.0.7"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "web", "image": "example.com/web:1", "imageID": "", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
        }});
        let begun = Instant::now();
        pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await.unwrap();
        begun
    }
}

/// When each NamespaceOffloading was Ready, and which are there.
pub(crate) struct Offloaded {
    known: watch::Receiver<Known>,
    _watching: JoinSet<()>,
}

type Known = Arc<HashMap<String, Option<Instant>>>;

impl Offloaded {
    pub(crate) async fn watch(set: &Set) -> Self {
        let (send, known) = watch::channel(Known::default());
        let mut watching = JoinSet::new();
        let all = Api::<NamespaceOffloading>::all(set.world.cluster(HOME).client.clone());
        watching.spawn(async move {
            let mut events = watcher(all, watcher::Config::default()).default_backoff().boxed();
            while let Some(event) = events.try_next().await.unwrap_or_default() {
                send.send_modify(|known| {
                    take_in(Arc::make_mut(known), event);
                });
            }
        });
        Self { known, _watching: watching }
    }

    /// When it was Ready.
    pub(crate) async fn ready(&self, namespace: &str) -> Instant {
        let mut known = self.known.clone();
        let is_ready = |known: &Known| known.get(namespace).is_some_and(Option::is_some);
        let known = known.wait_for(is_ready).await.unwrap();
        known[namespace].unwrap()
    }

    /// Waits until it is gone.
    pub(crate) async fn gone(&self, namespace: &str) {
        self.known.clone().wait_for(|known| !known.contains_key(namespace)).await.unwrap();
    }
}

fn take_in(known: &mut HashMap<String, Option<Instant>>, event: watcher::Event<NamespaceOffloading>) {
    let (offloading, is_there) = match event {
        watcher::Event::Apply(offloading) | watcher::Event::InitApply(offloading) => (offloading, true),
        watcher::Event::Delete(offloading) => (offloading, false),
        watcher::Event::Init | watcher::Event::InitDone => return,
    };
    let namespace = offloading.namespace().unwrap();
    if !is_there {
        known.remove(&namespace);
        return;
    }
    let phase = offloading.status.as_ref().and_then(|status| status.offloading_phase.as_deref());
    // There is no webhook here.
    let is_ready =
        [Phase::Ready, Phase::PlacementNotEnforced].iter().any(|ready| phase == Some(ready.as_str()));
    let first = known.entry(namespace).or_default();
    *first = first.or(is_ready.then(Instant::now));
}
