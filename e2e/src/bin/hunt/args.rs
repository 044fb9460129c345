//! Arguments of the hunt.

use std::{
    ops::Range,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Parser;
use e2e::chaos::hunt::Attempt;
use kit::planted::Defect;

/// Runs chaos on the simulated ground, by seeds, and shows those that fail.
///
/// Each run is a ClusterSet of three to five clusters in virtual time: users export and change Services, daemons are killed, links break, clusters are
/// restored. It fails if an invariant is broken at any write, or if the clusters do not have what users want when it is over.
#[derive(Parser)]
pub(crate) struct Args {
    /// Begin no more runs after so many minutes: 0.5 are thirty seconds.
    #[arg(long, value_name = "N")]
    pub(crate) minutes: Option<f64>,
    /// Run one seed, show why it fails, and keep its logs in target/e2e.
    #[arg(long, value_name = "N", conflicts_with_all = ["minutes", "seeds"])]
    pub(crate) seed: Option<u64>,
    /// Run these seeds, without the last one. Fresh ones if nothing is said.
    #[arg(long, value_name = "A..B", value_parser = range)]
    seeds: Option<Range<u64>>,
    /// Virtual seconds of trouble in each run.
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// Runs at once; as many as there are cores if nothing is said.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Find fewer steps that fail in the same way.
    #[arg(long, requires = "seed")]
    pub(crate) shrink: bool,
    /// Carry out these steps of the plan alone, by their numbers.
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "seed")]
    only: Option<Vec<usize>>,
    /// Plant this defect in the daemons. Needs a build with debug assertions.
    #[arg(long, value_name = "NAME", value_parser = defect)]
    planted: Option<Defect>,
}

impl Args {
    /// The seeds to run: fresh ones come from the time.
    pub(crate) fn seeds(&self) -> Range<u64> {
        let fresh =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64) << 10;
        self.seeds.clone().unwrap_or_else(|| fresh()..u64::MAX)
    }

    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(cores)
    }

    pub(crate) fn attempt(&self, seed: u64) -> Attempt {
        let lasts = Duration::from_secs(self.seconds);
        Attempt { seed, lasts, only: self.only.clone(), planted: self.planted }
    }

    /// The command that runs a seed again.
    pub(crate) fn command(&self, seed: u64) -> String {
        let planted = self.planted.map(|defect| format!(" --planted {}", defect.name())).unwrap_or_default();
        format!("cargo run -p e2e --bin hunt -- --seed {seed} --seconds {}{planted}", self.seconds)
    }
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let seeds = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    seeds.ok_or_else(|| "two numbers with two dots between them, 1..100 for one".to_owned())
}

fn defect(name: &str) -> Result<Defect, String> {
    let names = || Defect::ALL.map(Defect::name).join(", ");
    if !cfg!(debug_assertions) {
        return Err(
            "this build has no debug assertions: set CARGO_PROFILE_BENCH_DEBUG_ASSERTIONS=true".to_owned()
        );
    }
    Defect::named(name).ok_or_else(|| format!("one of {}", names()))
}
