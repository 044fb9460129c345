//! Runs the whole-system tests of a program: those of the gate, or all.
//!
//! Arguments are those that cargo's users know (`libtest-mimic`), and any number of filters, in which `set/vanish` is `set::vanish`. Tests that
//! are not in the [`gate`] count as ignored; with `FREEPORT_TESTS=all` they do not. `--folder` names a folder of them. Tests that fail run
//! once more, alone, when the others are done.
//!
//! A test runs on the real ground, on the [simulated](crate::ground) one, or on both. On the simulated one its name begins with `simulated::`.
//!
//! | module | holds |
//! |---|---|
//! | [`budget`] | how long a program starts tests, and how many run at once |
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
use fleet::{
    packages,
    tools::{self, Tool},
};
use libtest_mimic::{Arguments, Conclusion, Failed, Trial};
use tokio::runtime::Runtime;

pub use inventory;

pub use self::report::folder;

use self::report::Ran;
use crate::ground;

/// So many tests that fail run once more. With more unsteady ones the run has failed whatever they do.
const AGAIN: usize = 2;

/// Begins the name of a test on the simulated ground.
const PREFIX: &str = "simulated::";
/// Folders whose tests run on the simulated ground too, and all of them in the gate.
const SIMULATED: &[&str] = &[
    "set::service::",
    "set::membership::",
    "set::vanish::",
    "set::chaos::",
    "set::faults::",
    "set::replicas::",
    "set::offload::",
    "areas::",
    "bind::",
];

/// Whether a test runs on the simulated ground too.
pub fn runs_simulated(path: &str, needs_real: bool) -> bool {
    !needs_real && SIMULATED.iter().any(|folder| path.starts_with(folder))
}

/// A test, as `#[e2e::test]` notes it.
pub struct Test {
    /// Path of its module, which begins with the name of the program.
    pub module: &'static str,
    /// Of its function.
    pub name: &'static str,
    /// Runs only if somebody asks for it.
    pub is_ignored: bool,
    /// Needs real programs; others may run on the simulated ground too.
    pub needs_real: bool,
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

/// A test on one ground.
#[derive(Clone)]
struct OnGround {
    /// [`Test::path`], after `simulated::` on that ground.
    path: String,
    test: &'static Test,
    is_simulated: bool,
}

impl OnGround {
    fn real(test: &'static Test) -> Self {
        Self { path: test.path(), test, is_simulated: false }
    }

    /// None if the test needs real programs.
    fn simulated(test: &'static Test) -> Option<Self> {
        let path = test.path();
        let runs = runs_simulated(&path, test.needs_real);
        runs.then(|| Self { path: format!("{PREFIX}{path}"), test, is_simulated: true })
    }

    /// Runs only if somebody asks for it, or for all.
    fn is_ignored(&self, all: bool) -> bool {
        self.test.is_ignored || !self.is_simulated && !all && gate::reason(&self.path).is_none()
    }
}

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    known: Arguments,
    /// More filters: tests whose names contain any of them are run.
    #[arg(value_name = "FILTER")]
    more: Vec<String>,
    /// Run the tests of this folder of `e2e/tests`, `set/vanish` for one; may be given several times.
    #[arg(long, value_name = "FOLDER")]
    folder: Vec<String>,
}

/// Runs the tests of this program.
pub fn main() -> ExitCode {
    let Args { mut known, more, folder } = Args::parse();
    let filters = known.filter.take().into_iter().chain(more).map(|filter| filter.replace('/', "::"));
    let filter = Filter { names: filters.collect(), is_exact: known.exact, folders: folder };
    let tests = chosen(&filter);
    if known.list {
        let _listed = libtest_mimic::run(&known, trials(&tests, &known, &Log::default()));
        return ExitCode::SUCCESS;
    }
    // The first build of Kubernetes takes longer than all tests.
    let tools = Tool::of_a_fleet(record::program() == "with_nodes" && packages::check_for(&[]).is_ok());
    let provided = Runtime::new().map_err(|error| error.to_string()).and_then(|runtime| {
        let provided = runtime.block_on(tools::provide(&tools, &|line| eprintln!("{line}")));
        provided.map_err(|error| error.to_string())
    });
    if let Err(why) = provided.and_then(|_| budget::begin(runs_all())) {
        eprintln!("{why}");
        return ExitCode::from(2);
    }
    tests.iter().for_each(|test| record::forget(&test.path));
    record::keep_what_fails();
    let log = Log::default();
    // A thread that waits for its turn costs nothing.
    if let Some(tests) = known.test_threads.replace(tests.len().max(2)) {
        budget::limit_at_once(tests);
    }
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
        tests.retain(|test| failed.contains(&test.path.as_str()));
        conclusion = one_after_the_other(trials(&tests, &known, &log));
        again = log.take();
    }
    report::print(&ran, &again);
    if ran.is_empty() && conclusion.num_ignored > 0 {
        println!("none of these tests is in the gate: --include-ignored runs them");
    }
    conclusion.exit_code()
}

