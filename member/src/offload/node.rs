//! Virtual nodes: watches OffloadPeers, offers, Leases of members, and the Nodes that it makes; writes a Node for each cluster that is
//! to be used and has offered something, and its status; deletes a Node that is not asked for any more once no twin is left there and
//! no Pod of ours. Safe to run twice: a Node is a function of the offer and of how it stands with its host. Its Lease is renewed
//! elsewhere ([`heartbeat`]).
//!
//! A Node that is deleted by mistake takes its Pods along within 40 s, so it is made anew at once. Nothing that merely vanished takes a
//! Node away.

pub(super) mod desired;
mod heartbeat;
mod labels;
mod plan;
mod refused;
mod status;

use std::time::{Duration, Instant};

use api::name::member_lease;
use jiff::Timestamp;
use kit::{
    boot::Env,
    drive::drive,
    metrics::{Refusals, Tally},
    queue::Outcome,
    write::{Error, Writer},
};
use kube::ResourceExt;
use presence::vouch::Vouching;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::{
    desired::{node, node_after, remembered},
    heartbeat::Heartbeats,
    plan::{Around, Plan, plan},
    refused::refused,
    status::{Condition, status},
};
pub(super) use self::{heartbeat::NAMESPACE as LEASES, labels::may_claim};
use super::{
    index::{Asked, ClusterEntry, NAMESPACE, NODE, PEER, STATUS},
    knowledge::Knowledge,
    pod::exchange::Exchanges,
    view::VirtualNode,
};

/// How often a Node is looked at, and its Lease is renewed: Kubernetes gives the Node up after 50 s.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How soon it is looked at again whether Pods are left on a Node that is to go.
const SOON: Duration = Duration::from_secs(1);

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Nodes {
    knowledge: Knowledge,
    writer: Writer,
    tally: Tally,
    /// Writes of this member that API servers refuse.
    refusals: Refusals,
    /// Whether the Common Area has been seen and our ID is ours.
    begun: watch::Receiver<bool>,
    since: Instant,
    /// How long the Common Area may take to be seen.
    patience: Duration,
    /// Where there is a session.
    session: Option<(Vouching<String>, Exchanges)>,
}

impl Nodes {
    pub(super) fn new(knowledge: Knowledge, env: &Env, writer: Writer, begun: watch::Receiver<bool>) -> Self {
        Self {
            knowledge,
            writer,
            tally: env.metrics.offload().nodes(),
            refusals: env.metrics.refusals().clone(),
            begun,
            since: Instant::now(),
            patience: env.pace.stale(),
            session: None,
        }
    }

    /// In a session, in which hosts vouch for what they offer, and run Pods.
    pub(super) fn in_session(self, vouching: Vouching<String>, exchanges: Exchanges) -> Self {
        Self { session: Some((vouching, exchanges)), ..self }
    }

    /// Keeps Nodes and their Leases up until `stop`.
    pub(super) async fn run(&self, env: &Env, stop: &CancellationToken) {
        let (clusters, metrics) = (&self.knowledge.clusters, || env.metrics.clone());
        let reconcile = |cluster| self.clone().reconcile(cluster);
        let nodes = drive("offload-node", clusters.queue(1), metrics(), stop.clone(), reconcile);
        let heartbeats = Heartbeats::new(self.knowledge.clone(), self.writer.clone());
        let renew = |cluster| heartbeats.clone().reconcile(cluster);
        let leases = drive("offload-lease", clusters.queue(5), metrics(), stop.clone(), renew);
        tokio::join!(nodes, leases);
    }

    /// Whether what the host offers is so now.
    fn is_current(&self, host: &str) -> bool {
        let us = &self.knowledge.us.cluster;
        self.session.as_ref().is_none_or(|(vouching, _)| vouching.is_current(us, &member_lease(host)))
    }

