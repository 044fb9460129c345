//! What an operator can measure of the ways to the endpoints of other clusters.

use prometheus::{IntCounterVec, IntGauge, Opts, Registry};

use super::registered;

const PROBES: &str = "Connects to endpoints of other clusters, by what became of them";
const UNREACHED: &str = "Clusters of which no endpoint answers from here any more";

/// Counts connects. Cloning shares it.
#[derive(Clone)]
pub struct Reach {
    probes: IntCounterVec,
    unreached: IntGauge,
}

impl Reach {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let probes = IntCounterVec::new(Opts::new("probes_total", PROBES), &["result"]);
        let unreached = IntGauge::new("clusters_unreached", UNREACHED);
        Ok(Self { probes: registered(registry, probes)?, unreached: registered(registry, unreached)? })
    }

    /// A connect ended so.
    pub fn probed(&self, result: &str) {
        self.probes.with_label_values(&[result]).inc();
    }

    /// So many clusters are not reached.
    pub fn unreached(&self, clusters: usize) {
        self.unreached.set(i64::try_from(clusters).unwrap_or(i64::MAX));
    }
}
