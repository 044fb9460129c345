//! Writes that API servers refuse, whichever controller asks for them. [`Writer`](crate::write::Writer) notes every refusal here, and
//! removes it when the same write succeeds, so no controller has to.
//!
//! A controller tries a refused write again at least every 30 s. A refusal that is not repeated within [`STALE`] is over: nobody wants
//! that write any more.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    cluster_set::WRITES_ACCEPTED,
    condition::{Status, Verdict},
    view::shortened,
    words::first_names,
};
use tokio::{
    sync::watch,
    time::{sleep, sleep_until},
};

use super::Tally;
use crate::index::Shared;

/// Time after which a refusal that was not repeated is removed: one and a half times the longest back-off. Together with [`LASTING`] and
/// [`COLLECTED`] it is less than a minute.
const STALE: Duration = Duration::from_secs(45);
/// Time for which a write has to be refused before it is reported: an API server that has just started, or has just been given a right or a
/// policy, refuses some writes that it accepts a moment later.
const LASTING: Duration = Duration::from_secs(5);
/// Time for which changes are collected before they are reported: a quota refuses thousands of writes, one after the other.
const COLLECTED: Duration = Duration::from_secs(5);
/// Length of an API server's message that is kept, in bytes: one that quotes the object is as long as that.
const WORDS: usize = 500;
/// Number of refusals that are kept. More are only counted by `freeport_writes_total`.
const KEPT: usize = 10_000;

/// A write request, without its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Common Area for which it is sent; empty in a member.
    pub area: Arc<str>,
    /// Part of the daemon that sends it and has nothing to do with its ClusterSet; empty for the others.
    pub part: &'static str,
    /// The API server: `local`, `leader` or `provider`.
    pub cluster: &'static str,
    /// `create`, `patch`, `replace`, `apply`, `delete`, `finalizers`, or the name of a subresource.
    pub verb: String,
    /// API group of the object; empty for the core group. Kinds of several groups have one name.
    pub group: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object, if it has one.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verb.as_str() {
            verb @ ("create" | "delete") => write!(f, "{verb} ")?,
            "patch" | "replace" | "apply" => f.write_str("change ")?,
            subresource => write!(f, "write the {subresource} of ")?,
        }
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// A request that is being refused.
#[derive(Clone, Debug)]
struct Refusal {
    /// The API server's message.
    words: String,
    first: Instant,
    last: Instant,
}

impl Refusal {
    fn lasts(&self) -> bool {
        self.last.duration_since(self.first) >= LASTING
    }

    fn is_stale(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) > STALE
    }
}

/// All refusals of a process. Cloning shares them.
#[derive(Clone)]
pub struct Refusals {
    known: Shared<BTreeMap<Request, Refusal>>,
    /// What [`Refusals::verdict`] returned last, by Common Area.
    reported: Shared<BTreeMap<String, Option<String>>>,
    changed: watch::Sender<()>,
    counted: Tally,
}

impl Refusals {
    /// Returns an empty set. `counted` has the labels Common Area, cluster, kind and verb.
    pub(crate) fn new(counted: Tally) -> Self {
        let changed = watch::Sender::new(());
        Self { known: Shared::default(), reported: Shared::default(), changed, counted }
    }

    /// Notes that the API server refused the request, with its message.
    pub(crate) fn put(&self, request: Request, words: String, now: Instant) {
        let words = shortened(words, WORDS);
        let is_news = self.known.with(|known| {
            if let Some(had) = known.get_mut(&request) {
                let was_said = had.lasts() && had.words == words;
                (had.words, had.last) = (words, now);
                return had.lasts() && !was_said;
            }
            if known.len() < KEPT {
                self.count(&request, true);
                known.insert(request, Refusal { words, first: now, last: now });
            }
            false
        });
        if is_news {
            self.changed.send_replace(());
        }
    }

    /// Reports whether nothing is refused.
    pub fn is_empty(&self) -> bool {
        self.known.with(|known| known.is_empty())
    }

    /// Notes that the API server accepted the request, or that there is nothing to write to.
    pub(crate) fn remove(&self, request: &Request) {
        let had = self.known.with(|known| known.remove(request));
        if had.is_some() {
            self.count(request, false);
            self.changed.send_replace(());
        }
    }

    /// Removes refusals that were not repeated in time.
    pub fn prune(&self, now: Instant) {
        let stale: Vec<_> = self.known.with(|known| {
            let stale = known.iter().filter(|(_, refusal)| refusal.is_stale(now));
            stale.map(|(request, _)| request.clone()).collect()
        });
        stale.iter().for_each(|request| self.remove(request));
    }