/// Which tests somebody wants.
struct Filter {
    /// Parts of their paths, or whole paths.
    names: Vec<String>,
    is_exact: bool,
    folders: Vec<String>,
}

impl Filter {
    /// All are, if nothing is said. A folder has the tests of both grounds.
    fn has(&self, path: &str) -> bool {
        let is_named =
            |name: &String| if self.is_exact { path == name } else { path.contains(name.as_str()) };
        let is_below = |folder: &String| {
            let folder = folder.trim_end_matches('/').replace('/', "::");
            let path = path.strip_prefix(PREFIX).unwrap_or(path);
            path.strip_prefix(&folder).is_some_and(|rest| rest.starts_with("::"))
        };
        self.names.is_empty() && self.folders.is_empty()
            || self.names.iter().any(is_named)
            || self.folders.iter().any(is_below)
    }
}

/// Tests of the program that somebody wants.
fn chosen(filter: &Filter) -> Vec<OnGround> {
    let tests = inventory::iter::<Test>.into_iter();
    let tests = tests.flat_map(|test| [Some(OnGround::real(test)), OnGround::simulated(test)]);
    let mut tests: Vec<_> = tests.flatten().filter(|test| filter.has(&test.path)).collect();
    tests.sort_by(|one, other| one.path.cmp(&other.path));
    tests
}

fn trials(tests: &[OnGround], known: &Arguments, log: &Log) -> Vec<Trial> {
    let shows_all = known.nocapture || known.show_output;
    let all = runs_all();
    let trial = |test: &OnGround| {
        let is_ignored = test.is_ignored(all);
        let (test, log) = (test.clone(), log.clone());
        Trial::test(test.path.clone(), move || attempt(&test, shows_all, &log)).with_ignored_flag(is_ignored)
    };
    tests.iter().map(trial).collect()
}

/// Whether all tests run, and not those of the gate alone.
fn runs_all() -> bool {
    env::var("FREEPORT_TESTS").is_ok_and(|which| which == "all")
}

fn one_after_the_other(trials: Vec<Trial>) -> Conclusion {
    let args = Arguments { test_threads: Some(1), include_ignored: true, ..Arguments::default() };
    libtest_mimic::run(&args, trials)
}

fn attempt(test: &OnGround, shows_all: bool, log: &Log) -> Result<(), Failed> {
    let run = || record::run(&test.path, test.test.run, shows_all);
    let (turn, failure) = if test.is_simulated { ground::simulated(run) } else { run() };
    let failed = failure.as_ref().map(Failed::from);
    log.add(Ran { path: test.path.clone(), turn, failure });
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

#[test]
fn a_folder_is_what_paths_begin_with() {
    let filter = |names: &[&str], folders: &[&str]| Filter {
        names: names.iter().map(ToString::to_string).collect(),
        is_exact: false,
        folders: folders.iter().map(ToString::to_string).collect(),
    };
    let folder = filter(&[], &["bind", "set/vanish/"]);
    assert!(folder.has("bind::whole::a") && folder.has("set::vanish::b"));
    assert!(!folder.has("rights::bind::a") && !folder.has("binding::a") && !folder.has("set::b"));
    let both = filter(&[], &["set/vanish"]);
    assert!(both.has("simulated::set::vanish::b") && !both.has("simulated::set::service::b"));
    assert!(filter(&["bind"], &[]).has("rights::bind::a"));
    assert!(filter(&[], &[]).has("a"));
}
