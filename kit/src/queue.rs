//! The keys that a controller has to reconcile, shared between those who enqueue them and the controller.

mod schedule;
mod turns;

use std::{
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

pub use self::turns::Party;

use self::schedule::Schedule;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is as it should be.
    Done,
    /// All is as it should be so far; reconcile again after this time.
    Requeue(Duration),
    /// It did not work: reconcile again after a wait that doubles each time.
    Failed,
}

/// The keys that one controller has to reconcile. Cloning shares it.
pub struct Queue<K>(Arc<Inner<K>>);

struct Inner<K> {
    schedule: Mutex<Schedule<K>>,
    enqueued: Notify,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// A queue that hands out the same key at most once every `pace`.
    pub fn new(pace: Duration) -> Self {
        Self(Arc::new(Inner { schedule: Mutex::new(Schedule::new(pace)), enqueued: Notify::new() }))
    }

    /// Asks for a reconcile of these keys.
    pub fn enqueue(&self, keys: impl IntoIterator<Item = K>) {
        self.enqueue_of(keys.into_iter().map(|key| (key, Party::NOBODY)));
    }

    /// Asks for a reconcile of these keys, each in the turn of those whose it is.
    pub fn enqueue_of(&self, keys: impl IntoIterator<Item = (K, Party)>) {
        let now = now();
        let mut schedule = self.lock();
        keys.into_iter().for_each(|(key, party)| schedule.enqueue(key, party, now));
        drop(schedule);
        self.0.enqueued.notify_one();
    }

    /// The cause of failures may be over: enqueues every key whose last reconcile failed.
    pub fn retry_failed(&self) {
        self.lock().retry_failed(now());
        self.0.enqueued.notify_one();
    }

    /// Keys that there is something to do about, or that failed and wait for another try.
    pub fn busy(&self) -> Vec<K> {
        self.lock().busy(now()).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Schedule<K>> {
        self.0.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next key to reconcile, if one is due.
    pub(crate) fn take(&self) -> Option<K> {
        self.lock().take(now())
    }

    /// Says how the reconcile of `key` ended. How long it took to answer what it was enqueued for, if it did.
    pub(crate) fn done(&self, key: &K, outcome: Outcome) -> Option<Duration> {
        self.lock().done(key, outcome, now())
    }

    /// Number of keys that wait or are being reconciled, and when the next one is due.
    pub(crate) fn waiting(&self) -> (usize, Option<Instant>) {
        let schedule = self.lock();
        (schedule.len(), schedule.next_due())
    }

    /// Waits until something is enqueued.
    pub(crate) async fn enqueued(&self) {
        self.0.enqueued.notified().await;
    }
}

/// The runtime's clock, which tests can turn.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
