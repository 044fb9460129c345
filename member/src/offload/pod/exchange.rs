//! The exchange of Pods with each host: its watches and its queue. It runs while the host is a Node here, or has a map of ours: what is
//! left of a Node that went is taken back too.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use api::offload::names;
use ipnet::IpNet;
use kit::{
    crowd::{LISTS, Place},
    drive::{before, drive, resume},
    index::Shared,
    queue::{Outcome, Queue},
    store::Store,
    watch::{Source, Trouble, Watches},
    write::{Error, Writer},
};
use kube::{Api, ResourceExt, runtime::watcher};
use presence::vouch::Vouching;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Pods,
    index::{POD, PodEntry},
    view::{BoundPod, OwnShadowPod},
};
use crate::{
    feature::Access,
    offload::{
        index::{ClusterEntry, EXCHANGE, STATUS},
        knowledge::{Knowledge, POD_PACE},
        view::VirtualNode,
    },
    ranges,
};

/// All exchanges of a session. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Exchanges {
    access: Access,
    knowledge: Knowledge,
    vouching: Vouching<String>,
    local_writer: Writer,
    leader_writer: Writer,
    running: Shared<BTreeMap<String, Exchange>>,
    services: Shared<Arc<[IpNet]>>,
    /// One of the watches has found that the Common Area was restored.
    restored: CancellationToken,
}

/// The exchange with one host.
#[derive(Clone)]
struct Exchange {
    store: Store<String, PodEntry>,
    here: Watches,
    area: Watches,
    /// Whether all was seen that records are made from.
    begun: watch::Sender<bool>,
    stop: CancellationToken,
}

impl Exchanges {
    /// None yet. The writers are those of this cluster and of the leader's.
    pub(crate) fn new(
        access: &Access,
        knowledge: &Knowledge,
        vouching: &Vouching<String>,
        (local_writer, leader_writer): (&Writer, &Writer),
    ) -> Self {
        Self {
            access: access.clone(),
            knowledge: knowledge.clone(),
            vouching: vouching.clone(),
            local_writer: local_writer.clone(),
            leader_writer: leader_writer.clone(),
            running: Shared::default(),
            services: Shared::new(Arc::default()),
            restored: CancellationToken::new(),
        }
    }

    /// Starts and stops exchanges until `stop`, then waits for what is under way.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let (begin, mut begun) = mpsc::unbounded_channel();
        let asked = watch::Sender::new(false);
        let look = |host| self.clone().look(host, begin.clone());
        let (queue, metrics) = (self.knowledge.clusters.queue(3), self.access.env.metrics.clone());
        let mut driven = std::pin::pin!(drive("offload-exchange", queue, metrics, stop.clone(), look));
        let look = |host| self.clone().look_at_twins(host);
        let (queue, metrics) = (self.knowledge.clusters.queue(6), self.access.env.metrics.clone());
        let mut twins = std::pin::pin!(drive("offload-twins", queue, metrics, stop.clone(), look));
        let mut learned = std::pin::pin!(ranges::learn(
            self.access.env.client.clone(),
            self.services.clone(),
            asked.clone()
        ));
        let (mut tasks, mut keys) = (JoinSet::new(), self.knowledge.keys());
        loop {
            tokio::select! {
                () = &mut driven => break,
                () = &mut twins => break,
                () = &mut learned => {}
                Some(host) = begun.recv() => if let Some(exchange) = self.added(&host, stop) {
                    tasks.spawn(self.clone().exchange(host, exchange, asked.subscribe()));
                },
                Ok(()) = keys.changed() => self.knowledge.clusters.enqueue_all(EXCHANGE),
                Some(ended) = tasks.join_next() => match ended {
                    Ok(host) => self.ended(host),
                    Err(error) => resume(error),
                },
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_or_else(resume, |host| self.ended(host));
        }
    }

