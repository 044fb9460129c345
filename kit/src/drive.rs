//! Running a controller on a queue: concurrency, time limit, back-off for each key, metrics.

use std::{
    collections::HashMap,
    fmt::Display,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    log_limit::LogLimit,
    metrics::Metrics,
    queue::{self, Outcome},
    write::Error,
};

/// Longest time one look may take; a request that hangs must not hold its key for ever.
const LIMIT: Duration = Duration::from_secs(30);

/// Looks of one controller at the same time. An API server may allow a client only 100 streams, and the watches and the
/// other controllers need some of them.
const CONCURRENCY: usize = 16;

/// A queue that several watches mark keys in and one controller takes them from.
pub struct Queue<K>(Arc<Shared<K>>);

struct Shared<K> {
    queue: Mutex<queue::Queue<K>>,
    marked: Notify,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// A queue that hands out the same key at most once every `pace`.
    pub fn new(pace: Duration) -> Self {
        Self(Arc::new(Shared { queue: Mutex::new(queue::Queue::new(pace)), marked: Notify::new() }))
    }

    /// Asks for a look at these keys.
    pub fn enqueue(&self, keys: impl IntoIterator<Item = K>) {
        let now = now();
        let mut queue = self.lock();
        keys.into_iter().for_each(|key| queue.enqueue(key, now));
        drop(queue);
        self.0.marked.notify_one();
    }

    /// What kept looks from working may be over: asks for another look at every key whose last one failed.
    pub fn hurry(&self) {
        self.lock().hurry(now());
        self.0.marked.notify_one();
    }

    /// Whether there is nothing to do and nothing failed waits for another try.
    pub fn is_idle(&self) -> bool {
        self.lock().is_idle(now())
    }

    fn lock(&self) -> MutexGuard<'_, queue::Queue<K>> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the queue's keys until `stop`, then waits for the looks under way. A panic in `reconcile` goes on in the caller.
pub async fn drive<K, F, Fut>(
    controller: &'static str,
    queue: Queue<K>,
    metrics: Metrics,
    stop: CancellationToken,
    reconcile: F,
) where
    K: Clone + Eq + Hash + Display + Send + 'static,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    let waiting = metrics.waiting(controller);
    let mut looks = JoinSet::new();
    let (mut keys, mut log_limit) = (HashMap::new(), LogLimit::default());
    loop {
        while looks.len() < CONCURRENCY {
            let Some(key) = queue.lock().take(now()) else {
                break;
            };
            let look = look(controller, metrics.clone(), reconcile(key.clone()));
            let look = looks.spawn(look.in_current_span());
            keys.insert(look.id(), key);
        }
        let next = {
            let queue = queue.lock();
            waiting.set(i64::try_from(queue.len()).unwrap_or(i64::MAX));
            queue.next_due()
        };
        let room = looks.len() < CONCURRENCY;
        let due = async move {
            match next {
                Some(at) if room => tokio::time::sleep_until(at.into()).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = queue.0.marked.notified() => {}
            () = due => {}
            Some(ended) = looks.join_next_with_id() => match ended {
                Ok((id, (outcome, why))) => if let Some(key) = keys.remove(&id) {
                    queue.lock().done(&key, outcome, now());
                    if let Some(error) = why && let Some(left_out) = log_limit.allows(now()) {
                        tracing::warn!(controller, %key, error, left_out, "trying again later");
                    }
                },
                Err(error) => resume(error),
            },
        }
    }
    while let Some(ended) = looks.join_next().await {
        ended.map_or_else(resume, |_| ());
    }
}

/// The runtime's clock, which tests can turn.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// How the look ended, and what there is to say about that.
async fn look(
    controller: &'static str,
    metrics: Metrics,
    reconcile: impl Future<Output = Result<Outcome, Error>>,
) -> (Outcome, Option<String>) {
    let begun = now();
    let (outcome, result, why) = match tokio::time::timeout(LIMIT, reconcile).await {
        Ok(Ok(outcome)) => (outcome, "ok", None),
        // The usual lot of a write that races with somebody else's.
        Ok(Err(Error::Stale)) => (Outcome::Failed, "stale", None),
        Ok(Err(error)) => (Outcome::Failed, "error", Some(error.to_string())),
        Err(_) => (Outcome::Failed, "timeout", Some(format!("took longer than {LIMIT:?}"))),
    };
    metrics.reconciled(controller, result, now().saturating_duration_since(begun));
    (outcome, why)
}

/// Waits for `what`, but not beyond `stop`; whether it came.
pub async fn before<T>(stop: &CancellationToken, what: impl Future<Output = T>) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        _ = what => true,
    }
}

/// Lets the panic of a task go on here: half a daemon looks alive and is not. A task that was aborted is nothing.
pub fn resume(error: tokio::task::JoinError) {
    if let Ok(panic) = error.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failing_keys_are_tried_again_and_others_go_on() {
        let queue = Queue::new(Duration::ZERO);
        let stop = CancellationToken::new();
        let tries = Arc::new(AtomicUsize::new(0));
        queue.enqueue(["bad", "good"]);
        let (t, s) = (tries.clone(), stop.clone());
        drive("test", queue.clone(), Metrics::new().unwrap(), stop, move |key| {
            let (t, s) = (t.clone(), s.clone());
            async move {
                if key == "bad" && t.fetch_add(1, Ordering::SeqCst) == 2 {
                    s.cancel();
                }
                if key == "bad" { Err(Error::Refused("no".into())) } else { Ok(Outcome::Done) }
            }
        })
        .await;
        assert_eq!(tries.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    #[should_panic(expected = "boom")]
    async fn a_panic_is_not_swallowed() {
        let queue = Queue::new(Duration::ZERO);
        queue.enqueue(["a"]);
        let boom = |_| async {
            assert!(std::env::args().count() == 0, "boom");
            Ok(Outcome::Done)
        };
        drive("test", queue, Metrics::new().unwrap(), CancellationToken::new(), boom).await;
    }
}
