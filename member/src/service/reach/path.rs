//! Whether endpoints of one cluster answer from here: pure.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

use jiff::Timestamp;

/// How many endpoints of a cluster are asked, one after the other.
const TARGETS: usize = 3;
/// Between two connects to a cluster, at the least: each of three endpoints is asked about every 10 s.
pub(super) const PACE: Duration = Duration::from_millis(3200);
/// What is added to it, at the most, so that those who ask do not do so in step.
pub(super) const SPREAD: Duration = Duration::from_millis(300);
/// The same while nobody answers: as long as an answer is waited for.
const HASTE: Duration = Duration::from_secs(2);
/// No more connects than these in [`WHILE`].
const LIMIT: usize = 20;
const WHILE: Duration = Duration::from_secs(60);
/// So many in a row without an answer, of all endpoints that are asked, and a cluster is not reached any more.
const SILENCES: usize = 3;
/// The same where there are always others to ask: a few endpoints may go together, with their node, and the way is still there.
const MOST_SILENCES: usize = 5;

/// What becomes of a connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The connection stands.
    Connected,
    /// It was refused. That takes a host to which there is a way.
    Refused,
    /// Nobody said anything, or there is no way.
    Silent,
}

/// The way to the endpoints of one cluster.
#[derive(Debug)]
pub(super) struct Path {
    /// Those that are asked, in their order.
    targets: Vec<SocketAddr>,
    /// Those that take the place of silent ones, the best last.
    others: Vec<SocketAddr>,
    /// Which of the targets is next.
    next: usize,
    /// Not before.
    due: Instant,
    /// When somebody was asked last, [`LIMIT`] times.
    asked: VecDeque<Instant>,
    /// Endpoints that did not answer when they were asked last.
    silent: BTreeSet<SocketAddr>,
    /// Connects without an answer since the last one with an answer.
    silences: usize,
    /// Whether one was ever answered: a way that never was cannot be lost. Pods of this cluster may have one all the same, where
    /// a gateway or a NetworkPolicy lets them through and the daemon not.
    was_reached: bool,
    /// When a connection stood last that this process made.
    connected: Option<Instant>,
    /// Since when no endpoint answers.
    unreached: Option<Timestamp>,
}

impl Path {
    /// An endpoint has answered an earlier process.
    pub(super) fn answered_once(&mut self) {
        self.was_reached = true;
    }

    /// A way that this process has not tried yet. What one before it had found out: whether anybody ever answered, and since when
    /// nobody does.
    pub(super) fn new(due: Instant, was_reached: bool, unreached: Option<Timestamp>) -> Self {
        Self {
            targets: vec![],
            others: vec![],
            next: 0,
            due,
            asked: VecDeque::new(),
            silent: BTreeSet::new(),
            silences: 0,
            was_reached: was_reached || unreached.is_some(),
            connected: None,
            unreached,
        }
    }

    /// Chooses whom to ask among endpoints, which have an order of preference. Who is asked goes on being asked; one that does not
    /// answer gives its place to another: it may be the endpoint that is away, and not the way.
    pub(super) fn aim(&mut self, endpoints: &BTreeMap<u64, SocketAddr>) {
        if endpoints.is_empty() {
            // Nobody is left who could ever answer.
            (self.silences, self.unreached) = (0, None);
        }
        let there: BTreeSet<_> = endpoints.values().copied().collect();
        self.silent.retain(|target| there.contains(target));
        self.targets.retain(|target| there.contains(target));
        let mut all: Vec<_> = endpoints.values().copied().collect();
        all.sort_by_key(|target| (self.silent.contains(target), !self.targets.contains(target)));
        let mut chosen = BTreeSet::new();
        all.retain(|target| chosen.insert(*target));
        self.others = all.split_off(all.len().min(TARGETS));
        self.others.retain(|target| !self.silent.contains(target));
        self.others.truncate(MOST_SILENCES);
        self.others.reverse();
        self.targets.retain(|target| all.contains(target));
        let new: Vec<_> = all.into_iter().filter(|target| !self.targets.contains(target)).collect();
        self.targets.extend(new);
    }

    /// Whom to ask now, if it is time; `jitter` is the chance in when it is time again.
    pub(super) fn ask(&mut self, now: Instant, jitter: Duration) -> Option<SocketAddr> {
        if now < self.due() {
            return None;
        }
        self.due = now + PACE + jitter;
        let target = self.targets.get(self.next % self.targets.len().max(1)).copied()?;
        self.next = self.next.wrapping_add(1);
        self.asked.push_back(now);
        if self.asked.len() > LIMIT {
            self.asked.pop_front();
        }
        Some(target)
    }

    /// When it is time to ask again.
    pub(super) fn due(&self) -> Instant {
        let first = self.asked.front().filter(|_| self.asked.len() == LIMIT);
        first.map_or(self.due, |first| self.due.max(*first + WHILE))
    }

    /// Takes in what became of a connect at `now`, `clock` by the wall.
    pub(super) fn hear(&mut self, target: SocketAddr, answer: Answer, now: Instant, clock: Timestamp) {
        match answer {
            Answer::Connected | Answer::Refused => {
                if answer == Answer::Connected {
                    self.connected = Some(now);
                }
                self.silent.remove(&target);
                (self.silences, self.was_reached, self.unreached) = (0, true, None);
            }
            Answer::Silent => {
                // One that went meanwhile has a right to be silent.
                if let Some(place) = self.targets.iter_mut().find(|place| **place == target) {
                    *place = self.others.pop().unwrap_or(target);
                    self.silent.insert(target);
                    self.silences += 1;
                    self.doubt(clock);
                }
            }
        }
    }

    /// Decides whether it is lost, or asks the next one soon.
    fn doubt(&mut self, clock: Timestamp) {
        let are_all_silent = self.targets.iter().all(|target| self.silent.contains(target));
        let enough = if are_all_silent { SILENCES } else { MOST_SILENCES };
        if !self.is_in_doubt() {
            return;
        }
        if self.silences >= enough {
            self.unreached = Some(clock);
        } else if let Some(asked) = self.asked.back() {
            self.due = self.due.min(*asked + HASTE);
        }
    }

    /// Since when no endpoint answers.
    pub(super) fn unreached(&self) -> Option<Timestamp> {
        self.unreached
    }

    /// Whether anybody ever answered.
    pub(super) fn was_reached(&self) -> bool {
        self.was_reached
    }

    /// When somebody took a connection last, as far as there is anybody to ask.
    pub(super) fn connected(&self) -> Option<Instant> {
        self.connected.filter(|_| !self.targets.is_empty() && self.unreached.is_none())
    }

    /// Whether it may be lost soon.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.was_reached && self.unreached.is_none()
    }
}

#[cfg(test)]
mod tests;
