//! How long to wait after failures: twice as long each time, up to a limit.

use std::time::Duration;

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
    /// The waits one after the other, as kube's streams take them.
    pub fn waits(self) -> Waits {
        Waits { backoff: self, failures: 0 }
    }
}

/// The waits of a [`Backoff`] one after the other, without end.
#[derive(Debug)]
pub struct Waits {
    backoff: Backoff,
    failures: u32,
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        Some(self.backoff.wait(self.failures))
    }
}

impl kube::runtime::utils::Backoff for Waits {
    fn reset(&mut self) {
        self.failures = 0;
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
