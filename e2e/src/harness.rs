//! Runs the whole-system tests of a program: those of the gate, or all.
//!
//! Arguments are those that cargo's users know (`libtest-mimic`), and any number of filters, in which `set/vanish` is `set::vanish`. Tests that
//! are not in the [`gate`] count as ignored; with `FREEPORT_TESTS=all` they do not. Tests that fail run once more, alone, when the others
//! are done.
//!
//! | module | holds |
//! |---|---|
//! | [`budget`] | how long a program starts tests |
//! | [`gate`] | the tests of the gate |
//! | [`record`] | what is kept of a test that fails |
//! | `report` | the last lines of the output |
//! | [`waits`] | how long tests waited |

pub mod budget;
pub mod gate;
pub mod record;
mod report;
pub mod waits;

use std::{
    env,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use clap::Parser;
use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

pub use inventory;

pub use self::report::folder;

use self::report::Ran;

/// So many tests that fail run once more. With more unsteady ones the run has failed whatever they do.
const AGAIN: usize = 2;

/// A test, as `#[e2e::test]` notes it.
pub struct Test {
    /// Path of its module, which begins with the name of the program.
    pub module: &'static str,
    /// Of its function.
    pub name: &'static str,
    /// Runs only if somebody asks for it.
    pub is_ignored: bool,
    /// Fails by panicking.
    pub run: fn(),
}

inventory::collect!(Test);

impl Test {
    /// `folder::file::name`.
    fn path(&self) -> String {
        let within = self.module.split_once("::").map_or("", |(_, within)| within);
        if within.is_empty() { self.name.to_owned() } else { format!("{within}::{}", self.name) }
    }
}

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    known: Arguments,
    /// More filters: tests whose names contain any of them are run.
    #[arg(value_name = "FILTER")]
    more: Vec<String>,
}

/// Runs the tests of this program.
pub fn main() -> ExitCode {
    let Args { mut known, more } = Args::parse();
    let filters: Vec<_> =
        known.filter.take().into_iter().chain(more).map(|filter| filter.replace('/', "::")).collect();
    let tests = chosen(&filters, known.exact);
    if known.list {
        let _listed = libtest_mimic::run(&known, trials(&tests, &known, &Log::default()));
        return ExitCode::SUCCESS;
    }
    record::keep_what_fails();
    budget::begin();
    let log = Log::default();
    // A thread that waits for its turn costs nothing.
    known.test_threads = known.test_threads.or(Some(tests.len().max(2)));
    let mut conclusion = libtest_mimic::run(&known, trials(&tests, &known, &log));
    let (mut ran, mut again) = (log.take(), Vec::new());
    record::keep("turns", &report::turns(&ran));
    record::keep("waits", &waits::table());
    let mut failed: Vec<_> = ran.iter_mut().filter(|ran| ran.failure.is_some()).collect();
    if (1..=AGAIN).contains(&failed.len()) && !budget::is_over() {
        failed.iter_mut().for_each(|ran| ran.set_aside());
        let failed: Vec<_> = failed.iter().map(|ran| ran.path.as_str()).collect();
        println!("== once more, alone: {}", failed.join(", "));
        let mut tests = tests;
        tests.retain(|(path, _)| failed.contains(&path.as_str()));
        conclusion = one_after_the_other(trials(&tests, &known, &log));
        again = log.take();
    }
    report::print(&ran, &again);
    if ran.is_empty() && conclusion.num_ignored > 0 {
        println!("none of these tests is in the gate: --include-ignored runs them");
    }
    conclusion.exit_code()
}

/// Tests of the program whose paths contain any of `filters`, or with `exact` are one of them; all if there are none.
fn chosen(filters: &[String], exact: bool) -> Vec<(String, &'static Test)> {
    let is_chosen = |path: &str| {
        let matches = |filter: &String| if exact { path == filter } else { path.contains(filter.as_str()) };
        filters.is_empty() || filters.iter().any(matches)
    };
    let tests = inventory::iter::<Test>.into_iter().map(|test| (test.path(), test));
    let mut tests: Vec<_> = tests.filter(|(path, _)| is_chosen(path)).collect();
    tests.sort_by(|(one, _), (other, _)| one.cmp(other));
    tests
}

fn trials(tests: &[(String, &'static Test)], known: &Arguments, log: &Log) -> Vec<Trial> {
    let shows_all = known.nocapture || known.show_output;
    let all = env::var("FREEPORT_TESTS").is_ok_and(|which| which == "all");
    let trial = |(path, test): &(String, &'static Test)| {
        let is_ignored = test.is_ignored || !all && gate::reason(path).is_none();
        let (path, run, log) = (path.clone(), test.run, log.clone());
        Trial::test(path.clone(), move || attempt(path, run, shows_all, &log)).with_ignored_flag(is_ignored)
    };
    tests.iter().map(trial).collect()
}

fn one_after_the_other(trials: Vec<Trial>) -> Conclusion {
    let args = Arguments { test_threads: Some(1), include_ignored: true, ..Arguments::default() };
    libtest_mimic::run(&args, trials)
}

fn attempt(path: String, run: fn(), shows_all: bool, log: &Log) -> Result<(), Failed> {
    let (turn, failure) = record::run(&path, run, shows_all);
    let failed = failure.as_ref().map(Failed::from);
    log.add(Ran { path, turn, failure });
    failed.map_or(Ok(()), Err)
}

/// Tests that ran, in the order of their ends.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Ran>>>);

impl Log {
    fn add(&self, ran: Ran) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ran);
    }

    fn take(&self) -> Vec<Ran> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
