//! What was measured, as it is kept: one file for each release.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use e2e::figures::{Percentiles, ms, percentiles};
use serde::{Deserialize, Serialize};

/// Whose work was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Freeport,
    /// A bare client that makes the same writes.
    Floor,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) release: String,
    pub(crate) at: String,
    pub(crate) cores: usize,
    /// Whether the daemons were.
    pub(crate) optimized: bool,
    pub(crate) phases: Vec<Phase>,
}

/// One thing that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) what: String,
    pub(crate) side: Side,
    /// How many Services were there.
    pub(crate) services: usize,
    /// Until everything was as it has to be.
    pub(crate) seconds: f64,
    /// Until the first one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
    pub(crate) costs: Costs,
}

/// In milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
}

impl Latency {
    pub(crate) fn of(times: Vec<Duration>) -> Self {
        let Percentiles { count, p50, p99, longest } = percentiles(times);
        Self { count, p50: ms(p50), p99: ms(p99), longest: ms(longest) }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Costs {
    /// From the beginning until nobody wrote any more.
    pub(crate) seconds: f64,
    /// None on the side of the floor.
    pub(crate) daemons: BTreeMap<String, Process>,
    /// By cluster.
    pub(crate) servers: BTreeMap<String, Server>,
    /// By cluster, then by verb and kind: requests that wrote, from the audit logs, without Leases.
    pub(crate) writes: BTreeMap<String, BTreeMap<String, usize>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_megabytes: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Server {
    /// By component of the control plane.
    pub(crate) cpu_seconds: BTreeMap<String, f64>,
    /// By verb and kind, whoever made them.
    pub(crate) requests: BTreeMap<String, f64>,
    /// Bodies of requests that wrote, by verb and kind, whoever made them.
    pub(crate) bytes: BTreeMap<String, f64>,
}

impl Run {
    pub(crate) fn read(file: &Path) -> Self {
        let text = fs::read(file).unwrap();
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Those in a folder, by the names of their files.
    pub(crate) fn read_all(folder: &Path) -> Vec<Self> {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            files.filter(|file| file.extension().is_some_and(|end| end == "json")).collect();
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }

    pub(crate) fn write(&self, file: &Path) {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(file, serde_json::to_vec_pretty(self).unwrap()).unwrap();
    }

    pub(crate) fn phase(&self, what: &str, side: Side, services: usize) -> Option<&Phase> {
        let is = |phase: &&Phase| phase.what == what && phase.side == side && phase.services == services;
        self.phases.iter().find(is)
    }
}