    /// Removes what belongs to a Common Area that is not served any more, or to work that has ended.
    pub fn forget(&self, area: &str) {
        self.forget_those(area, |_| true);
    }

    /// Removes those requests of the Common Area for which `is_meant` holds.
    pub fn forget_those(&self, area: &str, is_meant: impl Fn(&Request) -> bool) {
        let is_of = |request: &&Request| *request.area == *area && is_meant(request);
        let these: Vec<_> = self.known.with(|known| known.keys().filter(is_of).cloned().collect());
        these.iter().for_each(|request| self.remove(request));
        self.reported.with(|reported| reported.remove(area));
    }

    /// Waits until [`verdict`](Self::verdict) of this Common Area returns something else than the last time.
    pub async fn changed(&self, area: &str) {
        let mut changes = self.changes();
        loop {
            let reported = self.reported.with(|reported| reported.get(area).cloned());
            if reported.is_some_and(|reported| reported != self.message(area)) {
                return sleep(COLLECTED).await;
            }
            self.next(&mut changes).await;
        }
    }

    /// Tells of every change that is to be reported.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Waits for one of `changes`, and collects what follows at once.
    pub async fn news(&self, changes: &mut watch::Receiver<()>) {
        self.next(changes).await;
        sleep(COLLECTED).await;
    }

    /// Waits for one of `changes`, or for the end of a refusal that was not repeated.
    async fn next(&self, changes: &mut watch::Receiver<()>) {
        let oldest = self.known.with(|known| known.values().map(|refusal| refusal.last).min());
        let prune = async {
            match oldest {
                Some(last) => sleep_until((last + STALE + LASTING).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = changes.changed() => {}
            () = prune => self.prune(Instant::now()),
        }
    }

    /// Returns what a ClusterSet reports of them: one of this Common Area, or with an empty name that of a member.
    pub fn verdict(&self, area: &str) -> Verdict {
        let message = self.message(area);
        self.reported.with(|reported| reported.insert(area.to_owned(), message.clone()));
        match message {
            Some(message) => refused(message),
            None => {
                let message = "API servers accept what this daemon writes";
                Verdict::new(WRITES_ACCEPTED, Status::True, "Accepted", message)
            }
        }
    }

    /// Returns the verdict on those requests for which `is_meant` holds; `None` if none of them is refused.
    pub fn verdict_of(&self, is_meant: impl Fn(&Request) -> bool) -> Option<Verdict> {
        self.message_of(is_meant).map(refused)
    }

    /// Returns what API servers refuse in this Common Area, or to a leader outside of all Common Areas, with the first names and the message
    /// of the first refusal; `None` if there is nothing.
    pub fn message(&self, area: &str) -> Option<String> {
        self.message_of(|request| *request.area == *area || request.area.is_empty())
    }

    /// Returns the [`message`](Self::message) of those requests alone for which `is_meant` holds.
    pub fn message_of(&self, is_meant: impl Fn(&Request) -> bool) -> Option<String> {
        self.known.with(|known| {
            let lasting = known.iter().filter(|(request, refusal)| refusal.lasts() && is_meant(request));
            message(lasting.map(|(request, refusal)| (request, refusal.words.as_str())))
        })
    }

    fn count(&self, request: &Request, is_there: bool) {
        let Request { area, part, cluster, group, kind, verb, .. } = request;
        self.counted.put(
            &format!("{area} {part} {cluster} {verb} {group} {request}"),
            is_there.then_some([area, cluster, kind, verb]),
        );
    }
}

fn refused(message: String) -> Verdict {
    Verdict::new(WRITES_ACCEPTED, Status::False, "Refused", message)
}

/// One sentence for each API server.
fn message<'a>(refused: impl Iterator<Item = (&'a Request, &'a str)>) -> Option<String> {
    let mut by_cluster = BTreeMap::<&str, Vec<_>>::new();
    for (request, words) in refused {
        by_cluster.entry(request.cluster).or_default().push((request, words));
    }
    let sentences = by_cluster.into_iter().filter_map(|(cluster, these)| {
        let (_, words) = these.first()?;
        let names = first_names(these.iter().map(|(request, _)| request));
        let server = match cluster {
            "local" => "the API server of this cluster".to_owned(),
            other => format!("the {other}'s API server"),
        };
        Some(format!("{server} refuses to {names}: {words:?}"))
    });
    let sentences: Vec<_> = sentences.collect();
    (!sentences.is_empty()).then(|| sentences.join(". "))
}

#[cfg(test)]
mod tests;
