//! Which keys to look at, and when. Pure: the clock comes in as an argument, [`drive`](crate::drive) waits.
//!
//! A key is looked at once at a time, as soon as it is marked but not more often than `pace` allows; a key whose look
//! failed waits longer each time, and being marked meanwhile shortens the wait to the first step only, so that a busy
//! object that keeps failing cannot turn into a storm.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    hash::Hash,
    time::{Duration, Instant},
};

use crate::backoff::Backoff;

/// First wait after a failure.
pub const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Waits after failures of one key.
const WAITS: Backoff = Backoff { first: FIRST_WAIT, longest: Duration::from_secs(60) };

/// Fewer keys than this are not worth tidying up.
const CROWDED: usize = 1024;

/// How a look ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is as it should be.
    Done,
    /// All is as it should be so far; look again after this time.
    Requeue(Duration),
    /// It did not work: look again after a wait that doubles each time.
    Failed,
}

/// Keys waiting, ready and being looked at.
pub struct Queue<K> {
    pace: Duration,
    keys: HashMap<K, State>,
    /// Times at which keys are due; an entry counts only if the key is still due at that time.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    tickets: HashMap<u64, K>,
    next_ticket: u64,
    running: usize,
    /// Idle keys are looked for when there are more keys than this.
    crowded: usize,
}

struct State {
    /// When to look, and the ticket in `due`; `None` while nobody asked.
    due: Option<(Instant, u64)>,
    /// Somebody looks right now.
    running: bool,
    /// Marked while somebody looked.
    marked: bool,
    failures: u32,
    /// When the last look began, for `pace`.
    last: Option<Instant>,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// A queue that hands out the same key at most once every `pace`.
    pub fn new(pace: Duration) -> Self {
        Self {
            pace,
            keys: HashMap::new(),
            due: BinaryHeap::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            running: 0,
            crowded: CROWDED,
        }
    }

    /// Asks for a look at `key`.
    pub fn enqueue(&mut self, key: K, now: Instant) {
        let state = self.keys.entry(key.clone()).or_insert(State::new());
        if state.running {
            state.marked = true;
            return;
        }
        let at = if state.failures > 0 {
            now + FIRST_WAIT
        } else {
            state.last.map_or(now, |last| now.max(last + self.pace))
        };
        self.schedule(key, at);
    }

    /// What kept looks from working may be over: asks for another look at every key whose last one failed.
    pub fn hurry(&mut self, now: Instant) {
        // One that is being looked at may be about to fail for the same cause.
        let waiting = self.keys.iter().filter(|(_, state)| state.failures > 0).map(|(key, _)| key.clone());
        let waiting: Vec<_> = waiting.collect();
        waiting.into_iter().for_each(|key| self.enqueue(key, now));
    }

    /// The next key to look at, if one is due.
    pub fn take(&mut self, now: Instant) -> Option<K> {
        while let Some(Reverse((at, ticket))) = self.due.peek().copied() {
            if at > now {
                return None;
            }
            self.due.pop();
            let Some(key) = self.tickets.remove(&ticket) else {
                continue;
            };
            if let Some(state) = self.keys.get_mut(&key)
                && state.due == Some((at, ticket))
            {
                state.due = None;
                state.running = true;
                state.marked = false;
                state.last = Some(now);
                self.running += 1;
                return Some(key);
            }
        }
        None
    }

    /// Says how the look at `key` ended.
    pub fn done(&mut self, key: &K, outcome: Outcome, now: Instant) {
        let Some(state) = self.keys.get_mut(key) else {
            return;
        };
        self.running -= usize::from(std::mem::replace(&mut state.running, false));
        state.failures = if outcome == Outcome::Failed { state.failures.saturating_add(1) } else { 0 };
        let paced = state.last.map_or(now, |last| now.max(last + self.pace));
        let at = match outcome {
            Outcome::Failed if state.marked => Some(now + FIRST_WAIT),
            Outcome::Failed => Some(now + WAITS.wait(state.failures)),
            _ if state.marked => Some(paced),
            Outcome::Requeue(after) => Some(now + after),
            Outcome::Done => None,
        };
        match at {
            Some(at) => self.schedule(key.clone(), at),
            None if paced <= now => drop(self.keys.remove(key)),
            None => {}
        }
        if self.keys.len() > self.crowded {
            self.forget_idle(now);
            self.crowded = CROWDED.max(2 * self.keys.len());
        }
    }

