//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// One export after the other.
    Single,
    /// Many exports at once.
    Bulk,
    /// Their withdrawal.
    Withdraw,
    /// Endpoints that change at a steady rate.
    Churn,
    /// A member that starts with imports waiting.
    Join,
    /// All daemons start again.
    Restart,
    /// A minute in which nothing happens.
    Idle,
    /// A member that starts in a cluster with many Services that nobody exports.
    Unused,
    /// Many members, all but three of them hollow: played by this program.
    Hollow,
}

/// Measures what Services cost, beside the floor. Clusters and daemons share this machine: ratios count and not seconds.
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// What to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = What::value_variants().to_vec())]
    pub(crate) what: Vec<What>,
    /// How many Services there are, each number in a turn of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [300, 1000])]
    pub(crate) services: Vec<usize>,
    /// Exports one after the other.
    #[arg(long, default_value_t = 100)]
    pub(crate) samples: usize,
    /// Seconds in which endpoints change, at each rate.
    #[arg(long, default_value_t = 20)]
    pub(crate) churn_seconds: u32,
    /// Changes of endpoints a second.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 50, 500])]
    pub(crate) rates: Vec<u32>,
    /// Seconds in which nothing happens.
    #[arg(long, default_value_t = 60)]
    pub(crate) idle_seconds: u64,
    /// Services that nobody exports, of ten endpoints each.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) unused: usize,
    /// Hollow members, each number in a turn of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 500])]
    pub(crate) hollow: Vec<usize>,
    /// Services that each of them exports.
    #[arg(long, default_value_t = 2)]
    pub(crate) hollow_services: usize,
    /// `NAME=VALUE` in the environment of the daemons, to try something out: another allocator by `LD_PRELOAD`, for example.
    #[arg(long, value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// What is measured, as the columns of the tables call it.
    #[arg(long, default_value = "unreleased")]
    pub(crate) release: String,
    /// Where the figures go.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Writes charts of all runs in the folder of `--json`, or of `--runs`, into this folder.
    #[arg(long)]
    pub(crate) svg: Option<PathBuf>,
    /// A page whose part between the markers becomes the tables of all those runs.
    #[arg(long)]
    pub(crate) page: Option<PathBuf>,
    /// Measures nothing: page and charts are made of the runs in this folder.
    #[arg(long)]
    pub(crate) runs: Option<PathBuf>,
    /// Cargo says this to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    pub(crate) fn wants(&self, what: What) -> bool {
        self.what.contains(&what)
    }

    /// The folder with the runs of all releases.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let of_json = || Some(self.json.as_ref()?.parent()?.to_owned());
        self.runs.clone().or_else(of_json)
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
