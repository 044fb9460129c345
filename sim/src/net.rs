//! The network between clients and API servers: latency and faults from one seed, a log of all that passes, and the audit logs of the API servers.

mod audit;
mod fault;
mod link;
mod traffic;
mod wire;

use std::{
    fmt::{Arguments, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

pub use self::{fault::Fault, traffic::Traffic};
use self::{fault::Faults, link::Link, traffic::Counts};
use crate::{api::Server, invariant::Author, random::Random};

/// Longest time that a request, an answer or an event travels, in milliseconds.
const LATENCY: u64 = 3;

/// How much goes wrong on all links.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Of a thousand requests so many are answered 503.
    pub refused: u64,
    /// Of a thousand requests so many are carried out and not answered.
    pub unanswered: u64,
    /// Watches end after this time on average; zero: never before the API server ends them.
    pub cut_after: Duration,
    /// Events of a watch arrive later by a time below this one, which is drawn when the watch starts: news come after answers to later writes, and in
    /// another order than those of other watches.
    pub late: Duration,
}

/// Who asks an API server.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The process.
    pub process: String,
    /// Its name for the API server.
    pub user: String,
    pub author: Author,
}

impl Caller {
    /// An administrator.
    pub fn admin() -> Self {
        Self { process: "admin".to_owned(), user: "admin".to_owned(), author: Author::Other }
    }
}

/// What all links share.
pub struct Net {
    state: Mutex<State>,
    /// Tells watches that a link is another one now.
    changed: watch::Sender<()>,
    started: Instant,
}

struct State {
    random: Random,
    rates: Rates,
    faults: Faults,
    log: String,
    /// Requests that write: the cluster, and an event as audit logs have it.
    audit: Vec<(String, Value)>,
    counts: Counts,
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
            rates: Rates::default(),
            faults: Faults::default(),
            log: String::new(),
            audit: Vec::new(),
            counts: Counts::default(),
        };
        Arc::new(Self { state: Mutex::new(state), changed: watch::Sender::new(()), started: Instant::now() })
    }

    /// A client of `server`.
    pub fn client(self: &Arc<Self>, server: &Arc<Server>, caller: Caller) -> Client {
        Client::new(Link::new(caller, server.clone(), self.clone()), "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on so much goes wrong.
    pub fn break_with(&self, rates: Rates) {
        self.state().rates = rates;
    }

    /// From now on this is wrong with the link of a process to a cluster's API server, or nothing.
    pub fn set(&self, process: &str, cluster: &str, fault: Option<Fault>) {
        self.log(format_args!("-- {process} to {cluster}: {fault:?}"));
        self.state().faults.set(process, cluster, fault);
        self.changed.send_replace(());
    }

    /// From now on a cluster's API server answers nobody, or answers again.
    pub fn set_down(&self, cluster: &str, is_down: bool) {
        self.log(format_args!("-- {cluster} is {}", if is_down { "down" } else { "up" }));
        self.state().faults.set_down(cluster, is_down);
        self.changed.send_replace(());
    }

    fn fault(&self, process: &str, cluster: &str) -> Option<Fault> {
        self.state().faults.of(process, cluster)
    }

    /// A random number below `limit`.
    pub fn below(&self, limit: u64) -> u64 {
        self.state().random.draw_below(limit)
    }

    fn latency(&self) -> Duration {
        Duration::from_millis(1 + self.below(LATENCY))
    }

    fn fate(&self) -> Fate {
        let mut state = self.state();
        let drawn = state.random.draw_below(1000);
        let Rates { refused, unanswered, .. } = state.rates;
        match drawn {
            drawn if drawn < refused => Fate::Refused,
            drawn if drawn < refused + unanswered => Fate::Unanswered,
            _ => Fate::Answered,
        }
    }

    /// How much later the events of a watch that starts now arrive.
    fn late(&self) -> Duration {
        let mut state = self.state();
        let late = u64::try_from(state.rates.late.as_millis()).unwrap_or(u64::MAX);
        if late == 0 { Duration::ZERO } else { Duration::from_millis(state.random.draw_below(late)) }
    }

    /// When a watch that starts now is cut, if it is, and whether it ends as if the API server ended it.
    fn cut_at(&self) -> (Option<Instant>, bool) {
        let mut state = self.state();
        let mean = u64::try_from(state.rates.cut_after.as_millis()).unwrap_or(u64::MAX / 2);
        let at =
            (mean > 0).then(|| Instant::now() + Duration::from_millis(1 + state.random.draw_below(2 * mean)));
        (at, state.random.draw_below(2) == 0)
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

    /// The last lines of the log.
    pub fn log_tail(&self, lines: usize) -> String {
        let state = self.state();
        let from = state.log.rmatch_indices('\n').nth(lines).map_or(0, |(at, _)| at + 1);
        state.log[from..].to_owned()
    }

    /// All requests so far.
    pub fn requests(&self) -> u64 {
        self.state().counts.requests()
    }

    /// What passed between clients and a cluster's API server so far, of Leases or of everything else.
    pub fn traffic(&self, cluster: &str, is_of_leases: bool) -> Traffic {
        self.state().counts.of(cluster, is_of_leases)
    }

    /// Forgets the requests that wrote.
    pub(crate) fn forget_audit(&self) {
        self.state().audit = Vec::new();
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