    /// When the next key is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Nothing is waiting to be written: no key is running, due, or waiting after a failure. A key that only looks again
    /// later ([`Outcome::Requeue`]) has nothing to write now.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.keys
            .values()
            .all(|s| !s.running && s.failures == 0 && s.due.is_none_or(|(at, _)| at > now + self.pace))
    }

    /// Number of keys waiting or being looked at.
    pub fn len(&self) -> usize {
        self.tickets.len() + self.running
    }

    /// Whether no key is waiting or being looked at.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn schedule(&mut self, key: K, at: Instant) {
        let state = self.keys.entry(key.clone()).or_insert(State::new());
        if state.due.is_some_and(|(earlier, _)| earlier <= at) {
            return;
        }
        if let Some((_, later)) = state.due {
            self.tickets.remove(&later);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        state.due = Some((at, ticket));
        self.tickets.insert(ticket, key);
        self.due.push(Reverse((at, ticket)));
    }

    /// Idle keys are kept only for their pace.
    fn forget_idle(&mut self, now: Instant) {
        let pace = self.pace;
        self.keys.retain(|_, s| {
            s.running || s.due.is_some() || s.failures > 0 || s.last.is_some_and(|last| last + pace > now)
        });
    }
}

impl State {
    fn new() -> Self {
        Self { due: None, running: false, marked: false, failures: 0, last: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn queue(pace: Duration) -> (Queue<&'static str>, Instant) {
        (Queue::new(pace), Instant::now())
    }

    #[test]
    fn a_key_is_looked_at_once_at_a_time_and_again_if_marked_meanwhile() {
        let (mut q, t) = queue(Duration::ZERO);
        q.enqueue("a", t);
        q.enqueue("a", t);
        assert_eq!(q.take(t), Some("a"));
        assert_eq!(q.take(t), None);
        q.enqueue("a", t);
        assert_eq!(q.take(t), None, "still running");
        assert!(!q.is_idle(t));
        q.done(&"a", Outcome::Done, t);
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Done, t);
        assert_eq!(q.take(t), None);
        assert!(q.is_idle(t) && q.is_empty() && q.keys.is_empty() && q.tickets.is_empty());
    }

    #[test]
    fn the_first_mark_runs_at_once_and_the_next_keeps_the_pace() {
        let (mut q, t) = queue(250 * MS);
        q.enqueue("a", t);
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Done, t + MS);
        q.enqueue("a", t + 2 * MS);
        assert_eq!(q.take(t + 249 * MS), None);
        assert_eq!(q.next_due(), Some(t + 250 * MS));
        assert_eq!(q.take(t + 250 * MS), Some("a"));
        q.done(&"a", Outcome::Done, t + 251 * MS);
        q.enqueue("a", t + 900 * MS);
        assert_eq!(q.take(t + 900 * MS), Some("a"), "long after, at once again");
    }

    #[test]
    fn failures_wait_longer_and_a_mark_shortens_the_wait_to_the_first_step() {
        let (mut q, mut t) = queue(Duration::ZERO);
        q.enqueue("a", t);
        for wait in [200, 400, 800, 1600] {
            assert_eq!(q.take(t), Some("a"));
            q.done(&"a", Outcome::Failed, t);
            assert_eq!(q.next_due(), Some(t + wait * MS));
            assert!(!q.is_idle(t));
            t += wait * MS;
        }
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Failed, t);
        q.enqueue("a", t);
        assert_eq!(q.take(t), None);
        t += FIRST_WAIT;
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Failed, t);
        q.hurry(t);
        assert_eq!(q.next_due(), Some(t + FIRST_WAIT));
        t += FIRST_WAIT;
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Done, t);
        q.hurry(t);
        assert!(q.is_idle(t) && q.is_empty());
    }

    #[test]
    fn looking_again_later_is_idle() {
        let (mut q, t) = queue(Duration::ZERO);
        q.enqueue("a", t);
        q.take(t);
        q.done(&"a", Outcome::Requeue(Duration::from_secs(5)), t);
        assert!(q.is_idle(t));
        assert_eq!(q.take(t + Duration::from_secs(5)), Some("a"));
    }
}
