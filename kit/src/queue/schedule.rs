//! Which keys to reconcile, and when. Pure: the clock comes in as an argument, [`drive`](crate::drive) waits.
//!
//! A key is reconciled once at a time, as soon as it is enqueued but not more often than `pace` allows. After each failure it
//! waits longer; when it is enqueued meanwhile it waits only as long as after the first failure, so that a busy object that
//! keeps failing does not become a storm of requests. Of the keys that are due, each party has its [turn](super::turns).

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    hash::Hash,
    time::{Duration, Instant},
};

use super::{
    Outcome,
    turns::{Party, Turns},
};
use crate::backoff::Backoff;

/// First wait after a failure.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Waits after failures of one key. A refused write that is not repeated within one and a half times the longest is not reported any more.
const WAITS: Backoff = Backoff { first: FIRST_WAIT, longest: Duration::from_secs(30) };

/// Fewer keys than this are not worth tidying up.
const CROWDED: usize = 1024;

/// Keys that wait, are due or are being reconciled.
pub(super) struct Schedule<K> {
    pace: Duration,
    keys: HashMap<K, State>,
    /// Times at which keys are due; an entry counts only if the key is still due at that time.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    tickets: HashMap<u64, K>,
    /// Those that were found due.
    turns: Turns<(Instant, u64)>,
    next_ticket: u64,
    running: usize,
    /// Idle keys are looked for when there are more keys than this.
    crowded: usize,
}

struct State {
    /// Whose it was when it was enqueued last.
    party: Party,
    /// When it is due, and the ticket in `due`; `None` while it is not enqueued.
    due: Option<(Instant, u64)>,
    /// It is being reconciled.
    running: bool,
    /// When it was enqueued: the first time that no reconcile has answered.
    seen: Option<Instant>,
    /// When it was enqueued while it was being reconciled, for the first time.
    again: Option<Instant>,
    failures: u32,
    /// When the last reconcile began, for `pace`.
    last: Option<Instant>,
}

impl<K: Clone + Eq + Hash> Schedule<K> {
    /// A queue that hands out the same key at most once every `pace`.
    pub(super) fn new(pace: Duration) -> Self {
        Self {
            pace,
            keys: HashMap::new(),
            due: BinaryHeap::new(),
            tickets: HashMap::new(),
            turns: Turns::new(),
            next_ticket: 0,
            running: 0,
            crowded: CROWDED,
        }
    }

    /// Asks for a reconcile of `key`.
    pub(super) fn enqueue(&mut self, key: K, party: Party, now: Instant) {
        let state = self.keys.entry(key.clone()).or_insert(State::new());
        state.party = party;
        if state.running {
            state.again.get_or_insert(now);
            return;
        }
        state.seen.get_or_insert(now);
        let at = if state.failures > 0 {
            now + FIRST_WAIT
        } else {
            state.last.map_or(now, |last| now.max(last + self.pace))
        };
        self.schedule(key, at);
    }

    /// The cause of failures may be over: enqueues every key whose last reconcile failed.
    pub(super) fn retry_failed(&mut self, now: Instant) {
        // One that is being reconciled may be about to fail for the same cause.
        let waiting = self.keys.iter().filter(|(_, state)| state.failures > 0);
        let waiting: Vec<_> = waiting.map(|(key, state)| (key.clone(), state.party)).collect();
        waiting.into_iter().for_each(|(key, party)| self.enqueue(key, party, now));
    }

