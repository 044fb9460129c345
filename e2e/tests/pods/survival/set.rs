//! The ClusterSet, set up and changed by the commands: `leader` leads it and is no member, `east` and `west` export and import.

use std::{ops::Deref, path::Path};

use cli::{Daemons, InitOptions, JoinOptions, KubeContext, RejoinOptions, Run, init, join, rejoin};
use e2e::{
    bring_up::bring_up_nodes,
    fixture::{CLUSTERS, SET},
    pod::nodes_are_possible,
    say,
    shared::{Fixture, Shared},
    waiting::PODS_READY,
    world::World,
};
use fleet::cluster_set::{DaemonImage, load_daemons};
use futures::future::join_all;

pub(super) const LEADER: &str = "leader";
pub(super) const MEMBERS: [&str; 2] = ["east", "west"];

static ONE: Shared<Set> = Shared::new("survival", 2 * CLUSTERS.len(), || Box::pin(Set::up()));

/// Three clusters with nodes, the daemons in Pods.
pub(super) struct Set {
    world: World,
    /// Of the daemons.
    image: String,
}

impl Deref for Set {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Fixture for Set {
    fn dir(&self) -> &Path {
        self.real().fleet.dir()
    }
}

/// Runs a test that has the ClusterSet for itself, unless there can be no nodes here.
pub(super) fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static Set) -> F) {
    if nodes_are_possible() {
        ONE.alone(test);
    }
}

impl Set {
    /// With one replica of each daemon.
    async fn up() -> Self {
        let (fleet, clusters) = bring_up_nodes("survival", &CLUSTERS).await.unwrap();
        let image = load_daemons(&fleet, DaemonImage::OfContent).await.unwrap();
        let set = Self { world: World::new(fleet, clusters), image };
        set.lead(LEADER, 1).await;
        join_all(MEMBERS.map(|member| set.join(member, 1))).await;
        set
    }

    /// Makes a cluster lead the set by that many replicas, or changes how many they are.
    pub(super) async fn lead(&self, cluster: &str, replicas: u8) {
        let options = InitOptions {
            cluster_set: SET.into(),
            cluster_id: cluster.into(),
            dedicated: true,
            cluster: self.context(cluster),
            leader_server: None,
            offload: None,
            probe: None,
            ranges: None,
            run: self.run(replicas),
        };
        init(&options, &mut say::note).await.unwrap();
    }

    /// The same for a member.
    pub(super) async fn join(&self, cluster: &str, replicas: u8) {
        let options = JoinOptions {
            cluster_set: SET.into(),
            cluster_id: cluster.into(),
            cluster: self.context(cluster),
            leader: self.context(LEADER),
            leader_server: None,
            offload: None,
            probe: None,
            ranges: None,
            run: self.run(replicas),
        };
        join(&options, &mut say::note).await.unwrap();
    }

    /// Makes another cluster the leader of all members.
    pub(super) async fn follow(&self, leader: &str) {
        let options = RejoinOptions {
            clusters: MEMBERS.map(|member| self.context(member)).into(),
            leader: self.context(leader),
            leader_server: None,
            wait: true,
            timeout: PODS_READY.time,
            aside: |_| {},
        };
        rejoin(&options, &mut say::note).await.unwrap();
    }

    /// Takes a cluster off the network.
    pub(super) async fn unplug(&self, cluster: &str) {
        self.real().fleet.cluster(cluster).unwrap().unplug().await.unwrap();
    }

    pub(super) async fn plug(&self, cluster: &str) {
        self.real().fleet.cluster(cluster).unwrap().plug().await.unwrap();
    }

    fn context(&self, cluster: &str) -> KubeContext {
        KubeContext {
            file: Some(self.real().fleet.kubeconfig()),
            name: Some(cluster.to_owned()),
            ..KubeContext::default()
        }
    }

    fn run(&self, replicas: u8) -> Run {
        Run {
            daemons: Daemons::Inside { image: Some(self.image.clone()), replicas: Some(replicas) },
            only: vec![],
            wait: true,
            timeout: PODS_READY.time,
            dry_run: false,
            aside: |_| {},
        }
    }
}
