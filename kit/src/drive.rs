//! Running a controller on a queue: concurrency, time limit, back-off for each key, metrics.

use std::{collections::HashMap, fmt::Display, hash::Hash, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    log_limit::LogLimit,
    metrics::Metrics,
    queue::{Outcome, Queue, now},
    write::Error,
};

/// Longest time one reconcile may take; a request that hangs must not hold its key for ever.
const LIMIT: Duration = Duration::from_secs(30);

/// Reconciles of one controller at the same time. An API server may allow a client only 100 streams, and the watches and the
/// other controllers need some of them.
const CONCURRENCY: usize = 16;

/// Reconciles the queue's keys until `stop`, then waits for the reconciles under way: another controller can go on with the queue.
/// A panic in `reconcile` goes on in the caller.
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
    let gauge = metrics.waiting(controller);
    let done = |key: &K, outcome| {
        if let Some(time) = queue.done(key, outcome) {
            metrics.answered(controller, time);
        }
    };
    let mut running = JoinSet::new();
    let (mut keys, mut log_limit) = (HashMap::new(), LogLimit::default());
    loop {
        while running.len() < CONCURRENCY
            && let Some(key) = queue.take()
        {
            let reconcile = timed(controller, metrics.clone(), reconcile(key.clone()));
            let task = running.spawn(reconcile.in_current_span());
            keys.insert(task.id(), key);
        }
        let (waiting, next) = queue.waiting();
        gauge.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        let room = running.len() < CONCURRENCY;
        let due = async move {
            match next {
                Some(at) if room => tokio::time::sleep_until(at.into()).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = queue.enqueued() => {}
            () = due => {}
            Some(ended) = running.join_next_with_id() => match ended {
                Ok((id, (outcome, why))) => if let Some(key) = keys.remove(&id) {
                    done(&key, outcome);
                    if let Some(error) = why && let Some(left_out) = log_limit.allows(now()) {
                        tracing::warn!(controller, %key, error, left_out, "trying again later");
                    }
                },
                Err(error) => resume(error),
            },
        }
    }
    while let Some(ended) = running.join_next_with_id().await {
        match ended {
            Ok((id, (outcome, _))) => keys.remove(&id).into_iter().for_each(|key| done(&key, outcome)),
            Err(error) => resume(error),
        }
    }
}

/// How the reconcile ended, and why if it failed.
async fn timed(
    controller: &'static str,
    metrics: Metrics,
    reconcile: impl Future<Output = Result<Outcome, Error>>,
) -> (Outcome, Option<String>) {
    let begun = now();
    let (outcome, result, why) = match tokio::time::timeout(LIMIT, reconcile).await {
        Ok(Ok(outcome)) => (outcome, "ok", None),
        // As usual when two write the same object.
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
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

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

    #[tokio::test(start_paused = true)]
    async fn another_controller_goes_on_with_the_queue_where_one_stopped() {
        let (queue, metrics) = (Queue::new(Duration::ZERO), Metrics::new().unwrap());
        queue.enqueue(["a"]);
        let (first, q) = (CancellationToken::new(), queue.clone());
        let stop = first.clone();
        drive("first", queue.clone(), metrics.clone(), first, move |_| {
            let (stop, q) = (stop.clone(), q.clone());
            async move {
                stop.cancel();
                tokio::time::sleep(Duration::from_secs(1)).await;
                // Something changed under way.
                q.enqueue(["a"]);
                Ok(Outcome::Done)
            }
        })
        .await;
        let second = CancellationToken::new();
        let stop = second.clone();
        let again = drive("second", queue, metrics, second, move |_| {
            stop.cancel();
            async { Ok(Outcome::Done) }
        });
        tokio::time::timeout(Duration::from_secs(60), again).await.expect("the key is reconciled again");
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
