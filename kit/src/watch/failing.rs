//! Whether failures of a watch are one trouble that lasts, and how often that is worth a line in the log.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::Trouble;

/// How many failures in a row are said once at the most: with the longest pause, a quarter of an hour.
const SAID_AGAIN: u32 = 128;

/// Time for the answers to an attempt to watch: it may ask for the version of the API server first.
const ANSWER: Duration = Duration::from_secs(4);

/// A watch that fails.
pub(super) struct Failing {
    pub(super) trouble: Trouble,
    at: Instant,
    /// The pause before the next attempt.
    pause: Duration,
    /// In a row.
    times: u32,
}

impl Failing {
    /// Whether it is worth a line in the log: another failure than before, or the same for ever longer.
    pub(super) fn again(
        failing: &mut BTreeMap<&'static str, Self>,
        trouble: Trouble,
        (now, pause): (Instant, Duration),
    ) -> bool {
        let before = failing.get(trouble.source.kind).filter(|before| before.attempt_due() >= now);
        let times = before.map_or(1, |before| before.times.saturating_add(1));
        let is_news = before.is_none_or(|before| before.trouble != trouble);
        failing.insert(trouble.source.kind, Self { trouble, at: now, pause, times });
        is_news || times.is_power_of_two() || times.is_multiple_of(SAID_AGAIN)
    }

    /// A watch that is open again need not have anything to tell: it did not fail again when it should have. A server that
    /// just started may refuse once what it grants a moment later.
    pub(super) fn lasts(&self, now: Instant) -> bool {
        self.trouble.failure.is_refusal() && self.times > 1 && now <= self.attempt_due()
    }

    /// By then the next attempt has been made, and has failed if it fails.
    fn attempt_due(&self) -> Instant {
        self.at + self.pause + ANSWER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        failure::Failure,
        watch::{PAUSES, Source},
    };

    #[test]
    fn a_watch_is_in_trouble_while_it_is_refused_again_and_again() {
        let (mut failing, t) = (BTreeMap::new(), Instant::now());
        let at = |seconds| t + Duration::from_secs(seconds);
        let source = Source { cluster: "local", kind: "ServiceExport" };
        let mut fails = |failure: Failure, at: Instant| {
            let _ = Failing::again(&mut failing, Trouble { source, failure }, (at, PAUSES.longest));
            let now = &failing[source.kind];
            (now.lasts(at), now.lasts(at + Duration::from_secs(30)))
        };
        assert_eq!(fails(Failure::KindMissing, at(0)), (false, false), "once may be by chance");
        assert_eq!(fails(Failure::KindMissing, at(9)), (true, false), "open again, and silent");
        assert_eq!(fails(Failure::KindMissing, at(18)), (true, false));
        assert_eq!(fails(Failure::Unreachable("gone"), at(20)), (false, false), "the Lease says that");
        assert_eq!(fails(Failure::KindMissing, at(500)), (false, false), "another time");
    }

    #[test]
    fn a_watch_that_fails_for_long_is_said_ever_more_seldom() {
        let (mut failing, mut at) = (BTreeMap::new(), Instant::now());
        let source = Source { cluster: "leader", kind: "Lease" };
        let said = (1..=400).filter(|failures| {
            let pause = PAUSES.wait(*failures);
            at += pause;
            let trouble = Trouble { source, failure: Failure::KindMissing };
            Failing::again(&mut failing, trouble, (at, PAUSES.wait(failures + 1)))
        });
        assert_eq!(said.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 384]);
        let other = Trouble { source, failure: Failure::Unauthorized };
        assert!(Failing::again(&mut failing, other, (at, PAUSES.longest)), "something else");
    }
}
