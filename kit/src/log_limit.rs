//! Lines of one kind in a log: so many a minute are written, the rest are counted, so that a flood of failures does not become
//! a flood of lines. Pure: the clock comes in as an argument.

use std::time::{Duration, Instant};

/// Lines that are written in one [`SPAN`].
const LINES: u32 = 20;
const SPAN: Duration = Duration::from_secs(60);

/// How much was said lately.
#[derive(Debug, Default)]
pub struct LogLimit {
    since: Option<Instant>,
    written: u32,
    left_out: u32,
}

impl LogLimit {
    /// Whether to write a line now, and how many were left out before it.
    pub fn allows(&mut self, now: Instant) -> Option<u32> {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= SPAN) {
            (self.since, self.written) = (Some(now), 0);
        }
        if self.written == LINES {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_short_and_counted() {
        let (mut log_limit, t) = (LogLimit::default(), Instant::now());
        assert_eq!(
            (0..LINES + 30).filter_map(|_| log_limit.allows(t)).collect::<Vec<_>>(),
            [0; LINES as usize]
        );
        assert_eq!(log_limit.allows(t + SPAN), Some(30));
        assert_eq!(log_limit.allows(t + SPAN), Some(0));
    }
}
