//! How long a program may take. One that is killed from outside says of no test what became of it: tests that wait for their turn when the time is
//! over do not start, and those that run fail.

use std::{
    env,
    str::FromStr,
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

/// For the gate. It takes a third of this where it is not disturbed.
const GATE: Duration = Duration::from_secs(1200);
/// For all tests.
const ALL: Duration = Duration::from_secs(5400);
/// Sets another number of seconds: for an hour of chaos.
const VARIABLE: &str = "FREEPORT_TESTS_SECONDS";
/// When all programs of a run end, if they take less: seconds since 1970. `.ci/run` sets it.
const UNTIL: &str = "FREEPORT_TESTS_UNTIL";

static AT_ONCE: OnceLock<usize> = OnceLock::new();
static BUDGET: OnceLock<(Instant, Duration)> = OnceLock::new();

/// The time begins.
///
/// # Errors
/// What is wrong with a variable.
pub(super) fn begin(all: bool) -> Result<(), String> {
    let budget = seconds(VARIABLE)?.unwrap_or(if all { ALL } else { GATE });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = seconds(UNTIL)?.map_or(budget, |until| until.saturating_sub(now));
    BUDGET.get_or_init(|| (Instant::now(), budget.min(left)));
    Ok(())
}

fn seconds(variable: &str) -> Result<Option<Duration>, String> {
    let Ok(value) = env::var(variable) else { return Ok(None) };
    match u64::from_str(&value) {
        Ok(seconds) => Ok(Some(Duration::from_secs(seconds))),
        Err(_) => Err(format!("{variable} is a number of seconds, and not {value:?}")),
    }
}

/// No more tests run at once than this. All of them wait for their turns meanwhile, so a fixture stays that others need.
pub(super) fn limit_at_once(tests: usize) {
    AT_ONCE.get_or_init(|| tests.max(1));
}

/// How many tests run at once, if somebody said it.
pub fn at_once() -> Option<usize> {
    AT_ONCE.get().copied()
}

fn get() -> (Instant, Duration) {
    *BUDGET.get_or_init(|| (Instant::now(), ALL))
}

/// When the time is over.
pub fn deadline() -> Instant {
    let (begun, budget) = get();
    begun + budget
}

pub(super) fn is_over() -> bool {
    Instant::now() >= deadline()
}

/// Why tests fail when the time is over.
pub fn spent() -> String {
    format!("the tests of this program have taken their {} s ({VARIABLE}, {UNTIL})", get().1.as_secs())
}
