//! Exports that the leader has not answered yet: pure.
//!
//! The leader mostly answers within a few milliseconds, and then nobody has seen that it had not: such a note would cost each export a
//! write more. So it is written when the answer takes longer: longer also than where a thousand exports come at once, which is when writes
//! count.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use api::ServiceName;

/// For how long the leader may answer no export until it is said of one that its answer is not there.
const NOTED_AFTER: Duration = Duration::from_secs(1);
/// How long an answer may take while those to other exports come.
const LONGEST: Duration = Duration::from_secs(30);

/// Those exports.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Since when.
    since: HashMap<ServiceName, Instant>,
    /// Those of which something bad was said before.
    troubled: HashSet<ServiceName>,
    /// When one of them was answered last.
    answered: Option<Instant>,
}

impl Pending {
    /// How long to wait until it is said that there is no answer; none if the time has come.
    pub(super) fn wait(&mut self, service: &ServiceName, now: Instant) -> Option<Duration> {
        let since = *self.since.entry(service.clone()).or_insert(now);
        let silent_since = self.answered.map_or(since, |answered| answered.max(since));
        let until = (silent_since + NOTED_AFTER).min(since + LONGEST);
        let left = until.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// It is said that there is no answer, where something bad was said.
    pub(super) fn was_troubled(&mut self, service: &ServiceName) {
        self.troubled.insert(service.clone());
    }

    /// It is no valid export any more: nobody waits for an answer.
    pub(super) fn withdrawn(&mut self, service: &ServiceName) {
        self.since.remove(service);
        self.troubled.remove(service);
    }

    /// It waits for no answer. Whether something bad was said before it did.
    pub(super) fn ended(&mut self, service: &ServiceName, now: Instant) -> bool {
        if self.since.remove(service).is_some() {
            self.answered = Some(now);
        }
        self.troubled.remove(service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_takes_long_is_said_to_be_missing() {
        let (mut pending, web, now) = (Pending::default(), ServiceName::new("shop", "web"), Instant::now());
        let later = |millis| now + Duration::from_millis(millis);
        assert_eq!(pending.wait(&web, now), Some(NOTED_AFTER));
        assert_eq!(pending.wait(&web, later(100)), Some(Duration::from_millis(900)));
        assert_eq!(pending.wait(&web, later(1000)), None);
        assert!(!pending.ended(&web, later(1000)));
        assert_eq!(pending.wait(&web, later(1100)), Some(NOTED_AFTER), "another change");
        pending.was_troubled(&web);
        assert!(pending.ended(&web, now) && !pending.ended(&web, now));
    }

    #[test]
    fn while_others_are_answered_an_answer_may_take_longer() {
        let (mut pending, now) = (Pending::default(), Instant::now());
        let later = |millis| now + Duration::from_millis(millis);
        let [web, other] = ["web", "other"].map(|name| ServiceName::new("shop", name));
        pending.wait(&web, now);
        for second in 1..=29 {
            let at = later(second * 1000 - 100);
            pending.wait(&other, at);
            pending.ended(&other, at);
            assert_eq!(pending.wait(&web, at), Some(NOTED_AFTER), "{second}");
        }
        pending.wait(&other, later(29_500));
        pending.ended(&other, later(29_500));
        assert_eq!(pending.wait(&web, later(29_500)), Some(Duration::from_millis(500)), "the longest");
        assert_eq!(pending.wait(&web, later(30_000)), None);
    }

    #[test]
    fn an_export_that_goes_was_not_answered() {
        let (mut pending, now) = (Pending::default(), Instant::now());
        let [web, other] = ["web", "other"].map(|name| ServiceName::new("shop", name));
        pending.wait(&web, now);
        pending.wait(&other, now);
        pending.withdrawn(&other);
        assert_eq!(pending.wait(&web, now + NOTED_AFTER), None);
    }
}
