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

/// How long the answer may take until it is said that it is not there.
const NOTED_AFTER: Duration = Duration::from_secs(1);

/// Those exports.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Since when.
    since: HashMap<ServiceName, Instant>,
    /// Those of which something bad was said before.
    troubled: HashSet<ServiceName>,
}

impl Pending {
    /// How long to wait until it is said that there is no answer; none if the time has come.
    pub(super) fn wait(&mut self, service: &ServiceName, now: Instant) -> Option<Duration> {
        let since = *self.since.entry(service.clone()).or_insert(now);
        let left = NOTED_AFTER.saturating_sub(now.saturating_duration_since(since));
        (!left.is_zero()).then_some(left)
    }

    /// It is said that there is no answer, where something bad was said.
    pub(super) fn was_troubled(&mut self, service: &ServiceName) {
        self.troubled.insert(service.clone());
    }

    /// It waits for no answer. Whether something bad was said before it did.
    pub(super) fn ended(&mut self, service: &ServiceName) -> bool {
        self.since.remove(service);
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
        assert!(!pending.ended(&web));
        assert_eq!(pending.wait(&web, later(1100)), Some(NOTED_AFTER), "another change");
        pending.was_troubled(&web);
        assert!(pending.ended(&web) && !pending.ended(&web));
    }
}
