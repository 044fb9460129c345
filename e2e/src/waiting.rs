//! The one way tests wait: for conditions, with limits far beyond what anything takes. Speed is printed, never asserted.

use std::time::{Duration, Instant};

/// A test that gets here has failed.
const LIMIT: Duration = Duration::from_secs(120);
/// For what waits until Leases have been renewed twice, since a renewal that is not settled starts that anew.
pub const VOUCHED: Duration = Duration::from_secs(150);
/// For a Namespace to go: its controller met a kind that was just deleted, and looks again after a minute at the latest.
pub const NAMESPACE_GONE: Duration = Duration::from_secs(180);
/// How long [`always`] looks.
const A_WHILE: Duration = Duration::from_secs(3);
/// Between two looks, at first. It grows with the time waited, so that long waits do not keep API servers busy.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Looks until `look` is content; fails with what it last saw.
pub async fn eventually<T, F>(what: &str, look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    within(LIMIT, what, look).await
}

/// [`eventually`] with a limit of its own.
pub async fn within<T, F>(limit: Duration, what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(seen) => {
                eprintln!("{what}: after {:.2} s", begun.elapsed().as_secs_f64());
                return seen;
            }
            Err(seen) => assert!(begun.elapsed() < limit, "{what}: not within {limit:?}; last seen: {seen}"),
        }
        tokio::time::sleep((begun.elapsed() / 20).clamp(PAUSE, LONGEST_PAUSE)).await;
    }
}

/// Looks for a while and fails if `look` ever is not content.
pub async fn always<F>(what: &str, mut look: impl FnMut() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    let begun = Instant::now();
    while begun.elapsed() < A_WHILE {
        if let Err(seen) = look().await {
            panic!("{what}: {seen}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
