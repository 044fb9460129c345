//! What an operator can measure of API binding. What is written at providers is among all writes, as cluster `provider`.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntGaugeVec, Opts, Registry};

use super::{BUCKETS, registered, tally::Tally};

const CONTRACTS: &str = "Contracts, by the side that this cluster has in them, and how they are";
const OBJECTS: &str = "Objects of bound APIs in this cluster";
const UNSYNCED: &str = "Objects of bound APIs in this cluster that are not in step with their copies";
const WATCHES: &str = "Watches of copies at providers";
const SECONDS: &str = "Time from when a change was seen until it was written at the other side, in seconds";

/// Metrics of binding. Cloning shares them.
#[derive(Clone)]
pub struct Bind {
    contracts: IntGaugeVec,
    objects: IntGaugeVec,
    unsynced: IntGaugeVec,
    watches: IntGaugeVec,
    seconds: HistogramVec,
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the provider.
    Up,
    /// To the consumer.
    Down,
}

impl Bind {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            registered(registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let seconds = HistogramOpts::new("bind_seconds", SECONDS).buckets(BUCKETS.to_vec());
        Ok(Self {
            contracts: gauges("bind_contracts", CONTRACTS, &["side", "state"])?,
            objects: gauges("bind_objects", OBJECTS, &["api"])?,
            unsynced: gauges("bind_unsynced", UNSYNCED, &["api", "reason"])?,
            watches: gauges("bind_watches", WATCHES, &["api"])?,
            seconds: registered(registry, HistogramVec::new(seconds, &["direction"]))?,
        })
    }

    /// Counts contracts, by `side`, `provider` or `consumer`, and `state`.
    pub fn contracts(&self) -> Tally {
        Tally::new(self.contracts.clone())
    }

    /// Counts objects here, by `api`.
    pub fn objects(&self) -> Tally {
        Tally::new(self.objects.clone())
    }

    /// Counts objects here that are not in step, by `api` and `reason`.
    pub fn unsynced(&self) -> Tally {
        Tally::new(self.unsynced.clone())
    }

    /// Counts watches at providers, by `api`.
    pub fn watches(&self) -> Tally {
        Tally::new(self.watches.clone())
    }

    /// A change that was seen so long ago is written at the other side.
    pub fn carried(&self, direction: Direction, took: Duration) {
        let direction = match direction {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        self.seconds.with_label_values(&[direction]).observe(took.as_secs_f64());
    }
}
