//! A watch whose failures stay its own: it backs off by itself, tells nobody but the log and a metric, and goes on.

mod failing;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, future::BoxFuture};
use kube::{Api, Resource, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::failing::Failing;
use crate::{
    backoff::Backoff,
    failure::{Failure, classify_watch},
    index::Shared,
    metrics::Metrics,
    objects::Change,
};

/// A watch without an error for this long is taken to be open. Longer than the longest pause between two attempts of a
/// watch that fails.
const OPEN_AFTER: Duration = Duration::from_secs(15);

/// Pauses between attempts of a watch that fails.
const PAUSES: Backoff = Backoff { first: Duration::from_millis(800), longest: Duration::from_secs(8) };

/// How often the server is asked to end a watch, so that a connection that died unseen is noticed.
const RENEW_EVERY: u32 = 60;

/// Objects of a page of a list. A page is in memory as text and decoded before any of it is reduced to what is kept, and an object
/// may have more than a megabyte.
const PAGE: u32 = 50;

/// How long an API server may take to follow a change of a CRD that a watch has told of.
pub const IN_FORCE: Duration = Duration::from_secs(5);

/// How soon the guard is asked again where it could not tell.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Knows whether an API server still holds what it held, or was restored from a backup.
pub trait Guard: Send + Sync {
    /// Asks the API server. The error is that of the request: then it is not known.
    fn still_holds(&self) -> BoxFuture<'_, kube::Result<bool>>;
}

/// What is kept of a list while it is read: others may have put more into it than there is memory for.
pub trait Gather<P> {
    /// A list begins; what was read of another one is worth nothing.
    fn begin(&mut self);
    /// The next object of the list.
    fn take(&mut self, object: P);
    /// The list ends: what is kept of it.
    fn end(&mut self) -> Vec<P>;
}

/// All of it.
impl<P> Gather<P> for Vec<P> {
    fn begin(&mut self) {
        self.clear();
    }

    fn take(&mut self, object: P) {
        self.push(object);
    }

    fn end(&mut self) -> Vec<P> {
        std::mem::take(self)
    }
}

impl<P, G: Gather<P>> Gather<P> for Shared<G> {
    fn begin(&mut self) {
        self.with(|gather| gather.begin());
    }

    fn take(&mut self, object: P) {
        self.with(|gather| gather.take(object));
    }

    fn end(&mut self) -> Vec<P> {
        self.with(|gather| gather.end())
    }
}

/// Several watches that together are worth something only when each has delivered its first list.
#[derive(Clone, Default)]
pub struct Watches(Arc<State>);

#[derive(Default)]
struct State {
    /// What has not delivered its first list.
    unlisted: Mutex<BTreeSet<&'static str>>,
    /// How a watch failed last, unless it has told something since.
    failing: Mutex<BTreeMap<&'static str, Failing>>,
    changed: Notify,
    failed: Mutex<Option<Instant>>,
    guard: Option<Arc<dyn Guard>>,
    restored: CancellationToken,
    /// How often all was to be listed again.
    again: watch::Sender<u64>,
}

/// Names a watch in logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// `local` or `leader`.
    pub cluster: &'static str,
    /// What is watched, for example `ServiceExport`.
    pub kind: &'static str,
}

/// A watch that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Which.
    pub source: Source,
    /// Why.
    pub failure: Failure,
}

