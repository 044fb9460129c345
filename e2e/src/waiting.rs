//! How tests wait: for conditions, with generous limits. The time that a wait took is printed, never asserted.

use std::time::{Duration, Instant};

/// A wait that takes longer fails the test. Two busy cores take twice as long as two quiet ones.
const LIMIT: Duration = Duration::from_secs(240);
/// For what happens after two renewals of a Lease: a renewal that is not settled makes the count start again.
pub const VOUCHED: Duration = Duration::from_secs(300);
/// For the end of a Namespace: where a kind was just deleted, its controller tries again after up to a minute.
pub const NAMESPACE_GONE: Duration = Duration::from_secs(300);
/// How long [`always`] checks.
const A_WHILE: Duration = Duration::from_secs(3);
/// Between two checks, at first. It grows with the time waited, so that long waits do not load API servers.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Checks until `check` succeeds; fails with what it saw last.
pub async fn eventually<T, F>(what: &str, check: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    within(LIMIT, what, check).await
}

/// [`eventually`] with a limit of its own.
pub async fn within<T, F>(limit: Duration, what: &str, mut check: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    loop {
        match check().await {
            Ok(seen) => {
                crate::note!("{what}: after {:.2} s", begun.elapsed().as_secs_f64());
                return seen;
            }
            Err(seen) => assert!(begun.elapsed() < limit, "{what}: not within {limit:?}; last seen: {seen}"),
        }
        tokio::time::sleep((begun.elapsed() / 20).clamp(PAUSE, LONGEST_PAUSE)).await;
    }
}

/// Checks for a while, and fails if `check` ever does.
pub async fn always<F>(what: &str, check: impl FnMut() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    throughout(A_WHILE, what, check).await;
}

/// [`always`] for as long as something else takes.
pub async fn throughout<F>(time: Duration, what: &str, mut check: impl FnMut() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    let begun = Instant::now();
    while begun.elapsed() < time {
        if let Err(seen) = check().await {
            panic!("{what}: {seen}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
