//! What a hunt found.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use e2e::chaos::{coverage::Coverage, hunt::Report};

/// Of all runs.
#[derive(Default)]
pub(crate) struct Sum {
    runs: usize,
    pub(crate) failed: usize,
    lasted: Duration,
    requests: u64,
    coverage: Coverage,
}

impl Sum {
    pub(crate) fn add(&mut self, report: Report) {
        self.runs += 1;
        self.failed += usize::from(report.failure.is_some());
        self.lasted += report.lasted;
        self.requests += report.requests;
        self.coverage.add(report.coverage);
    }

    pub(crate) fn said(&self, took: Duration) -> String {
        let Self { runs, failed, lasted, requests, coverage } = self;
        format!(
            "{runs} seeds in {:.0} s, {failed} failed; {:.4} virtual years, {} operations, {} faults, {} pairs of both, {requests} requests",
            took.as_secs_f64(),
            lasted.as_secs_f64() / (365.25 * 24.0 * 3600.0),
            coverage.operations,
            coverage.faults,
            coverage.pairs.len(),
        )
    }
}

/// Keeps the logs of a run; the folder that has them.
pub(crate) fn keep(seed: u64, report: &Report) -> PathBuf {
    let folder =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/e2e")).join(format!("hunt.{seed}"));
    let kept = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("network.log"), &report.network))
        .and_then(|()| fs::write(folder.join("daemons.log"), &report.daemons));
    if let Err(error) = kept {
        eprintln!("{}: {error}", folder.display());
    }
    folder
}