impl Watches {
    /// Watches of an API server that may be restored from a backup: before a watch believes a list that comes after its
    /// first one, it asks the guard. If the server was restored, all that was watched is worth nothing, and the watches stop.
    pub fn guarded(guard: Arc<dyn Guard>) -> Self {
        Self(Arc::new(State { guard: Some(guard), ..State::default() }))
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
        sink: S,
    ) -> impl Future<Output = ()> + Send + use<P, S>
    where
        S: FnMut(Change<P>) + Send,
        P: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        self.watching((api, config), source, metrics, (Vec::new(), false), sink)
    }

    /// [`watch`](Self::watch) of what may be many. The objects of its first list are told one by one, so that they are never all
    /// here as they were decoded; until it is [`listed`](Self::listed), what is known is a part of it.
    pub fn watch_many<P, S>(
        &self,
        api: Api<P>,
        source: Source,
        metrics: Metrics,
        sink: S,
    ) -> impl Future<Output = ()> + Send + use<P, S>
    where
        S: FnMut(Change<P>) + Send,
        P: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        self.watching((api, watcher::Config::default()), source, metrics, (Vec::new(), true), sink)
    }

    /// [`watch`](Self::watch), where not all of a list is kept.
    pub fn watch_gathering<P, S, G>(
        &self,
        all: (Api<P>, watcher::Config),
        source: Source,
        metrics: Metrics,
        initial: G,
        sink: S,
    ) -> impl Future<Output = ()> + Send + use<P, S, G>
    where
        G: Gather<P> + Send,
        S: FnMut(Change<P>) + Send,
        P: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        self.watching(all, source, metrics, (initial, false), sink)
    }

    fn watching<P, S, G>(
        &self,
        (api, config): (Api<P>, watcher::Config),
        source: Source,
        metrics: Metrics,
        (mut initial, one_by_one): (G, bool),
        mut sink: S,
    ) -> impl Future<Output = ()> + Send + use<P, S, G>
    where
        G: Gather<P> + Send,
        S: FnMut(Change<P>) + Send,
        P: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        lock(&self.0.unlisted).insert(source.kind);
        let (state, mut again) = (self.0.clone(), self.0.again.subscribe());
        let config = config.timeout(RENEW_EVERY).page_size(PAGE);
        let open = move || watcher(api.clone(), config.clone()).boxed();
        async move {
            let mut events = open();
            let mut listed = false;
            let (mut pauses, mut pause) = (PAUSES.waits(), None);
            loop {
                let next = async {
                    if let Some(pause) = pause {
                        tokio::time::sleep(pause).await;
                    }
                    events.next().await
                };
                let event = tokio::select! {
                    Some(event) = next => event,
                    Ok(()) = again.changed() => {
                        (events, pause) = (open(), None);
                        continue;
                    }
                    else => return,
                };
                pause = None;
                // `Init` only begins a list, which may fail again.
                if !matches!(event, Ok(watcher::Event::Init) | Err(_))
                    && lock(&state.failing).remove(source.kind).is_some()
                {
                    tracing::info!(cluster = source.cluster, kind = source.kind, "the watch is open again");
                }
                match event {
                    // What was told of a list that broke off goes.
                    Ok(watcher::Event::Init) if one_by_one && !listed => sink(Change::Reset(Vec::new())),
                    Ok(watcher::Event::InitApply(object)) if one_by_one && !listed => {
                        sink(Change::Apply(object));
                    }
                    Ok(watcher::Event::Init) => initial.begin(),
                    Ok(watcher::Event::InitApply(object)) => initial.take(object),
                    Ok(watcher::Event::InitDone) => {
                        metrics.listed(source.cluster, source.kind);
                        let is_first = !std::mem::replace(&mut listed, true);
                        if !is_first && !state.still_holds().await {
                            tracing::warn!(
                                cluster = source.cluster,
                                "the API server was restored from a backup or emptied: reading everything again"
                            );
                            state.restored.cancel();
                            return;
                        }
                        if !(one_by_one && is_first) {
                            sink(Change::Reset(initial.end()));
                        }
                        if lock(&state.unlisted).remove(source.kind) {
                            state.changed.notify_waiters();
                        }
                    }
                    Ok(watcher::Event::Apply(object)) => sink(Change::Apply(object)),
                    Ok(watcher::Event::Delete(object)) => sink(Change::Remove(object)),
                    Err(error) => {
                        metrics.watch_failed(source.cluster, source.kind);
                        *lock(&state.failed) = Some(Instant::now());
                        let wait = pauses.wait();
                        pause = Some(wait);
                        let trouble = Trouble { source, failure: classify_watch(&error) };
                        if Failing::again(&mut lock(&state.failing), trouble, (Instant::now(), wait)) {
                            tracing::warn!(cluster = source.cluster, kind = source.kind, %error, "watch failed, trying again");
                        }
                    }
                }
            }
        }
    }

    /// Has every watch begin again with a list, because the CRD of what they watch is another one. An object is told as its CRD was
    /// when it was told, and who watches already is told so for a moment longer; that it reads differently now no event says.
    pub fn list_again(&self) {
        self.0.again.send_modify(|times| *times += 1);
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

    /// Kinds that have not delivered their first list.
    pub fn unlisted(&self) -> Vec<&'static str> {
        lock(&self.0.unlisted).iter().copied().collect()
    }

    /// Watches that fail: those that failed before their first list, and those that are refused again and again since.
    pub fn troubles(&self, now: Instant) -> Vec<Trouble> {
        let unlisted = lock(&self.0.unlisted).clone();
        let failing = lock(&self.0.failing);
        let told = failing.iter().filter(|(kind, failing)| unlisted.contains(*kind) || failing.lasts(now));
        told.map(|(_, failing)| failing.trouble.clone()).collect()
    }

    /// Whether every watch has delivered its list and none has failed lately.
    pub fn are_open(&self, now: Instant) -> bool {
        let failed = *lock(&self.0.failed);
        self.are_listed() && failed.is_none_or(|at| now.saturating_duration_since(at) > OPEN_AFTER)
    }
}

impl State {
    async fn still_holds(&self) -> bool {
        let Some(guard) = &self.guard else { return true };
        loop {
            match guard.still_holds().await {
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

#[cfg(test)]
mod tests;
