//! How long a program starts tests. One that is killed from outside says of no test what became of it.

use std::{
    env,
    sync::LazyLock,
    time::{Duration, Instant},
};

/// Without `FREEPORT_TESTS_SECONDS`: as long as anybody waits.
const BUDGET: Duration = Duration::from_secs(4500);

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time begins.
pub(super) fn begin() {
    LazyLock::force(&BEGUN);
}

fn budget() -> Duration {
    let seconds = env::var("FREEPORT_TESTS_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    seconds.map_or(BUDGET, Duration::from_secs)
}

/// No test starts any more.
pub(super) fn is_over() -> bool {
    BEGUN.elapsed() > budget()
}

/// Fails a test that is to start when the time is over.
pub fn ensure() {
    assert!(!is_over(), "not started: the tests of this program have taken their {} s", budget().as_secs());
}
