//! What an operator can measure of offloading.

use prometheus::{IntGauge, IntGaugeVec, Opts, Registry};

use super::{registered, tally::Tally};

const NAMESPACES: &str = "NamespaceOffloadings of this cluster, by phase";
const TWINS: &str =
    "Entries of the NamespaceMap of another cluster for this one, by that cluster and what they say";
const NODES: &str = "Virtual Nodes of this cluster, by the host and the status of their condition Ready";
const PODS: &str =
    "Pods of this cluster that are bound to the virtual Node of a host, by the host and their phase";
const HOSTED: &str = "Pods here that were made for another cluster, by that cluster and their phase";
const LEFT_OUT: &str =
    "ShadowPods of another cluster for this one for which there is no room here, by that cluster";
const EXPIRY: &str =
    "When a certificate of the webhook in its Secret expires, in seconds since 1970; 0 without one";

/// Gauges of offloading. Cloning shares them.
#[derive(Clone)]
pub struct Offload {
    namespaces: IntGaugeVec,
    twins: IntGaugeVec,
    nodes: IntGaugeVec,
    pods: IntGaugeVec,
    hosted: IntGaugeVec,
    left_out: IntGaugeVec,
    expiry: IntGaugeVec,
}

impl Offload {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            registered(registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let by_cluster = ["cluster", "phase"];
        Ok(Self {
            namespaces: gauges("offload_namespaces", NAMESPACES, &["phase"])?,
            twins: gauges("offload_twins", TWINS, &by_cluster)?,
            nodes: gauges("offload_nodes", NODES, &["cluster", "ready"])?,
            pods: gauges("offload_pods", PODS, &by_cluster)?,
            hosted: gauges("offload_hosted_pods", HOSTED, &by_cluster)?,
            left_out: gauges("offload_shadow_pods_left_out", LEFT_OUT, &["cluster"])?,
            expiry: gauges("offload_certificate_expiry_timestamp_seconds", EXPIRY, &["certificate"])?,
        })
    }

    /// Counts NamespaceOffloadings here, by `phase`.
    pub fn namespaces(&self) -> Tally {
        Tally::new(self.namespaces.clone())
    }

    /// Counts twins here, by `cluster`, the home, and `phase`.
    pub fn twins(&self) -> Tally {
        Tally::new(self.twins.clone())
    }

    /// Counts virtual Nodes here, by `cluster`, the host, and `ready`.
    pub fn nodes(&self) -> Tally {
        Tally::new(self.nodes.clone())
    }

    /// Counts Pods here that are bound to a virtual Node, by `cluster`, the host, and `phase`.
    pub fn pods(&self) -> Tally {
        Tally::new(self.pods.clone())
    }

    /// Counts Pods here that were made for others, by `cluster`, the home, and `phase`.
    pub fn hosted(&self) -> Tally {
        Tally::new(self.hosted.clone())
    }

    /// Counts ShadowPods of others for which there is no room here, by `cluster`, the home.
    pub fn left_out(&self) -> Tally {
        Tally::new(self.left_out.clone())
    }

    /// Gauge of the expiry of this certificate, `authority` or `leaf`.
    pub fn expiry(&self, certificate: &str) -> IntGauge {
        self.expiry.with_label_values(&[certificate])
    }
}
