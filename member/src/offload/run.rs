//! Offloading in one session: its watches and its controllers.

mod controllers;

use std::{collections::BTreeSet, time::Instant};

use api::{label, membership::Wire, unwritten::OFFLOADING};
use futures::{FutureExt, future::BoxFuture};
use kit::{crowd::Place, drive::before, index::Readers, watch::Watches, write::Writer};
use presence::{leases::News, vouch::Vouching};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    Answer,
    index::{EXCHANGE, MAP, NAMESPACE, NODE, OWN_MAP},
    key::Keeper,
    knowledge::Knowledge,
    local_writer,
    pod::exchange::Exchanges,
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
        let area = guard.clone().map(Watches::guarded).unwrap_or_default();
        let vouching = Vouching::new(OFFLOADING, leases.clone(), area.latest());
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
            area,
            none: Watches::default(),
            local_writer,
            leader_writer,
            begun: watch::Sender::new(false),
            webhook,
            access,
        }
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

    /// Services come first.
    fn take_turns(&self, place: Option<Place>) {
        self.area.take_turns(place.map(|place| place.in_round(1)));
        self.exchanges.take_turns(place);
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
