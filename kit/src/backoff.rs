//! How long to wait after failures: twice as long each time, up to a limit.

use std::time::{Duration, Instant};

/// Who has not failed for this long begins with the first wait again.
const FORGIVEN: Duration = Duration::from_secs(120);

/// Waits that double from the first to the longest.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// After many failures in a row. Somebody may be mending the cause and watching.
    pub longest: Duration,
}

impl Backoff {
    /// Wait after the n-th failure in a row, counted from 1.
    pub fn wait(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.longest)
    }
}

impl Backoff {
    /// The waits one after the other.
    pub fn waits(self) -> Waits {
        Waits { backoff: self, failures: 0, last: None }
    }
}

/// The waits of a [`Backoff`] one after the other, without end. Only time without a failure is a success.
#[derive(Debug)]
pub struct Waits {
    backoff: Backoff,
    failures: u32,
    last: Option<Instant>,
}

impl Waits {
    /// How long to wait after a failure of now.
    pub fn wait(&mut self) -> Duration {
        let now = Instant::now();
        if self.last.replace(now).is_some_and(|last| now.saturating_duration_since(last) > FORGIVEN) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.backoff.wait(self.failures)
    }
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.wait())
    }
}

/// For what is asked of a leader: it may be away for long, and many members ask.
pub const LEADER: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(30) };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits: Vec<_> = (1..=6).map(|failures| LEADER.wait(failures).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 30, 30]);
        assert_eq!(LEADER.wait(u32::MAX), LEADER.longest);
    }
}
