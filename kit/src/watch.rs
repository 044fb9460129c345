//! A watch whose failures stay its own: it backs off by itself, tells nobody but the log and a metric, and goes on.

mod failing;
mod feed;
mod gather;
mod latest;
mod turn;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use kube::{Api, Resource, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::{
    failing::Failing,
    feed::{Feed, Reader, Step},
    gather::{Decode, Stream},
    turn::Turn,
};
pub use self::{gather::Gather, latest::Latest};
use crate::{
    backoff::Backoff,
    failure::Failure,
    metrics::Metrics,
    objects::{Change, Streamed},
};

/// A watch without an error for this long is taken to be open. Longer than the longest pause between two attempts of a
/// watch that fails.
const OPEN_AFTER: Duration = Duration::from_secs(15);

/// Pauses between attempts of a watch that fails.
const PAUSES: Backoff = Backoff { first: Duration::from_millis(800), longest: Duration::from_secs(8) };

/// How long an API server may take to follow a change of a CRD that a watch has told of.
pub const IN_FORCE: Duration = Duration::from_secs(5);

/// How soon the guard is asked again where it could not tell.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Knows whether an API server still holds what it held, or was restored from a backup.
pub trait Guard: Send + Sync {
    /// Asks the API server. The error is that of the request: then it is not known.
    fn still_holds(&self) -> BoxFuture<'_, kube::Result<bool>>;
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
    /// When a watch failed last.
    failed: watch::Sender<Option<Instant>>,
    guard: Option<Arc<dyn Guard>>,
    restored: CancellationToken,
    again: watch::Sender<Again>,
    turn: Turn,
    /// How many list, or wait until they may.
    listing: AtomicUsize,
    latest: Latest,
}

/// A watch that lists: of what happens meanwhile it tells nothing.
struct Listing<'a>(&'a AtomicUsize);

impl<'a> Listing<'a> {
    fn of(all: &'a AtomicUsize) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(all)
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// That all is to be listed again.
#[derive(Clone, Copy, Default)]
struct Again {
    /// How often.
    times: u64,
    /// Others have to do so at the same moment.
    is_crowd: bool,
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
    /// Watches of an API server that may be restored from a backup: before a watch believes that a list after its
    /// first one is all, it asks the guard. If the server was restored, all that was watched is worth nothing, and the watches stop.
    pub fn guarded(guard: Arc<dyn Guard>) -> Self {
        Self(Arc::new(State { guard: Some(guard), ..State::default() }))
    }

    /// Waits until a watch has found that the API server was restored. Those without a guard list again, and go on.
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
        self.watching((api, config), source, metrics, Decode::new(Vec::new(), sink))
    }

    /// [`watch`](Self::watch) of what may be many. Its lists are told object by object, so that they are never all here as they were
    /// decoded; until the first one is [`listed`](Self::listed), what is known is a part of it.
    pub fn watch_many<P, S>(
        &self,
        api: Api<P>,
        source: Source,
        metrics: Metrics,
        sink: S,
    ) -> impl Future<Output = ()> + Send + use<P, S>
    where
        S: FnMut(Streamed<P>) + Send,
        P: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        self.watching((api, watcher::Config::default()), source, metrics, Stream::new(sink))
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
        self.watching(all, source, metrics, Decode::new(initial, sink))
    }

    fn watching<P, R>(
        &self,
        (api, config): (Api<P>, watcher::Config),
        source: Source,
        metrics: Metrics,
        mut reader: R,
    ) -> impl Future<Output = ()> + Send + use<P, R>
    where
        P: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        R: Reader,
    {
        lock(&self.0.unlisted).insert(source.kind);
        let (state, again) = (self.0.clone(), self.0.again.subscribe());
        let url = api.resource_url().to_owned();
        let feed = Feed::new(api.into_client(), &url, P::metadata_api(), config, self.0.latest.clone());
        async move {
            state.follow(feed, again, (source, metrics), &mut reader).await;
        }
    }

    /// Has every watch begin again with a list, because the CRD of what they watch is another one. An object is told as its CRD was
    /// when it was told, and who watches already is told so for a moment longer; that it reads differently now no event says.
    pub fn list_again(&self) {
        self.begin_again(true);
    }

    /// [`list_again`](Self::list_again) for a reason of our own: no crowd does so, and nobody waits for a turn.
    pub fn list_again_alone(&self) {
        self.begin_again(false);
    }

    fn begin_again(&self, is_crowd: bool) {
        self.0.again.send_modify(|again| *again = Again { times: again.times + 1, is_crowd });
    }

