//! How often homes are answered that may bring nothing here: pure but for the clock, which comes in as an argument.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use kit::index::Shared;

/// How often such a home is answered, at the most: it may change its map as often as it likes, and each answer is a write.
const PACE: Duration = Duration::from_secs(30);

/// When each was answered last. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Pace(Shared<BTreeMap<String, Instant>>);

impl Pace {
    /// Nothing if the home is answered now; otherwise how long it has to wait.
    pub(super) fn wait(&self, home: &str, now: Instant) -> Option<Duration> {
        self.0.with(|answered| {
            answered.retain(|_, at| now.saturating_duration_since(*at) < PACE);
            if let Some(at) = answered.get(home) {
                return Some(PACE - now.saturating_duration_since(*at));
            }
            answered.insert(home.to_owned(), now);
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_without_consent_is_answered_at_once_and_then_now_and_then() {
        let (pace, start) = (Pace::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(pace.wait("west", at(0)), None);
        assert_eq!(pace.wait("west", at(10)), Some(Duration::from_secs(20)));
        assert_eq!(pace.wait("north", at(10)), None, "each has its own");
        let answers = (11..=600).filter(|seconds| pace.wait("west", at(*seconds)).is_none()).count();
        assert_eq!(answers, 20, "however often it asks");
    }
}
