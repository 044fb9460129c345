//! Virtual nodes: watches OffloadPeers, offers, Leases of members, and the Nodes that it makes; writes a Node for each cluster that is
//! to be used and has offered something, its status, and its Lease in `kube-node-lease`; deletes a Node that is not asked for any
//! more once no twin is left there. Safe to run twice: a Node is a function of the offer and of how it stands with its host.
//!
//! A Node that is deleted by mistake takes its Pods along within 40 s, so it is made anew at once. Nothing that merely vanished takes a
//! Node away.

mod desired;
mod heartbeat;
mod labels;

use std::time::{Duration, Instant};

use api::name::member_lease;
use jiff::Timestamp;
use kit::{
    boot::Env,
    metrics::Tally,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::ResourceExt;
use presence::vouch::Vouching;
use tokio::sync::watch;

use self::{
    desired::{Condition, node, node_after, status},
    heartbeat::Heartbeats,
};
use super::{
    index::{Asked, ClusterEntry, NAMESPACE, NODE, PEER, STATUS},
    knowledge::Knowledge,
    view::VirtualNode,
};

/// How often the Lease of a Node is renewed: Kubernetes gives the Node up after 50 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What becomes of the Node of a cluster.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// It has to be there, made of the offer.
    Put,
    /// It stays as it is.
    Keep,
    /// It was deleted, and has to be there as it was.
    Restore,
    /// It goes.
    Delete,
    /// There is none, and none is asked for.
    Nothing,
}