    /// From now on each list waits for its turn: we have this place in a [`crowd`](crate::crowd) of those that may have to list when
    /// we do.
    pub fn take_turns(&self, place: Option<usize>) {
        self.0.turn.take(place);
    }

    /// Returns the latest version that these watches observed.
    pub fn latest(&self) -> Latest {
        self.0.latest.clone()
    }

    /// Waits until every watch begun so far has delivered its first list. Before that, what is missing means nothing.
    pub async fn listed(&self) {
        self.unlisted_are(BTreeSet::is_empty).await;
    }

    /// Waits until every watch begun so far has delivered its first list, or one has failed.
    pub async fn answered(&self) {
        let mut failures = self.failures();
        tokio::select! {
            () = self.listed() => {}
            _ = failures.wait_for(Option::is_some) => {}
        }
    }

    /// Waits until the watches of these kinds, which have begun, have delivered their first lists.
    pub async fn have_listed(&self, kinds: &[&'static str]) {
        self.unlisted_are(|unlisted| kinds.iter().all(|kind| !unlisted.contains(kind))).await;
    }

    async fn unlisted_are(&self, so: impl Fn(&BTreeSet<&'static str>) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if so(&lock(&self.0.unlisted)) {
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

    /// Tells whenever a watch fails.
    pub fn failures(&self) -> watch::Receiver<Option<Instant>> {
        self.0.failed.subscribe()
    }

    /// Whether every watch has delivered its list, none lists again, and none has failed lately.
    pub fn are_open(&self, now: Instant) -> bool {
        let failed = *self.0.failed.borrow();
        let is_none_listing = self.0.listing.load(Ordering::SeqCst) == 0;
        self.are_listed()
            && is_none_listing
            && failed.is_none_or(|at| now.saturating_duration_since(at) > OPEN_AFTER)
    }
}

impl State {
    /// Reads `feed` to `reader`, until the API server turns out to be restored. `again` is told when all is to be listed again.
    async fn follow(
        &self,
        mut feed: Feed,
        mut again: watch::Receiver<Again>,
        (source, metrics): (Source, Metrics),
        reader: &mut dyn Reader,
    ) {
        let Source { cluster, kind } = source;
        let (mut is_first, mut is_crowd, mut listing) = (true, true, None);
        let (mut pauses, mut pause) = (PAUSES.waits(), None);
        loop {
            if feed.begins() {
                listing.get_or_insert_with(|| Listing::of(&self.listing));
            }
            let next = async {
                if let Some(pause) = pause {
                    tokio::time::sleep(pause).await;
                }
                if feed.begins() && is_crowd {
                    self.turn.comes().await;
                }
                feed.next(reader).await
            };
            let step = tokio::select! {
                step = next => step,
                Ok(()) = again.changed() => {
                    is_crowd = again.borrow_and_update().is_crowd;
                    feed.again();
                    pause = None;
                    continue;
                }
            };
            pause = None;
            // The rest of a list may fail again.
            if matches!(step, Ok(Step::Told | Step::Listed { .. }))
                && lock(&self.failing).remove(kind).is_some()
            {
                tracing::info!(cluster, kind, "the watch is open again");
            }
            match step {
                Ok(Step::Partly | Step::Told) => {}
                Ok(Step::Listed { is_older }) => {
                    metrics.listed(cluster, kind);
                    if !std::mem::take(&mut is_first) && !self.still_holds().await {
                        return self.tell_restored(source);
                    }
                    if is_older && self.guard.is_none() {
                        self.latest.forget();
                        self.tell_restored(source);
                    }
                    reader.end();
                    (listing, is_crowd) = (None, true);
                    if lock(&self.unlisted).remove(kind) {
                        self.changed.notify_waiters();
                    }
                }
                // After a pause: API servers behind one address may be at different versions, and it would list without end.
                Ok(Step::Behind) => pause = Some(pauses.wait()),
                Err(error) => {
                    metrics.watch_failed(cluster, kind);
                    self.failed.send_replace(Some(Instant::now()));
                    let wait = pauses.wait();
                    pause = Some(wait);
                    let trouble = Trouble { source, failure: Failure::from(&error) };
                    if Failing::again(&mut lock(&self.failing), trouble, (Instant::now(), wait)) {
                        tracing::warn!(cluster, kind, %error, "watch failed, trying again");
                    }
                }
            }
        }
    }

    fn tell_restored(&self, Source { cluster, kind }: Source) {
        tracing::warn!(cluster, kind, "the API server was restored from a backup or emptied");
        self.restored.cancel();
    }

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