    /// Something is known anew of a cluster: begins or ends the exchange with it, or has all its Pods looked at again.
    async fn look(self, host: String, begin: mpsc::UnboundedSender<String>) -> Result<Outcome, Error> {
        let entry = self.knowledge.clusters.get(&host);
        let is_host = entry.is_some_and(|entry| is_host(&entry)) && host != self.knowledge.us.cluster;
        match (self.running.with(|running| running.get(&host).cloned()), is_host) {
            (Some(exchange), true) => exchange.store.enqueue_all(POD),
            (Some(exchange), false) => exchange.stop.cancel(),
            // If nobody receives it, all end.
            (None, true) => drop(begin.send(host)),
            (None, false) => {}
        }
        Ok(Outcome::Done)
    }

    /// Something else is known of twins at a host: has the Pods of their Namespaces looked at again.
    async fn look_at_twins(self, host: String) -> Result<Outcome, Error> {
        let touched = self.knowledge.touched(&host);
        // One that has not begun looks at all of them.
        if let Some(exchange) = self.running.with(|running| running.get(&host).cloned()) {
            let is_touched = |entry: &PodEntry| {
                let pod = entry.pod.as_ref().and_then(ResourceExt::namespace);
                pod.is_some_and(|namespace| touched.contains(&namespace))
            };
            let uids = exchange.store.keys().into_iter();
            let uids = uids.filter(|uid| exchange.store.get(uid).is_some_and(|entry| is_touched(&entry)));
            exchange.store.enqueue(uids.map(|uid| (uid, POD)).collect());
        }
        Ok(Outcome::Done)
    }

    /// Reads all records of our Pods again: their CRD is another one.
    pub(crate) fn records_again(&self) {
        let running = self.running.with(|running| running.values().cloned().collect::<Vec<_>>());
        for exchange in running {
            exchange.area.list_again();
            exchange.store.enqueue_all(POD);
        }
    }

    /// Exchanges that run list in later rounds. An exchange that begins lists at once: which hosts there are is known by lists that waited.
    pub(crate) fn take_turns(&self, place: Option<Place>) {
        self.running.with(|running| {
            for (number, exchange) in running.values().enumerate() {
                let round = 2 + number / LISTS as usize;
                exchange.area.take_turns(place.map(|place| place.in_round(round)));
            }
        });
    }

    fn added(&self, host: &str, stop: &CancellationToken) -> Option<Exchange> {
        let Access { home, guard, .. } = &self.access;
        self.running.with(|running| {
            if running.contains_key(host) {
                return None;
            }
            let exchange = Exchange {
                store: Store::new([Queue::new(POD_PACE)]),
                here: Watches::guarded(home.guard()),
                area: guard.clone().map(Watches::guarded).unwrap_or_default(),
                begun: watch::Sender::new(false),
                stop: stop.child_token(),
            };
            running.insert(host.to_owned(), exchange.clone());
            Some(exchange)
        })
    }

    fn ended(&self, host: String) {
        self.running.with(|running| running.remove(&host));
        let touched = self.knowledge.refused.forget(&host);
        self.knowledge.namespaces.enqueue(touched.into_iter().map(|namespace| (namespace, STATUS)).collect());
        // It may be a host again.
        self.knowledge.clusters.enqueue([(host, EXCHANGE)].into());
    }

