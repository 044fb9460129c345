//! The network between clients and API servers: latency and faults from one seed, a log of all that passes, and the audit logs of the API servers.

mod audit;
mod link;
mod wire;

use std::{
    collections::BTreeSet,
    fmt::{Arguments, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use self::link::Link;
use crate::{api::Server, clock::Random};

/// Longest time that a request, an answer or an event travels, in milliseconds.
const LATENCY: u64 = 3;

/// How much goes wrong on all links.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Of a thousand requests so many are answered 503.
    pub refused: u64,
    /// Of a thousand requests so many are carried out and not answered.
    pub unanswered: u64,
    /// Watches end after this time on average; zero: never before the API server ends them.
    pub cut_after: Duration,
}

/// Who asks an API server.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The process.
    pub process: String,
    /// Its name for the API server.
    pub user: String,
}

impl Caller {
    /// An administrator.
    pub fn admin() -> Self {
        Self { process: "admin".to_owned(), user: "admin".to_owned() }
    }
}

/// What all links share.
pub struct Net {
    state: Mutex<State>,
    started: Instant,
}

struct State {
    random: Random,
    faults: Faults,
    /// Process and cluster that do not reach each other.
    cut: BTreeSet<(String, String)>,
    log: String,
    /// Requests that write: the cluster, and an event as audit logs have it.
    audit: Vec<(String, Value)>,
    requests: u64,
    events: u64,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    Refused,
    Unanswered,
}

impl Net {
    /// A network on which nothing goes wrong, until [`break_with`](Self::break_with).
    pub fn new(seed: u64) -> Arc<Self> {
        let state = State {
            random: Random::new(seed),
            faults: Faults::default(),
            cut: BTreeSet::new(),
            log: String::new(),
            audit: Vec::new(),
            requests: 0,
            events: 0,
        };
        Arc::new(Self { state: Mutex::new(state), started: Instant::now() })
    }

    /// A client of `server`.
    pub fn client(self: &Arc<Self>, server: &Arc<Server>, caller: Caller) -> Client {
        Client::new(Link::new(caller, server.clone(), self.clone()), "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on so much goes wrong.
    pub fn break_with(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// From now on a process does not reach a cluster's API server.
    pub fn cut(&self, process: &str, cluster: &str) {
        self.state().cut.insert((process.to_owned(), cluster.to_owned()));
        self.log(format_args!("-- {process} does not reach {cluster}"));
    }

    /// From now on it reaches it again.
    pub fn join(&self, process: &str, cluster: &str) {
        self.state().cut.remove(&(process.to_owned(), cluster.to_owned()));
        self.log(format_args!("-- {process} reaches {cluster}"));
    }

    fn is_cut(&self, process: &str, cluster: &str) -> bool {
        let state = self.state();
        !state.cut.is_empty() && state.cut.contains(&(process.to_owned(), cluster.to_owned()))
    }

    /// A random number below `limit`.
    pub fn below(&self, limit: u64) -> u64 {
        self.state().random.below(limit)
    }

    fn latency(&self) -> Duration {
        Duration::from_millis(1 + self.below(LATENCY))
    }

    fn fate(&self) -> Fate {
        let mut state = self.state();
        let drawn = state.random.below(1000);
        let Faults { refused, unanswered, .. } = state.faults;
        match drawn {
            drawn if drawn < refused => Fate::Refused,
            drawn if drawn < refused + unanswered => Fate::Unanswered,
            _ => Fate::Answered,
        }
    }

    /// When a watch that starts now is cut, if it is, and whether it ends as if the API server ended it.
    fn cut_at(&self) -> (Option<Instant>, bool) {
        let mut state = self.state();
        let mean = u64::try_from(state.faults.cut_after.as_millis()).unwrap_or(u64::MAX / 2);
        let at = (mean > 0).then(|| Instant::now() + Duration::from_millis(1 + state.random.below(2 * mean)));
        (at, state.random.below(2) == 0)
    }

    /// Adds a line to the log, after the virtual time in milliseconds.
    pub fn log(&self, line: Arguments<'_>) {
        let at = self.started.elapsed().as_millis();
        let _ = writeln!(self.state().log, "{at:>9} {line}");
    }

    /// The log so far, which starts anew.
    pub fn take_log(&self) -> String {
        std::mem::take(&mut self.state().log)
    }

    /// Requests and events of watches so far.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state();
        (state.requests, state.events)
    }

    /// How many requests have written so far, refused ones too.
    pub fn audited(&self) -> u64 {
        self.state().audit.len() as u64
    }

    /// Requests that wrote after the first `audited`: the cluster, and the event in its audit log.
    pub fn audit_since(&self, audited: u64) -> Vec<(String, Value)> {
        let from = usize::try_from(audited).unwrap_or(usize::MAX);
        self.state().audit.get(from..).unwrap_or_default().to_vec()
    }
}
