//! How tests wait: for conditions, with generous limits. The time that a wait took is printed, never asserted but in virtual
//! time ([`promised`](crate::promised)).

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::{ground::is_simulated, harness::waits};

/// A kind of wait, and how long it takes at the most: longer ones fail the test. Five times what the longest one takes on a machine
/// with two busy cores; `target/e2e/*.waits` has what they took.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    kind: &'static str,
    pub time: Duration,
}

const fn limit(kind: &'static str, seconds: u64) -> Limit {
    Limit { kind, time: Duration::from_secs(seconds) }
}

/// What a daemon or an API server does when something changes. Some things it looks for every 30 s, or every minute.
pub const RECONCILED: Limit = limit("reconciled", 165);
/// For what happens after two renewals of a Lease: a renewal that is not settled makes the count start again.
pub const VOUCHED: Limit = limit("vouched", 150);
/// For the end of a Namespace: where a kind was just deleted, its controller tries again after up to a minute.
pub const NAMESPACE_GONE: Limit = limit("Namespace gone", 150);
/// Several times as long as the leader waits for a Lease, and until it looks the next time but one: it forgets what it counted when
/// it hears nobody.
pub const SWEPT: Limit = limit("swept", 240);
/// Pods are scheduled, pull nothing, and are ready.
pub const PODS_READY: Limit = limit("Pods ready", 300);
/// Two pings that an API server does not answer, and a connection that does not come to stand. Without those the next heartbeat would tell, after
/// up to two and a half minutes.
pub const FROZEN: Limit = limit("frozen", 100);
/// A command of `freeport` ends. It waits for what daemons do, for two minutes at the most.
pub const COMMAND: Limit = limit("command", 180);
/// All that is wrong after a run of chaos is put right.
pub const PUT_RIGHT: Limit = limit("put right", 300);
/// What differs for longer is found, where a defect is planted.
pub const FOUND: Limit = limit("found", 45);
/// Certificates whose lives are seconds are replaced three times: several times as long as that takes.
pub const ROTATED: Limit = limit("rotated", 900);
/// What a benchmark measures, with 10,000 Services.
pub const MEASURED: Limit = limit("measured", 1800);
/// A konnector is older than the five minutes for which it believes what a restored provider says.
pub const FIVE_MINUTES: Limit = limit("five minutes", 620);
/// How long [`always`] checks.
const A_WHILE: Duration = Duration::from_secs(3);
/// So often a wait says what it waits for.
const SAID: Duration = Duration::from_secs(10);
/// How long the last check may take.
const LAST_CHECK: Duration = Duration::from_secs(10);
/// Between two checks, at first. It grows with the time waited, so that long waits do not load API servers.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Checks until `check` succeeds; fails with what it saw last.
pub async fn eventually<T, F>(what: &str, check: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    within(RECONCILED, what, check).await
}

/// [`eventually`] with a limit of its own.
pub async fn within<T, F>(limit: Limit, what: &str, mut check: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    let mut say_at = SAID;
    loop {
        // A request may never be answered. The last check has a moment, whatever time is left.
        let left = limit.time.saturating_sub(begun.elapsed()).max(LAST_CHECK);
        match timeout(left, check()).await.unwrap_or_else(|_| Err(format!("no answer within {left:?}"))) {
            Ok(seen) => {
                let took = begun.elapsed();
                crate::note!("{what}: after {:.2} s", took.as_secs_f64());
                if !is_simulated() {
                    waits::note((limit.kind, limit.time), took, what);
                }
                return seen;
            }
            Err(seen) => {
                let left = limit.time.checked_sub(begun.elapsed());
                let Some(left) = left else {
                    panic!("{what}: not within {:?} ({}); last seen: {seen}", limit.time, limit.kind)
                };
                if begun.elapsed() >= say_at {
                    say_at += SAID;
                    let seen: String = seen.chars().take(300).collect();
                    crate::note!("{what}: not yet, {} s left; seen: {seen}", left.as_secs());
                }
            }
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