    async fn exchange(self, host: String, exchange: Exchange, mut asked: watch::Receiver<bool>) -> String {
        let Exchange { store, here, area, begun, stop } = &exchange;
        let mut watching = JoinSet::new();
        self.watch(&host, &exchange, &mut watching);
        let pods = self.pods(&host, store);
        let mut ranges = asked.clone();
        let complete = async {
            tokio::join!(here.listed(), area.listed());
            let _ = asked.wait_for(|asked| *asked).await;
            pods.note_refusals();
            begun.send_replace(true);
        };
        let driven = async {
            if before(stop, complete).await {
                let reconcile = |uid| pods.clone().reconcile(uid);
                let metrics = self.access.env.metrics.clone();
                drive("offload-pod", store.queue(0), metrics, stop.clone(), reconcile).await;
            }
        };
        let watched = async {
            while let Some(ended) = watching.join_next().await {
                ended.unwrap_or_else(resume);
            }
            std::future::pending::<()>().await;
        };
        let judged_again = async {
            while ranges.changed().await.is_ok() {
                store.enqueue_all(POD);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = driven => {}
            () = watched => {}
            () = judged_again => {}
            () = area.restored() => self.restored.cancel(),
        }
        watching.shutdown().await;
        host
    }

    fn watch(&self, host: &str, exchange: &Exchange, tasks: &mut JoinSet<()>) {
        let Access { env, us, leader, .. } = &self.access;
        let bound =
            watcher::Config::default().fields(&format!("spec.nodeName={}", names::virtual_node(host)));
        let (pods, store) = (Api::<BoundPod>::all(env.client.clone()), exchange.store.clone());
        let source = Source { cluster: "local", kind: "Pod" };
        let sink = move |change| store.change(change);
        tasks.spawn(exchange.here.watch(pods, bound, source, env.metrics.clone(), sink));
        let ours = format!("spec.origin={},spec.destination={host}", us.cluster);
        let ours = watcher::Config::default().fields(&ours);
        let records = Api::<OwnShadowPod>::namespaced(leader.clone(), &us.common_area);
        let (source, store) = (Source { cluster: "leader", kind: "own ShadowPod" }, exchange.store.clone());
        let sink = move |change| store.change(change);
        tasks.spawn(exchange.area.watch(records, ours, source, env.metrics.clone(), sink));
    }

    fn pods(&self, host: &str, store: &Store<String, PodEntry>) -> Pods {
        let env = &self.access.env;
        Pods {
            host: host.to_owned(),
            knowledge: self.knowledge.clone(),
            vouching: self.vouching.clone(),
            store: store.clone(),
            services: self.services.clone(),
            tally: env.metrics.offload().pods(),
            local: env.client.clone(),
            local_writer: self.local_writer.clone(),
            leader_writer: self.leader_writer.clone(),
            events: env.events.clone(),
        }
    }

    /// Waits until a watch has found that the Common Area was restored.
    pub(crate) async fn restored(&self) {
        self.restored.cancelled().await;
    }

    /// What fails of the exchange with a host.
    pub(crate) fn troubles(&self, host: &str, now: Instant) -> Vec<Trouble> {
        let exchange = self.running.with(|running| running.get(host).cloned());
        exchange.iter().flat_map(|e| [&e.here, &e.area]).flat_map(|watches| watches.troubles(now)).collect()
    }

    /// Whether Pods are left that a host runs for us, or it is not known: of one that is waiting the host has not heard.
    pub(crate) fn has_pods(&self, host: &str) -> bool {
        let exchange = self.running.with(|running| running.get(host).cloned());
        exchange.is_none_or(|exchange| {
            let entries = exchange.store.keys().into_iter().filter_map(|uid| exchange.store.get(&uid));
            !*exchange.begun.borrow() || entries.into_iter().any(|entry| entry.is_there())
        })
    }

    /// Hosts about which something is left to write, or to be looked at first.
    pub(crate) fn unwritten(&self, now: Instant) -> Vec<String> {
        let is_unwritten = |exchange: &Exchange| {
            !exchange.here.are_open(now)
                || !exchange.area.are_open(now)
                || !*exchange.begun.borrow()
                || !exchange.store.busy(POD).is_empty()
        };
        self.running.with(|running| {
            let hosts = running.iter().filter(|(_, exchange)| is_unwritten(exchange));
            hosts.map(|(host, _)| host.clone()).collect()
        })
    }

    /// The leader answers again: tries at once what failed.
    pub(crate) fn retry_failed(&self) {
        self.running.with(|running| running.values().for_each(|exchange| exchange.store.retry_failed()));
    }
}

/// Whether there is an exchange of Pods with a cluster.
pub(crate) fn is_host(entry: &ClusterEntry) -> bool {
    entry.own_map.is_some() || entry.node.as_ref().is_some_and(VirtualNode::is_ours)
}
