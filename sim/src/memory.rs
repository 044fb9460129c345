//! What the controllers of Kubernetes remember of what they observed. Kubernetes keeps that in no object, so a backup does not have it.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Last renewal of each Node's Lease, and when it was observed.
    pub(crate) heartbeats: BTreeMap<String, (Value, Instant)>,
    /// Names of missing Nodes that have Pods, and since when they are missing.
    pub(crate) missing: BTreeMap<String, Instant>,
}