    /// The next key to reconcile, if one is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<K> {
        while let Some(Reverse((at, ticket))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.due.pop();
            if let Some(state) = self.tickets.get(&ticket).and_then(|key| self.keys.get(key)) {
                self.turns.put(state.party, (at, ticket));
            }
        }
        while let Some((at, ticket)) = self.turns.take() {
            let Some(key) = self.tickets.remove(&ticket) else {
                continue;
            };
            if let Some(state) = self.keys.get_mut(&key)
                && state.due == Some((at, ticket))
            {
                state.due = None;
                state.running = true;
                state.again = None;
                state.last = Some(now);
                self.running += 1;
                return Some(key);
            }
        }
        None
    }

    /// Says how the reconcile of `key` ended. How long it took to answer what it was enqueued for, if it did.
    pub(super) fn done(&mut self, key: &K, outcome: Outcome, now: Instant) -> Option<Duration> {
        let state = self.keys.get_mut(key)?;
        self.running -= usize::from(std::mem::replace(&mut state.running, false));
        state.failures = if outcome == Outcome::Failed { state.failures.saturating_add(1) } else { 0 };
        let paced = state.last.map_or(now, |last| now.max(last + self.pace));
        let answered = if outcome == Outcome::Failed { None } else { state.seen.take() };
        let again = state.again.take();
        state.seen = state.seen.or(again);
        let at = match outcome {
            Outcome::Failed if again.is_some() => Some(now + FIRST_WAIT),
            Outcome::Failed => Some(now + WAITS.wait(state.failures)),
            _ if again.is_some() => Some(paced),
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
        answered.map(|seen| now.saturating_duration_since(seen))
    }

    /// When the next key is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.turns.first().map(|(at, _)| *at);
        waiting.or_else(|| self.due.peek().map(|Reverse((at, _))| *at))
    }

    /// Keys with something left to write: those that are running, due, or waiting after a failure. A key that is only to be reconciled
    /// again later ([`Outcome::Requeue`]) has nothing to write now.
    pub(super) fn busy(&self, now: Instant) -> impl Iterator<Item = &K> {
        let is_due = move |s: &State| s.due.is_some_and(|(at, _)| at <= now + self.pace);
        let busy = move |s: &State| s.running || s.failures > 0 || is_due(s);
        self.keys.iter().filter(move |(_, state)| busy(state)).map(|(key, _)| key)
    }

    /// Nothing is waiting to be written.
    #[cfg(test)]
    fn is_idle(&self, now: Instant) -> bool {
        self.busy(now).next().is_none()
    }

    /// Number of keys that wait or are being reconciled.
    pub(super) fn len(&self) -> usize {
        self.tickets.len() + self.running
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
        Self {
            party: Party::NOBODY,
            due: None,
            running: false,
            seen: None,
            again: None,
            failures: 0,
            last: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const NOBODY: Party = Party::NOBODY;

    fn queue(pace: Duration) -> (Schedule<&'static str>, Instant) {
        (Schedule::new(pace), Instant::now())
    }

    #[test]
    fn a_key_is_reconciled_once_at_a_time_and_again_if_enqueued_meanwhile() {
        let (mut q, t) = queue(Duration::ZERO);
        q.enqueue("a", NOBODY, t);
        q.enqueue("a", NOBODY, t);
        assert_eq!(q.take(t), Some("a"));
        assert_eq!(q.take(t), None);
        q.enqueue("a", NOBODY, t);
        assert_eq!(q.take(t), None, "still running");
        assert_eq!(q.busy(t).collect::<Vec<_>>(), [&"a"]);
        assert!(!q.is_idle(t));
        q.done(&"a", Outcome::Done, t);
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Done, t);
        assert_eq!(q.take(t), None);
        assert!(q.is_idle(t) && q.len() == 0 && q.keys.is_empty() && q.tickets.is_empty());
    }

    #[test]
    fn the_first_runs_at_once_and_the_next_keeps_the_pace() {
        let (mut q, t) = queue(250 * MS);
        q.enqueue("a", NOBODY, t);
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Done, t + MS);
        q.enqueue("a", NOBODY, t + 2 * MS);
        assert_eq!(q.take(t + 249 * MS), None);
        assert_eq!(q.next_due(), Some(t + 250 * MS));
        assert_eq!(q.take(t + 250 * MS), Some("a"));
        q.done(&"a", Outcome::Done, t + 251 * MS);
        q.enqueue("a", NOBODY, t + 900 * MS);
        assert_eq!(q.take(t + 900 * MS), Some("a"), "long after, at once again");
    }

    #[test]
    fn failures_wait_longer_and_what_is_enqueued_meanwhile_waits_only_for_the_first_step() {
        let (mut q, mut t) = queue(Duration::ZERO);
        q.enqueue("a", NOBODY, t);
        for wait in [200, 400, 800, 1600] {
            assert_eq!(q.take(t), Some("a"));
            q.done(&"a", Outcome::Failed, t);
            assert_eq!(q.next_due(), Some(t + wait * MS));
            assert!(!q.is_idle(t));
            t += wait * MS;
        }
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Failed, t);
        q.enqueue("a", NOBODY, t);
        assert_eq!(q.take(t), None);
        t += FIRST_WAIT;
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Failed, t);
        q.retry_failed(t);
        assert_eq!(q.next_due(), Some(t + FIRST_WAIT));
        t += FIRST_WAIT;
        assert_eq!(q.take(t), Some("a"));
        q.done(&"a", Outcome::Done, t);
        q.retry_failed(t);
        assert!(q.is_idle(t) && q.len() == 0);
    }

    #[test]
    fn what_a_key_was_enqueued_for_is_answered_when_a_reconcile_that_began_after_it_succeeds() {
        let (mut q, t) = queue(Duration::ZERO);
        q.enqueue("a", NOBODY, t);
        q.enqueue("a", NOBODY, t + MS);
        assert_eq!(q.take(t + 2 * MS), Some("a"));
        q.enqueue("a", NOBODY, t + 3 * MS);
        assert_eq!(q.done(&"a", Outcome::Failed, t + 4 * MS), None);
        let later = t + 4 * MS + FIRST_WAIT;
        assert_eq!(q.take(later), Some("a"));
        q.enqueue("a", NOBODY, later + MS);
        assert_eq!(q.done(&"a", Outcome::Done, later + 2 * MS), Some(later + 2 * MS - t), "since the first");
        assert_eq!(q.take(later + 2 * MS), Some("a"));
        assert_eq!(q.done(&"a", Outcome::Requeue(MS), later + 5 * MS), Some(4 * MS));
        assert_eq!(q.take(later + 6 * MS), Some("a"));
        assert_eq!(q.done(&"a", Outcome::Done, later + 7 * MS), None, "nobody enqueued it");
    }

    #[test]
    fn reconciling_again_later_is_idle() {
        let (mut q, t) = queue(Duration::ZERO);
        q.enqueue("a", NOBODY, t);
        q.take(t);
        q.done(&"a", Outcome::Requeue(Duration::from_secs(5)), t);
        assert!(q.is_idle(t));
        assert_eq!(q.take(t + Duration::from_secs(5)), Some("a"));
    }

    #[test]
    fn a_party_with_many_keys_that_are_due_does_not_make_another_wait() {
        let (mut q, t) = (Schedule::new(Duration::ZERO), Instant::now());
        let (much, little) = (Party::of(["much"]), Party::of(["little"]));
        (0..100).for_each(|key| q.enqueue(key, much, t));
        assert_eq!(q.take(t), Some(0));
        q.enqueue(1000, little, t + MS);
        let taken = [q.take(t + MS), q.take(t + MS), q.take(t + MS)];
        assert!(taken.contains(&Some(1000)), "{taken:?}");
        assert_eq!(q.next_due(), Some(t));
        (0..97).for_each(|_| assert!(q.take(t + MS).is_some()));
        assert_eq!((q.take(t + MS), q.next_due()), (None, None));
    }
}
