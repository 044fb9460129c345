//! The Lease of a virtual node in `kube-node-lease`, by which Kubernetes knows that somebody answers for the Node. It goes with its Node.

use std::{collections::BTreeMap, time::Instant};

use api::{label as general, offload::names};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kit::{index::Shared, write::Error};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::HEARTBEAT;
use crate::offload::view::VirtualNode;

/// Where Kubernetes looks for them.
const NAMESPACE: &str = "kube-node-lease";
/// What the Lease says of how often it is renewed.
const SECONDS: u8 = 40;

/// When the Leases were renewed last. Cloning shares it.
#[derive(Clone)]
pub(super) struct Heartbeats {
    leases: Api<Lease>,
    renewed: Shared<BTreeMap<String, Instant>>,
}

impl Heartbeats {
    pub(super) fn new(local: Client) -> Self {
        Self { leases: Api::namespaced(local, NAMESPACE), renewed: Shared::default() }
    }

    /// Whether the Lease of this cluster's Node is to be renewed.
    pub(super) fn is_due(&self, cluster: &str, now: Instant) -> bool {
        // Not to miss a turn by a moment.
        let passed = |at: &Instant| now.saturating_duration_since(*at) * 10 >= HEARTBEAT * 9;
        self.renewed.with(|renewed| renewed.get(cluster).is_none_or(passed))
    }

    /// Renews the Lease of this cluster's Node.
    pub(super) async fn renew(&self, cluster: &str, node: &VirtualNode, now: Timestamp) -> Result<(), Error> {
        let name = names::virtual_node(cluster);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.meta().uid}],
            },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": SECONDS,
                "renewTime": format!("{now:.6}"),
            },
        });
        let params = PatchParams::apply(general::MEMBER).force();
        self.leases.patch(&name, &params, &Patch::Apply(&lease)).await?;
        self.renewed.with(|renewed| renewed.insert(cluster.to_owned(), Instant::now()));
        Ok(())
    }
}