    /// Whether Pods run there that have to end before the Node goes. A host without a Lease has left, and ends none; without a map it is
    /// not known that they are to end.
    fn has_pods(&self, host: &str, entry: &ClusterEntry) -> bool {
        matches!(entry.outgoing(), Asked::No)
            && entry.own_map.is_some()
            && self.knowledge.standing(host, Instant::now()).is_some()
            && self.session.as_ref().is_none_or(|(_, exchanges)| exchanges.has_pods(host))
    }

    /// Brings the Node of one cluster up to date.
    pub(super) async fn reconcile(self, cluster: String) -> Result<Outcome, Error> {
        let outcome = self.follow(&cluster).await;
        self.count(&cluster);
        outcome
    }

    /// Counts the Node as it is now.
    fn count(&self, cluster: &String) {
        let entry = self.knowledge.clusters.get(cluster);
        let node = entry.as_ref().and_then(|entry| entry.node.as_ref()).filter(|node| node.is_ours());
        let ready = node.map(|node| {
            let status = node.status.0.as_ref().ok().and_then(|status| status.ready());
            status.map_or("Unknown", |ready| ready.status.as_str())
        });
        self.tally.put(cluster, ready.map(|ready| [cluster.as_str(), ready]));
    }

    async fn follow(&self, cluster: &String) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.clusters.get(cluster) else { return Ok(Outcome::Done) };
        // What is to be said of it is not known yet.
        if self.is_starting() {
            return Ok(Outcome::Requeue(HEARTBEAT));
        }
        let now = self.condition(cluster, &entry);
        let around = Around {
            is_seen: now.is_heard,
            is_current: self.is_current(cluster),
            has_pods: self.has_pods(cluster, &entry),
            has_asked: |namespace: &String| {
                let entry = self.knowledge.namespaces.get(namespace);
                entry.is_some_and(|entry| entry.has_asked(cluster))
            },
        };
        let plan = plan(&entry, around);
        let node = match &plan {
            Plan::Nothing => {
                if matches!(entry.outgoing(), Asked::No) {
                    self.knowledge.clusters.note(cluster, |entry| entry.node_before = None);
                }
                return Ok(Outcome::Done);
            }
            Plan::Delete => match self.delete(&entry).await {
                Ok(()) => return Ok(Outcome::Done),
                Err(error) => Err(error),
            },
            // While nothing is heard of the leader the offer is the last one that was.
            Plan::Put => self.put(cluster, &entry, now.takes_pods()).await,
            Plan::Keep | Plan::Wait => self.keep(&entry).await,
            Plan::Restore => self.restore(&entry).await,
        };
        let next = if plan == Plan::Wait { SOON } else { HEARTBEAT };
        self.say(cluster, &entry, node, &now).await.map(|()| Outcome::Requeue(next))
    }

    async fn delete(&self, entry: &ClusterEntry) -> Result<(), Error> {
        let Some(node) = entry.node.as_ref().filter(|node| node.is_made_here()) else { return Ok(()) };
        self.knowledge.clusters.delete(&self.writer, NODE, node, false).await?;
        self.knowledge.enqueue_offloaded(NAMESPACE.and(STATUS));
        Ok(())
    }

    /// Writes what is to be said of the Node, also where what it is to be was refused: Kubernetes acts on its status.
    async fn say(
        &self,
        cluster: &str,
        entry: &ClusterEntry,
        put: Result<Option<VirtualNode>, Error>,
        now: &Condition,
    ) -> Result<(), Error> {
        let node = match &put {
            Ok(node) => node.clone(),
            Err(_) => entry.node.clone().filter(VirtualNode::is_ours),
        };
        let said = match node {
            Some(node) => {
                let known = desired::with_status(node, entry.node.as_ref(), entry.node_before.as_ref());
                self.put_status(cluster, entry, &known, now).await
            }
            None => Ok(()),
        };
        put.and(said)
    }

    /// Whether the Common Area could not be seen yet, and that means nothing.
    fn is_starting(&self) -> bool {
        !*self.begun.borrow() && self.since.elapsed() < self.patience
    }

    fn condition(&self, cluster: &str, entry: &ClusterEntry) -> Condition {
        let now = Instant::now();
        let is_heard = *self.begun.borrow() && self.knowledge.is_heard(now);
        let has_left = self.knowledge.has_left(cluster, entry, now);
        Condition { is_heard, standing: self.knowledge.standing(cluster, now), has_left }
    }

    /// The Node of the offer; nothing where somebody else's has its name.
    async fn put(
        &self,
        cluster: &String,
        entry: &ClusterEntry,
        takes_pods: bool,
    ) -> Result<Option<VirtualNode>, Error> {
        let Some(offered) = entry.offered() else { return Ok(None) };
        let (clusters, have) = (&self.knowledge.clusters, entry.node.as_ref());
        let labels = entry.node_labels().map(remembered);
        let want = match (have, entry.node_before.as_ref().or(labels.as_ref())) {
            (None, Some(before)) => node_after(cluster, offered, before, takes_pods),
            (have, _) => node(cluster, offered, have, takes_pods),
        };
        let put = match have.is_none_or(VirtualNode::is_ours) {
            true => clusters.put_ours(&self.writer, NODE, (have, &want), VirtualNode::is_ours).await,
            false => Err(Error::NotOurs { kind: "Node".into(), name: want.name_any() }),
        };
        let refused = match &put {
            Err(error @ Error::NotOurs { .. }) => Some(error.to_string()),
            Err(error) => error.refusal().map(|words| Error::Refused(words).to_string()),
            Ok(_) => None,
        };
        if entry.node_refused != refused {
            clusters.note(cluster, |entry| entry.node_refused = refused.clone());
            clusters.enqueue([(cluster.clone(), PEER)].into());
        }
        match put {
            Err(Error::NotOurs { .. }) => Ok(None),
            put => {
                let mut put = put?;
                if let Some(copy) = put.as_ref().or(have).filter(|node| !node.is_made_here()) {
                    put = Some(clusters.write(NODE, copy, self.writer.own(copy)).await?);
                }
                let labels = |node: &VirtualNode| node.labels().clone();
                if put.as_ref().is_some_and(|put| have.map(labels) != Some(labels(put))) {
                    // It may be selected now, or not any more.
                    self.knowledge.enqueue_offloaded(NAMESPACE.and(STATUS));
                }
                Ok(put.or_else(|| have.cloned()))
            }
        }
    }

    /// The Node as it is, but it takes no new Pods.
    async fn keep(&self, entry: &ClusterEntry) -> Result<Option<VirtualNode>, Error> {
        let Some(have) = entry.node.as_ref().filter(|node| node.is_ours()) else { return Ok(None) };
        let want = desired::without_new_pods(have);
        let kept = self.knowledge.clusters.put(&self.writer, NODE, Some(have), &want).await?;
        Ok(Some(kept.unwrap_or_else(|| have.clone())))
    }

    /// The Node as it was before somebody deleted it, but it takes no new Pods: its Pods would go with it.
    async fn restore(&self, entry: &ClusterEntry) -> Result<Option<VirtualNode>, Error> {
        let Some(before) = &entry.node_before else { return Ok(None) };
        let want = desired::anew(before);
        let put = self.knowledge.clusters.put_ours(&self.writer, NODE, (None, &want), VirtualNode::is_ours);
        put.await
    }

    async fn put_status(
        &self,
        cluster: &str,
        entry: &ClusterEntry,
        node: &VirtualNode,
        now: &Condition,
    ) -> Result<(), Error> {
        let offered = entry.offered().filter(|offered| desired::is_valid(offered));
        let refused = refused(&self.refusals, &self.knowledge.us.cluster, cluster);
        let want = status(cluster, node, offered, now, refused.as_ref(), Timestamp::now());
        let Some(want) = want else { return Ok(()) };
        self.knowledge.clusters.put_status(&self.writer, NODE, node, &want).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
