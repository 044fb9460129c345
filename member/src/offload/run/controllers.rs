//! The controllers of a session, and what each of them works with.

use kit::{
    drive::{before, drive},
    watch::Watches,
};
use tokio_util::sync::CancellationToken;

use super::OffloadingRun;
use crate::{
    feature::Access,
    offload::{
        index::{PEER, STATUS},
        map::Maps,
        namespace::Namespaces,
        node::Nodes,
        own_map::{CLAIMS, OwnMaps},
        pace::Pace,
        peer::Consenting,
        shadow::{ANSWERS, Reserved, ShadowPods},
        status::OffloadingStatus,
    },
};

impl OffloadingRun {
    pub(super) async fn run_peers(&self, stop: &CancellationToken) {
        let Access { env, wire, .. } = &self.access;
        let consenting = Consenting {
            knowledge: self.knowledge.clone(),
            wire: *wire,
            local: env.client.clone(),
            lost: self.access.home.lost(),
            local_writer: self.local_writer.clone(),
            leader_writer: self.leader_writer.clone(),
            watches: [self.peers.clone(), self.nodes.clone(), self.here.clone(), self.area.clone()],
            exchanges: self.exchanges.clone(),
            left_out: env.metrics.offload().left_out(),
            refusals: env.metrics.refusals().clone(),
            events: env.events.clone(),
            begun: self.begun.subscribe(),
        };
        if before(stop, self.peers.listed()).await {
            let reconcile = |cluster| consenting.clone().reconcile(cluster);
            let queue = self.knowledge.clusters.queue(0);
            let driven = drive("offload-peer", queue, env.metrics.clone(), stop.clone(), reconcile);
            tokio::select! {
                () = driven => {}
                () = self.tell_of_failures() => {}
            }
        }
    }

    /// Has each OffloadPeer say at once that something cannot be watched: what it says meanwhile of records that are gone leads astray.
    async fn tell_of_failures(&self) {
        let tell = async |watches: &Watches| {
            let mut failures = watches.failures();
            while failures.changed().await.is_ok() {
                self.knowledge.clusters.enqueue_all(PEER);
            }
            std::future::pending::<()>().await;
        };
        tokio::join!(tell(&self.peers), tell(&self.nodes), tell(&self.here), tell(&self.area));
    }

    pub(super) async fn run_nodes(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let (writer, begun) = (self.local_writer.clone(), self.begun.subscribe());
        let nodes = Nodes::new(self.knowledge.clone(), env, writer, begun);
        let nodes = nodes.in_session(self.vouching.clone(), self.exchanges.clone());
        if before(stop, self.nodes.listed()).await {
            nodes.run(env, stop).await;
        }
    }

    pub(super) async fn run_namespaces(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let namespaces = Namespaces {
            knowledge: self.knowledge.clone(),
            local: env.client.clone(),
            local_writer: self.local_writer.clone(),
            events: env.events.clone(),
        };
        let reconcile = |namespace| namespaces.clone().reconcile(namespace);
        let queue = self.knowledge.namespaces.queue(0);
        drive("offload-namespace", queue, env.metrics.clone(), stop.clone(), reconcile).await;
    }

    pub(super) async fn run_own_maps(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let maps = OwnMaps {
            knowledge: self.knowledge.clone(),
            lost: self.access.home.lost(),
            writer: self.leader_writer.clone(),
            pace: Pace::new(CLAIMS),
        };
        let reconcile = |host| maps.clone().reconcile(host);
        let queue = self.knowledge.clusters.queue(4);
        drive("offload-own-map", queue, env.metrics.clone(), stop.clone(), reconcile).await;
    }

    pub(super) async fn run_status(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let status = OffloadingStatus {
            knowledge: self.knowledge.clone(),
            writer: self.local_writer.clone(),
            events: env.events.clone(),
            tally: env.metrics.offload().namespaces(),
            webhook: self.webhook.clone(),
            refusals: env.metrics.refusals().clone(),
        };
        let reconcile = |namespace| status.clone().reconcile(namespace);
        let queue = self.knowledge.namespaces.queue(1);
        let driven = drive("offload-status", queue, env.metrics.clone(), stop.clone(), reconcile);
        let mut webhook = self.webhook.clone();
        let told = async {
            while webhook.changed().await.is_ok() {
                self.knowledge.namespaces.enqueue_all(STATUS);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = driven => {}
            () = told => {}
        }
    }

    pub(super) async fn run_maps(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let maps = Maps {
            knowledge: self.knowledge.clone(),
            vouching: self.vouching.clone(),
            local_writer: self.local_writer.clone(),
            leader_writer: self.leader_writer.clone(),
            tally: env.metrics.offload().twins(),
            pace: Pace::new(1),
        };
        let reconcile = |home| maps.clone().reconcile(home);
        let queue = self.knowledge.clusters.queue(2);
        drive("offload-map", queue, env.metrics.clone(), stop.clone(), reconcile).await;
    }

    pub(super) async fn run_shadows(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let shadows = ShadowPods {
            knowledge: self.knowledge.clone(),
            vouching: self.vouching.clone(),
            local_writer: self.local_writer.clone(),
            leader_writer: self.leader_writer.clone(),
            tally: env.metrics.offload().hosted(),
            reserved: Reserved::default(),
            pace: Pace::new(ANSWERS),
        };
        let reconcile = |place| shadows.clone().reconcile(place);
        let queue = self.knowledge.shadows.queue(0);
        drive("offload-shadow", queue, env.metrics.clone(), stop.clone(), reconcile).await;
    }
}
