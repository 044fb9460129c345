//! Offloading in one session: its watches, its controllers and what each of them works with.

use std::{collections::BTreeSet, time::Instant};

use api::{label, membership::Wire, unwritten::OFFLOADING};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    drive::{before, drive},
    index::Readers,
    watch::Watches,
    write::Writer,
};
use presence::{leases::News, vouch::Vouching};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    Answer,
    index::{EXCHANGE, MAP, NAMESPACE, NODE, OWN_MAP, STATUS},
    key::Keeper,
    knowledge::Knowledge,
    local_writer,
    map::{Maps, Pace},
    namespace::Namespaces,
    node::Nodes,
    own_map::OwnMaps,
    peer::Consenting,
    pod::exchange::Exchanges,
    shadow::{Reserved, ShadowPods},
    status::OffloadingStatus,
    watches,
};
use crate::feature::{Access, Run};

/// Offloading in one session.
pub(super) struct OffloadingRun {
    access: Access,
    knowledge: Knowledge,
    vouching: Vouching<String>,
    /// Of the OffloadPeers: they can say what else is missing.
    peers: Watches,
    /// Of the virtual Nodes: these are kept up whatever else is missing.
    nodes: Watches,
    /// Of all else in this cluster.
    here: Watches,
    /// Of the Common Area.
    area: Watches,
    /// What the session is shown in their place: it waits for none of them.
    none: Watches,
    local_writer: Writer,
    leader_writer: Writer,
    key: Keeper,
    exchanges: Exchanges,
    /// Whether all has been seen that others are told and made from, and our ID is ours.
    begun: watch::Sender<bool>,
    webhook: watch::Receiver<Answer>,
}

impl OffloadingRun {
    pub(super) fn new(access: Access, webhook: watch::Receiver<Answer>) -> Self {
        let Access { env, home, us, leases, leader, guard, .. } = &access;
        let knowledge = Knowledge::new(us.clone(), env.namespace.clone(), Some(leases.clone()));
        let vouching = Vouching::new(OFFLOADING, leases.clone());
        let local_writer = local_writer(env);
        let leader_writer =
            Writer::new(leader.clone(), label::MEMBER, "leader", env.metrics.clone()).strict();
        Self {
            key: Keeper::new(env, knowledge.clone()),
            exchanges: Exchanges::new(&access, &knowledge, &vouching, (&local_writer, &leader_writer)),
            knowledge,
            vouching,
            peers: Watches::guarded(home.guard()),
            nodes: Watches::guarded(home.guard()),
            here: Watches::guarded(home.guard()),
            area: guard.clone().map(Watches::guarded).unwrap_or_default(),
            none: Watches::default(),
            local_writer,
            leader_writer,
            begun: watch::Sender::new(false),
            webhook,
            access,
        }
    }

