//! Leases of virtual nodes: watches the Nodes that we made; renews the Lease of each in `kube-node-lease`, by which Kubernetes knows that
//! somebody answers for it. A controller of its own: a Node that is not renewed is given up, so nothing that goes wrong with the Node
//! itself may hold that up. A Lease goes with its Node.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::offload::names;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kit::{
    index::Shared,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{ResourceExt, api::ObjectMeta};
use serde_json::json;

use super::HEARTBEAT;
use crate::offload::{knowledge::Knowledge, view::VirtualNode};

/// Where Kubernetes looks for them.
pub(crate) const NAMESPACE: &str = "kube-node-lease";
/// What the Lease says of how often it is renewed.
const SECONDS: u8 = 40;
/// How soon a renewal that failed is tried again, however often it has failed.
const AGAIN: Duration = Duration::from_secs(5);

/// When a Lease was renewed last, and the uid of the Node that it was renewed for.
type Renewal = (Instant, Option<String>);

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Heartbeats {
    knowledge: Knowledge,
    writer: Writer,
    renewed: Shared<BTreeMap<String, Renewal>>,
}

impl Heartbeats {
    pub(super) fn new(knowledge: Knowledge, writer: Writer) -> Self {
        Self { knowledge, writer, renewed: Shared::default() }
    }

    /// Renews the Lease of this cluster's Node, if it is time.
    pub(super) async fn reconcile(self, cluster: String) -> Result<Outcome, Error> {
        let entry = self.knowledge.clusters.get(&cluster);
        let node = entry.as_ref().and_then(|entry| entry.node.as_ref()).filter(|node| node.is_ours());
        let Some(node) = node else { return Ok(Outcome::Done) };
        let renewed = match self.is_due(&cluster, node.uid().as_ref(), Instant::now()) {
            true => self.renew(&cluster, node, Timestamp::now()).await,
            false => Ok(()),
        };
        Ok(match renewed {
            Ok(()) => Outcome::Requeue(HEARTBEAT),
            // Not as a failure: the waits after those become longer than Kubernetes waits.
            Err(error) => {
                tracing::warn!(cluster, %error, "cannot renew the Lease of the virtual Node, trying again");
                Outcome::Requeue(AGAIN)
            }
        })
    }

    fn is_due(&self, cluster: &str, node: Option<&String>, now: Instant) -> bool {
        // Not to miss a turn by a moment.
        let passed = |at: Instant| now.saturating_duration_since(at) * 10 >= HEARTBEAT * 9;
        self.renewed
            .with(|renewed| renewed.get(cluster).is_none_or(|(at, of)| passed(*at) || of.as_ref() != node))
    }

    async fn renew(&self, cluster: &str, node: &VirtualNode, now: Timestamp) -> Result<(), Error> {
        let (name, uid) = (names::virtual_node(cluster), node.uid());
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        };
        let at = Lease { metadata, ..Lease::default() };
        let lease = json!({
            "metadata": {
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
            },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": SECONDS,
                "renewTime": format!("{now:.6}"),
            },
        });
        self.writer.apply(&at, lease).await?;
        self.renewed.with(|renewed| renewed.insert(cluster.to_owned(), (Instant::now(), uid)));
        Ok(())
    }
}
