//! When a changed report is written, and when that of another cluster counts: pure. Other clusters read every report, so one that keeps
//! changing is written less and less often.

use std::time::{Duration, Instant};

/// Shortest time between two writes.
const FIRST: Duration = Duration::from_secs(10);
/// Longest time between two writes of a report that keeps changing; and how old numbers may be.
const LONGEST: Duration = Duration::from_secs(300);

/// How a report differs from what was written of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// In nothing.
    None,
    /// In numbers alone, which each export changes in each cluster.
    Numbers,
    /// In what is missing or not ready, or in what the member is.
    Content,
    /// In everything: there is no report.
    All,
}

/// When the report was written, and how often it may be.
#[derive(Debug)]
pub(crate) struct Pace {
    written: Option<Instant>,
    /// Time between the last write and the next one.
    gap: Duration,
    /// Since when numbers differ.
    numbers_since: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { written: None, gap: FIRST, numbers_since: None }
    }
}

impl Pace {
    /// Returns how long to wait until a report that differs so is written; none if there is nothing to write.
    pub(super) fn wait(&mut self, difference: Difference, now: Instant) -> Option<Duration> {
        let after = |gap| self.written.map_or(now, |written| written + gap);
        let free = after(self.gap);
        let due = match difference {
            Difference::None => {
                self.numbers_since = None;
                return None;
            }
            Difference::Numbers => free.max(*self.numbers_since.get_or_insert(now) + LONGEST),
            Difference::Content => free,
            Difference::All => after(FIRST),
        };
        Some(due.saturating_duration_since(now))
    }

    /// Takes in that it was written.
    pub(super) fn wrote(&mut self, now: Instant) {
        let keeps_changing =
            self.written.is_some_and(|written| now.saturating_duration_since(written) < 2 * self.gap);
        self.gap = if keeps_changing { (2 * self.gap).min(LONGEST) } else { FIRST };
        (self.written, self.numbers_since) = (Some(now), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds at which a report is written that differs so in each of these seconds.
    fn writes(pace: &mut Pace, start: Instant, differs: impl Iterator<Item = (u64, Difference)>) -> Vec<u64> {
        let mut writes = Vec::new();
        for (second, difference) in differs {
            let now = start + Duration::from_secs(second);
            if pace.wait(difference, now).is_some_and(|wait| wait.is_zero()) {
                pace.wrote(now);
                writes.push(second);
            }
        }
        writes
    }

    #[test]
    fn a_report_that_keeps_changing_is_written_less_and_less_often() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let always = (0..1300).map(|second| (second, Difference::Content));
        assert_eq!(writes(&mut pace, start, always), [0, 10, 30, 70, 150, 310, 610, 910, 1210]);
        let later = (1900..1911).map(|second| (second, Difference::Content));
        assert_eq!(writes(&mut pace, start, later), [1900, 1910], "it was quiet for long");
    }

    #[test]
    fn two_changes_within_the_shortest_time_are_one_write() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let changes = [(0, Difference::Content), (1, Difference::Content), (2, Difference::None)];
        assert_eq!(writes(&mut pace, start, changes.into_iter()), [0], "it changed back");
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(pace.wait(Difference::Content, at(3)), Some(Duration::from_secs(7)));
        assert_eq!(pace.wait(Difference::Content, at(10)), Some(Duration::ZERO));
    }

    #[test]
    fn a_report_that_somebody_deleted_is_written_again_soon() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        writes(&mut pace, start, (0..400).map(|second| (second, Difference::Content)));
        let at = start + Duration::from_secs(315);
        assert_eq!(pace.wait(Difference::Content, at), Some(Duration::from_secs(295)));
        assert_eq!(pace.wait(Difference::All, at), Some(Duration::from_secs(5)));
    }

    #[test]
    fn numbers_alone_are_written_five_minutes_later() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let exports = (100..1000).map(|second| (second, Difference::Numbers));
        assert_eq!(writes(&mut pace, start, exports), [400, 701], "however many change them");
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(pace.wait(Difference::None, at(1000)), None, "all is written");
        assert_eq!(pace.wait(Difference::Numbers, at(1001)), Some(LONGEST), "from now on");
        assert_eq!(pace.wait(Difference::Content, at(1002)), Some(Duration::ZERO), "and with other news");
    }
}