    async fn run_peers(&self, stop: &CancellationToken) {
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
            events: env.events.clone(),
            begun: self.begun.subscribe(),
        };
        if before(stop, self.peers.listed()).await {
            let reconcile = |cluster| consenting.clone().reconcile(cluster);
            let queue = self.knowledge.clusters.queue(0);
            drive("offload-peer", queue, env.metrics.clone(), stop.clone(), reconcile).await;
        }
    }

    async fn run_nodes(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let (writer, begun) = (self.local_writer.clone(), self.begun.subscribe());
        let nodes = Nodes::new(self.knowledge.clone(), env, writer, begun);
        let nodes = nodes.in_session(self.vouching.clone(), self.exchanges.clone());
        if before(stop, self.nodes.listed()).await {
            nodes.run(env, stop).await;
        }
    }

    async fn run_namespaces(&self, stop: &CancellationToken) {
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

    async fn run_own_maps(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let maps = OwnMaps {
            knowledge: self.knowledge.clone(),
            lost: self.access.home.lost(),
            writer: self.leader_writer.clone(),
        };
        let reconcile = |host| maps.clone().reconcile(host);
        let queue = self.knowledge.clusters.queue(4);
        drive("offload-own-map", queue, env.metrics.clone(), stop.clone(), reconcile).await;
    }

    async fn run_status(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let status = OffloadingStatus {
            knowledge: self.knowledge.clone(),
            writer: self.local_writer.clone(),
            events: env.events.clone(),
            tally: env.metrics.offload().namespaces(),
            webhook: self.webhook.clone(),
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

    async fn run_maps(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let maps = Maps {
            knowledge: self.knowledge.clone(),
            vouching: self.vouching.clone(),
            local_writer: self.local_writer.clone(),
            leader_writer: self.leader_writer.clone(),
            tally: env.metrics.offload().twins(),
            pace: Pace::default(),
        };
        let reconcile = |home| maps.clone().reconcile(home);
        let queue = self.knowledge.clusters.queue(2);
        drive("offload-map", queue, env.metrics.clone(), stop.clone(), reconcile).await;
    }

    async fn run_shadows(&self, stop: &CancellationToken) {
        let Access { env, .. } = &self.access;
        let shadows = ShadowPods {
            knowledge: self.knowledge.clone(),
            vouching: self.vouching.clone(),
            local_writer: self.local_writer.clone(),
            leader_writer: self.leader_writer.clone(),
            tally: env.metrics.offload().hosted(),
            reserved: Reserved::default(),
        };
        let reconcile = |place| shadows.clone().reconcile(place);
        let queue = self.knowledge.shadows.queue(0);
        drive("offload-shadow", queue, env.metrics.clone(), stop.clone(), reconcile).await;
    }

    /// Waits until all is known that records, twins and statuses depend on.
    async fn complete(&self, begin: BoxFuture<'static, ()>) {
        let Self { peers, nodes, here, area, .. } = self;
        tokio::join!(peers.listed(), nodes.listed(), here.listed(), area.listed(), begin);
        self.begun.send_replace(true);
        self.knowledge.enqueue_everything();
    }

    fn sees_all(&self) -> bool {
        let now = Instant::now();
        *self.begun.borrow()
            && [&self.peers, &self.nodes, &self.here, &self.area].iter().all(|w| w.are_open(now))
    }
}

impl Run for OffloadingRun {
    /// Under a leader of Antrea's nothing is watched but the OffloadPeers, which say so.
    fn watch(&self, tasks: &mut JoinSet<()>) {
        let env = &self.access.env;
        watches::watch_peers(env, &self.knowledge, &self.peers, tasks);
        if self.access.wire == Wire::Freeport {
            watches::watch_nodes(env, &self.knowledge, &self.nodes, tasks);
            watches::watch_local(env, &self.knowledge, &self.here, tasks);
            watches::watch_hosted(env, &self.knowledge, &self.here, tasks);
            tasks.spawn(self.key.watch(env, &self.here));
            watches::watch_leader(&self.access, &self.knowledge, (&self.area, &self.peers), tasks);
        }
    }

    fn local(&self) -> &Watches {
        &self.none
    }

    fn leader(&self) -> &Watches {
        &self.none
    }

    fn restored(&self) -> BoxFuture<'_, ()> {
        async move {
            tokio::select! {
                () = self.area.restored() => {}
                () = self.exchanges.restored() => {}
            }
        }
        .boxed()
    }

    fn run(&self, begin: BoxFuture<'static, ()>, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move {
            if self.access.wire == Wire::Antrea {
                return self.run_peers(&stop).await;
            }
            let exchange = async {
                if before(&stop, self.complete(begin)).await {
                    let hosting = async { tokio::join!(self.run_maps(&stop), self.run_shadows(&stop)) };
                    let pods = self.exchanges.run(&stop);
                    let asking = async { tokio::join!(self.run_namespaces(&stop), self.run_own_maps(&stop)) };
                    tokio::join!(asking, self.run_status(&stop), hosting, pods);
                }
            };
            let key = self.key.run(&self.access.env, &stop);
            tokio::join!(self.run_peers(&stop), self.run_nodes(&stop), key, exchange);
        }
        .boxed()
    }

    fn hear(&self, news: &News) {
        let vouched = !self.vouching.hear(news).is_empty();
        self.knowledge.hear(Instant::now());
        if vouched {
            self.knowledge.clusters.enqueue_all(MAP.and(EXCHANGE).and(NODE));
            self.knowledge.shadows.enqueue_all(Readers::ALL);
        }
    }

    /// Hosts in whose maps or Pods something is left to write: each may be, as long as one Namespace waits; and homes of whose Pods
    /// something is left to say.
    fn unwritten(&self) -> Vec<String> {
        let is_written = self.sees_all() && self.knowledge.namespaces.busy(NAMESPACE).is_empty();
        match is_written || self.access.wire == Wire::Antrea {
            true => {
                let hosts = self.exchanges.unwritten(Instant::now()).into_iter();
                let hosts = hosts.chain(self.knowledge.clusters.busy(OWN_MAP));
                hosts.chain(self.knowledge.waiting_homes()).collect::<BTreeSet<_>>().into_iter().collect()
            }
            false => self.access.leases.with(|leases| leases.members().into_keys().collect()),
        }
    }

    fn retry_failed(&self) {
        self.knowledge.clusters.retry_failed();
        self.knowledge.namespaces.retry_failed();
        self.exchanges.retry_failed();
        self.knowledge.shadows.retry_failed();
    }

    fn local_again(&self) {
        self.peers.list_again();
        self.here.list_again();
        self.local_writer.forget_undeclared();
        self.knowledge.enqueue_everything();
    }

    fn records_again(&self) {
        self.area.list_again();
        self.exchanges.records_again();
        self.leader_writer.forget_undeclared();
        self.knowledge.enqueue_everything();
    }
}
