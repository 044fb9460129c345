//! How often homes are answered that may bring nothing here: pure but for the clock, which comes in as an argument.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use kit::index::Shared;

/// In which time such a home gets so many answers: it may write as often as it likes, and each answer is a write of ours.
const PACE: Duration = Duration::from_secs(30);

/// When the answers to each began, and how many there were since. Cloning shares it.
#[derive(Clone)]
pub(super) struct Pace {
    answers: u32,
    answered: Shared<BTreeMap<String, (Instant, u32)>>,
}

impl Pace {
    /// So many answers to a home at once.
    pub(super) fn new(answers: u32) -> Self {
        Self { answers, answered: Shared::default() }
    }

    /// Nothing if the home is answered now; otherwise how long it has to wait.
    pub(super) fn wait(&self, home: &str, now: Instant) -> Option<Duration> {
        self.answered.with(|answered| {
            answered.retain(|_, (since, _)| now.saturating_duration_since(*since) < PACE);
            let (since, answers) = answered.entry(home.to_owned()).or_insert((now, 0));
            if *answers >= self.answers {
                return Some(PACE - now.saturating_duration_since(*since));
            }
            *answers += 1;
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_without_consent_is_answered_at_once_and_then_now_and_then() {
        let (pace, start) = (Pace::new(1), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(pace.wait("west", at(0)), None);
        assert_eq!(pace.wait("west", at(10)), Some(Duration::from_secs(20)));
        assert_eq!(pace.wait("north", at(10)), None, "each has its own");
        let answers = (11..=600).filter(|seconds| pace.wait("west", at(*seconds)).is_none()).count();
        assert_eq!(answers, 20, "however often it asks");
    }

    #[test]
    fn as_many_are_answered_at_once_as_there_may_be() {
        let (pace, start) = (Pace::new(3), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let answers = |from: u64| (0..100).filter(|_| pace.wait("west", at(from)).is_none()).count();
        assert_eq!((answers(0), answers(29), answers(30)), (3, 0, 3));
    }
}
