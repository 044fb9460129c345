//! When the token for the leader is replaced, and when it is too late to be quiet about it. Pure.

use std::time::{Duration, Instant};

use api::token::Life;
use jiff::Timestamp;

/// Into how many parts of its life the members' renewals are spread: those who joined at once do not all come at once.
const SPREAD: f64 = 10.0;
/// How often a token is replaced at the most, where clocks say that it is time.
const SELDOM: Duration = Duration::from_secs(3600);
/// How often it is replaced at the most, whatever its life is.
const AT_MOST: Duration = Duration::from_secs(60);

/// Whether it is time for another token: half of the life of this one is over. `now` is the leader's time, as far as that is known, and
/// `held` for how long this process has had the token, if it got it itself. `share`: which part of the spread passes, from 0 to 1.
pub(super) fn is_due(life: &Life, now: Timestamp, held: Option<Duration>, share: f64) -> bool {
    let span = between(life.issued, life.expires);
    let wait = span / 2 + span.mul_f64(share.clamp(0.0, 1.0) / SPREAD);
    let by_clock = between(life.issued, now) >= wait;
    match held {
        None => by_clock,
        // By a clock that is far ahead each token is old when it is given, and by one that was set back it never gets old.
        Some(held) => held >= wait.max(AT_MOST) || by_clock && held >= (span / 2).clamp(AT_MOST, SELDOM),
    }
}

/// Whether less than a quarter of its life is left.
pub(super) fn is_short(life: &Life, now: Timestamp) -> bool {
    between(now, life.expires) < between(life.issued, life.expires) / 4
}

/// When something that was tried is tried again.
pub(super) struct Pace {
    rest: Duration,
    refused_until: Option<Instant>,
    written: Option<Instant>,
}

impl Pace {
    /// It is written at most once in `rest`.
    pub(super) fn resting(rest: Duration) -> Self {
        Self { rest, refused_until: None, written: None }
    }

    /// It was refused, and is not asked for before then.
    pub(super) fn refused(&mut self, until: Instant) {
        self.refused_until = Some(until);
    }

    /// It was written now. Where somebody puts back what it replaced, both would write all the time.
    pub(super) fn written(&mut self, now: Instant) {
        self.written = Some(now);
    }

    /// What was refused may be granted.
    pub(super) fn changed(&mut self) {
        self.refused_until = None;
    }

    /// Whether it is too early.
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.refused_until.is_some_and(|until| now < until)
            || self.written.is_some_and(|written| now < written + self.rest)
    }
}

/// Nothing where the second is the earlier one.
fn between(first: Timestamp, second: Timestamp) -> Duration {
    Duration::try_from(second.duration_since(first)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hour * HOUR).unwrap()
    }

    fn held(hours: u64) -> Option<Duration> {
        Some(Duration::from_secs(hours * 3600))
    }

    fn a_day() -> Life {
        Life { issued: at(0), expires: at(24) }
    }

    #[test]
    fn it_is_replaced_when_half_of_its_life_is_over_and_not_by_all_at_once() {
        let due = |hour, share| is_due(&a_day(), at(hour), None, share);
        assert!(!due(11, 0.0) && due(12, 0.0));
        assert!(!due(14, 1.0) && due(15, 1.0));
        assert!(due(30, 1.0), "it is over");
    }

    #[test]
    fn the_life_that_was_granted_counts() {
        let short = Life { issued: at(0), expires: at(2) };
        assert!(is_due(&short, at(1), None, 0.0));
        assert!(!is_due(&a_day(), at(1), None, 0.0));
    }

    #[test]
    fn a_wrong_clock_neither_replaces_it_all_the_time_nor_never() {
        let ahead = |hours| is_due(&a_day(), at(100), held(hours), 0.0);
        assert!(!ahead(0) && ahead(1), "once an hour");
        let behind = |hours| is_due(&a_day(), at(-100), held(hours), 0.0);
        assert!(!behind(11) && behind(12));
        let never = Life { issued: at(1), expires: at(0) };
        assert!(!is_due(&never, at(2), held(0), 0.0), "a life that makes no sense");
    }

    #[test]
    fn what_somebody_puts_back_is_replaced_once_a_minute() {
        let (now, mut pace) = (Instant::now(), Pace::resting(AT_MOST));
        let later = |seconds| now + Duration::from_secs(seconds);
        assert!(!pace.waits(now));
        pace.written(now);
        pace.changed();
        assert!(pace.waits(later(59)) && !pace.waits(later(60)));
        pace.refused(later(600));
        assert!(pace.waits(later(599)) && !pace.waits(later(600)));
        pace.changed();
        assert!(!pace.waits(later(60)), "another credential is tried at once");
    }

    #[test]
    fn somebody_has_to_act_when_a_quarter_is_left() {
        assert!(!is_short(&a_day(), at(17)) && is_short(&a_day(), at(19)) && is_short(&a_day(), at(25)));
    }
}
