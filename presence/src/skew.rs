//! How far the leader's clock is from ours, by the renewals of its Lease. Pure: both clocks come in as arguments.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// How far the leader's clock is from ours, as far as it matters.
#[derive(Default)]
pub(crate) struct Skew {
    last: Option<(Instant, i64)>,
    /// Seconds the leader's clock is ahead.
    said: Option<i64>,
}

/// Certificates, tokens and the order of exports by age tolerate less than this.
const TOLERATED: i64 = 30;
/// Renewals that come together after a pause of the watch agree, and tell nothing.
const APART: Duration = Duration::from_secs(1);
/// A difference changes what is said only if it is larger.
const NOTABLE: i64 = 10;

impl Skew {
    /// The leader's Lease was renewed at `renewed` by its own clock, and we heard of it `live`, not in a list. Seconds by which
    /// its clock is ahead of ours, if that is too much.
    ///
    /// A renewal that comes late, as after a pause of the watch, looks like skew: only two apart that agree are believed.
    pub(crate) fn hear(
        &mut self,
        renewed: Timestamp,
        live: bool,
        now: Instant,
        clock: Timestamp,
    ) -> Option<i64> {
        if !live {
            self.last = None;
            return self.said;
        }
        let ahead = renewed.as_second() - clock.as_second();
        let apart = |at: Instant| now.saturating_duration_since(at) >= APART;
        if let Some((_, before)) = self.last.filter(|(at, _)| apart(*at))
            && (ahead - before).abs() < NOTABLE
        {
            let differs = self.said.is_none_or(|said| (said - ahead).abs() >= NOTABLE);
            self.said = if ahead.abs() <= TOLERATED {
                None
            } else if differs {
                Some(ahead)
            } else {
                self.said
            };
        }
        self.last = Some((now, ahead));
        self.said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_believed_when_two_live_renewals_agree() {
        let (mut skew, t) = (Skew::default(), Instant::now());
        let clock = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let mut hear = |second: u64, ahead: i64, live: bool| {
            let ours = clock(i64::try_from(second).unwrap());
            skew.hear(
                clock(i64::try_from(second).unwrap() + ahead),
                live,
                t + Duration::from_secs(second),
                ours,
            )
        };
        assert_eq!(hear(0, -300, false), None, "in the first list: an old renewal");
        assert_eq!(hear(10, 45, true), None);
        assert_eq!(hear(20, 46, true), Some(46));
        assert_eq!(hear(30, 44, true), Some(46), "much the same");
        assert_eq!(hear(40, -60, true), Some(46), "one that came late");
        assert_eq!(hear(50, 2, true), Some(46));
        assert_eq!(hear(60, 2, true), None);
    }
}