/// What becomes of the Node. `is_seen`: the Common Area has been seen, so that what is not there was not merely not listed.
/// `is_current`: what the host offers is not that of a backup. `has_asked`: whether a Namespace ever asked for a twin there.
fn plan(entry: &ClusterEntry, is_seen: bool, is_current: bool, has_asked: impl Fn(&String) -> bool) -> Plan {
    let is_offered = is_current && entry.offered().is_some_and(desired::is_valid);
    match (entry.outgoing(), &entry.node) {
        (Asked::Yes(()), _) if is_offered => Plan::Put,
        (Asked::No, Some(_)) if is_seen && !entry.has_twins(has_asked) => Plan::Delete,
        (_, Some(_)) => Plan::Keep,
        (Asked::Yes(()) | Asked::Unknown, None) if entry.node_before.is_some() => Plan::Restore,
        (_, None) => Plan::Nothing,
    }
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Nodes {
    knowledge: Knowledge,
    writer: Writer,
    heartbeats: Heartbeats,
    tally: Tally,
    /// Whether the Common Area has been seen and our ID is ours.
    begun: watch::Receiver<bool>,
    since: Instant,
    /// How long the Common Area may take to be seen.
    patience: Duration,
    /// Where there is a session.
    vouching: Option<Vouching<String>>,
}

impl Nodes {
    pub(super) fn new(knowledge: Knowledge, env: &Env, writer: Writer, begun: watch::Receiver<bool>) -> Self {
        Self {
            knowledge,
            writer,
            heartbeats: Heartbeats::new(env.client.clone()),
            tally: env.metrics.offload().nodes(),
            begun,
            since: Instant::now(),
            patience: env.pace.stale(),
            vouching: None,
        }
    }

    /// In a session, in which hosts vouch for what they offer.
    pub(super) fn vouched(self, vouching: Vouching<String>) -> Self {
        Self { vouching: Some(vouching), ..self }
    }

    /// Whether what the host offers is so now.
    fn is_current(&self, host: &str) -> bool {
        let us = &self.knowledge.us.cluster;
        self.vouching.as_ref().is_none_or(|vouching| vouching.is_current(us, &member_lease(host)))
    }

    /// Brings the Node of one cluster up to date, and renews its Lease.
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
        // First, since a Node whose Lease is not renewed is given up, whatever of it is refused.
        if let Some(node) = entry.node.as_ref().filter(|node| node.is_ours()) {
            self.renew(cluster, node).await?;
        }
        let now = self.condition(cluster);
        let has_asked = |namespace: &String| {
            let entry = self.knowledge.namespaces.get(namespace);
            entry.is_some_and(|entry| entry.has_asked(cluster))
        };
        let node = match plan(&entry, now.is_heard, self.is_current(cluster), has_asked) {
            // What is to be said of it is not known yet.
            _ if self.is_starting() => entry.node.clone().filter(VirtualNode::is_ours),
            Plan::Nothing => {
                if matches!(entry.outgoing(), Asked::No) {
                    self.knowledge.clusters.note(cluster, |entry| entry.node_before = None);
                }
                return Ok(Outcome::Done);
            }
            Plan::Delete => {
                if let Some(node) = entry.node.as_ref().filter(|node| node.is_ours()) {
                    self.knowledge.clusters.delete(&self.writer, NODE, node, false).await?;
                    self.knowledge.enqueue_offloaded(NAMESPACE.and(STATUS));
                }
                return Ok(Outcome::Done);
            }
            // While nothing is heard of the leader the offer is the last one that was.
            Plan::Put => self.put(cluster, &entry, now.takes_pods()).await?,
            Plan::Keep => self.keep(&entry).await?,
            Plan::Restore => self.restore(&entry).await?,
        };
        if let Some(node) = node {
            if !self.is_starting() {
                let known =
                    desired::with_status(node.clone(), entry.node.as_ref(), entry.node_before.as_ref());
                self.put_status(cluster, &entry, &known, &now).await?;
            }
            self.renew(cluster, &node).await?;
        }
        Ok(Outcome::Requeue(HEARTBEAT))
    }

    async fn renew(&self, cluster: &str, node: &VirtualNode) -> Result<(), Error> {
        match self.heartbeats.is_due(cluster, Instant::now()) {
            true => self.heartbeats.renew(cluster, node, Timestamp::now()).await,
            false => Ok(()),
        }
    }

    /// Whether the Common Area could not be seen yet, and that means nothing.
    fn is_starting(&self) -> bool {
        !*self.begun.borrow() && self.since.elapsed() < self.patience
    }

    fn condition(&self, cluster: &str) -> Condition {
        let is_heard = *self.begun.borrow() && self.knowledge.is_heard(Instant::now());
        Condition { is_heard, standing: self.knowledge.standing(cluster) }
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
        let want = match (have, &entry.node_before) {
            (None, Some(before)) => node_after(cluster, offered, before, takes_pods),
            (have, _) => node(cluster, offered, have, takes_pods),
        };
        let put = match have.is_none_or(VirtualNode::is_ours) {
            true => clusters.put_ours(&self.writer, NODE, (have, &want), VirtualNode::is_ours).await,
            false => Err(Error::NotOurs { kind: "Node".into(), name: want.name_any() }),
        };
        let refused = match &put {
            Err(error @ (Error::NotOurs { .. } | Error::Refused(_))) => Some(error.to_string()),
            _ => None,
        };
        if entry.node_refused != refused {
            clusters.note(cluster, |entry| entry.node_refused = refused.clone());
            clusters.enqueue([(cluster.clone(), PEER)].into());
        }
        match put {
            Err(Error::NotOurs { .. }) => Ok(None),
            put => {
                let put = put?;
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
        let Some(want) = status(cluster, node, offered, now, Timestamp::now()) else { return Ok(()) };
        self.knowledge.clusters.put_status(&self.writer, NODE, node, &want).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(peer: &Value, offer: bool, node: bool) -> ClusterEntry {
        let read = |object: Value| serde_json::from_value(object).unwrap();
        let spec = json!({"host": "east", "home": "west", "resources": {"cpu": "4"}, "publicKey": ""});
        let offered = json!({"metadata": {"name": "1.east.west"}, "spec": spec});
        ClusterEntry {
            peer: serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": peer})).unwrap(),
            offer: offer.then(|| serde_json::from_value(offered).unwrap()),
            node: node.then(|| read(json!({"metadata": {"name": "freeport-east"}}))),
            ..ClusterEntry::default()
        }
    }

    #[test]
    fn only_a_decision_takes_a_node_away() {
        let plan = |entry: &ClusterEntry, is_seen, is_current| plan(entry, is_seen, is_current, |_| true);
        let used = json!({"outgoing": {}});
        assert_eq!(plan(&entry(&used, true, false), true, true), Plan::Put);
        assert_eq!(plan(&entry(&used, false, false), true, true), Plan::Nothing, "nothing is offered");
        assert_eq!(plan(&entry(&used, true, true), true, false), Plan::Keep, "it may be of a backup");
        assert_eq!(
            plan(&entry(&used, false, true), true, true),
            Plan::Keep,
            "the offer vanished, or was withdrawn"
        );
        assert_eq!(
            plan(&entry(&json!({"outgoing": 7}), true, true), true, true),
            Plan::Keep,
            "it does not decode"
        );
        let mut deleted = entry(&used, false, true);
        deleted.node_before = deleted.node.take();
        assert_eq!(plan(&deleted, true, true), Plan::Restore, "nothing is offered, and somebody deleted it");
        deleted.peer = entry(&json!({}), false, false).peer;
        assert_eq!(plan(&deleted, true, true), Plan::Nothing, "it is not asked for");
        let mut gone = entry(&json!({}), true, true);
        assert_eq!(plan(&gone, true, true), Plan::Delete);
        assert_eq!(plan(&gone, false, true), Plan::Keep, "the Common Area was not seen");
        gone.peer = None;
        assert_eq!(plan(&gone, true, true), Plan::Keep, "it is not known why the OffloadPeer is gone");
        gone.peer_withdrawn = Some(false);
        assert_eq!(plan(&gone, true, true), Plan::Keep, "with its CRD");
        gone.peer_withdrawn = Some(true);
        assert_eq!(plan(&gone, true, true), Plan::Delete);
        let map = json!({"metadata": {"name": "1.west.east"}, "spec": {
            "origin": "west", "destination": "east", "desiredMapping": {"shop": "shop-west"},
        }});
        gone.own_map = serde_json::from_value(map).unwrap();
        assert_eq!(plan(&gone, true, true), Plan::Keep, "a twin is left there");
        let said = json!({"metadata": {"name": "1.west.east"}, "status": {"currentMapping": {"shop": {}}}});
        gone.own_map = serde_json::from_value(said).unwrap();
        assert_eq!(super::plan(&gone, true, true, |name| name == "shop"), Plan::Keep, "a twin goes there");
        assert_eq!(super::plan(&gone, true, true, |_| false), Plan::Delete, "nobody asked for what it says");
    }
}
