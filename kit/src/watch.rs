//! A watch whose failures stay its own: it backs off by itself, tells nobody but the log and a metric, and goes on.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, pin_mut};
use kube::{
    Api, Resource,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{anchor::Anchor, index::Change, metrics::Metrics};

/// A watch without an error for this long is taken to be open. Longer than the longest pause between two attempts of a
/// watch that fails.
const OPEN_AFTER: Duration = Duration::from_secs(60);

/// How often the server is asked to end a watch, so that a connection that died unseen is noticed.
const RENEW_EVERY: u32 = 60;

/// How soon an unanswered question for the anchor is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Several watches that together are worth something only when each has delivered its first list.
#[derive(Clone, Default)]
pub struct Watches(Arc<State>);

#[derive(Default)]
struct State {
    /// What has not delivered its first list, and the last error that kept it from that.
    unlisted: Mutex<BTreeMap<&'static str, Option<String>>>,
    changed: Notify,
    failed: Mutex<Option<Instant>>,
    anchor: Option<Anchor>,
    restored: CancellationToken,
}

/// Names a watch in logs and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// `local` or `leader`.
    pub cluster: &'static str,
    /// What is watched, for example `ServiceExport`.
    pub kind: &'static str,
}

impl Watches {
    /// Watches of an API server that may be restored from a backup: before a watch believes a list that comes after its
    /// first one, it asks the anchor. If that does not hold, all that was watched is worth nothing, and the watches stop.
    pub fn anchored(anchor: Anchor) -> Self {
        Self(Arc::new(State { anchor: Some(anchor), ..State::default() }))
    }

    /// Waits until a watch has found that the API server was restored.
    pub async fn restored(&self) {
        self.0.restored.cancelled().await;
    }

    /// Watches `api` for ever and hands every change to `sink`. Counts as begun from this call on, so that
    /// [`listed`](Self::listed) waits for it even if it is polled later.
    pub fn watch<P, S>(
        &self,
        api: Api<P>,
        config: watcher::Config,
        source: Source,
        metrics: Metrics,
        mut sink: S,
    ) -> impl Future<Output = ()> + Send + use<P, S>
    where
        S: FnMut(Change<P>) + Send,
        P: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        lock(&self.0.unlisted).insert(source.kind, None);
        let state = self.0.clone();
        async move {
            let events = watcher(api, config.timeout(RENEW_EVERY)).default_backoff();
            pin_mut!(events);
            let mut initial = Vec::new();
            let mut listed = false;
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::Init) => initial = Vec::new(),
                    Ok(watcher::Event::InitApply(object)) => initial.push(object),
                    Ok(watcher::Event::InitDone) => {
                        metrics.listed(source.cluster, source.kind);
                        if std::mem::replace(&mut listed, true) && !state.is_where_it_was().await {
                            tracing::warn!(
                                cluster = source.cluster,
                                "restored from a backup, or emptied: looking at all anew"
                            );
                            state.restored.cancel();
                            return;
                        }
                        sink(Change::Reset(std::mem::take(&mut initial)));
                        if lock(&state.unlisted).remove(source.kind).is_some() {
                            state.changed.notify_waiters();
                        }
                    }
                    Ok(watcher::Event::Apply(object)) => sink(Change::Apply(object)),
                    Ok(watcher::Event::Delete(object)) => sink(Change::Remove(object)),
                    Err(error) => {
                        metrics.watch_failed(source.cluster, source.kind);
                        *lock(&state.failed) = Some(Instant::now());
                        if let Some(why) = lock(&state.unlisted).get_mut(source.kind) {
                            *why = Some(error.to_string());
                        }
                        tracing::warn!(cluster = source.cluster, kind = source.kind, %error, "watch failed, going on");
                    }
                }
            }
        }
    }

    /// Waits until every watch begun so far has delivered its first list. Before that, what is missing means nothing.
    pub async fn listed(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.are_listed() {
                return;
            }
            changed.await;
        }
    }

    /// Whether every watch has delivered its first list.
    pub fn are_listed(&self) -> bool {
        lock(&self.0.unlisted).is_empty()
    }

    /// What has not delivered its first list and why, in words; `None` when all has.
    pub fn unlisted(&self) -> Option<String> {
        let unlisted = lock(&self.0.unlisted);
        let say = |(kind, why): (&&str, &Option<String>)| match why {
            Some(why) => format!("{kind} ({why})"),
            None => (*kind).to_owned(),
        };
        (!unlisted.is_empty()).then(|| unlisted.iter().map(say).collect::<Vec<_>>().join(", "))
    }

    /// Whether every watch has delivered its list and none has failed lately.
    pub fn are_open(&self, now: Instant) -> bool {
        let failed = *lock(&self.0.failed);
        self.are_listed() && failed.is_none_or(|at| now.saturating_duration_since(at) > OPEN_AFTER)
    }
}

impl State {
    async fn is_where_it_was(&self) -> bool {
        let Some(anchor) = &self.anchor else { return true };
        loop {
            match anchor.holds().await {
                Ok(holds) => return holds,
                Err(error) => {
                    tracing::warn!(%error, "cannot find out whether the API server was restored, asking again")
                }
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
