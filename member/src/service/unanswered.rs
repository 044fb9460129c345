//! That no endpoint can answer, of an export or of an import: when it is said. Pure.
//!
//! It is said when it lasts: Pods that come up after their ServiceExport cost no write, and no user an alarm. As long as all was well from
//! the beginning, there is no such condition.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use api::{
    ServiceName,
    condition::{Condition, Status, Verdict},
    mcs::NO_READY_ENDPOINTS,
};
use rules::unanswered::{Unanswered, answered};

/// How long it has to last.
const LASTS: Duration = Duration::from_secs(5);

/// The Services of which no endpoint can answer and nothing is said yet, and since when.
#[derive(Debug, Default)]
pub(crate) struct Lasting(HashMap<ServiceName, Instant>);

impl Lasting {
    /// What is to be said of a Service where `have` is said, and when to look again.
    pub(crate) fn verdict(
        &mut self,
        service: &ServiceName,
        why: Option<Unanswered>,
        have: &[Condition],
        now: Instant,
    ) -> (Option<Verdict>, Option<Duration>) {
        let said = have.iter().find(|condition| condition.type_ == NO_READY_ENDPOINTS);
        let is_said = said.is_some_and(|said| said.status == Status::True.as_str());
        let Some(why) = why else {
            self.0.remove(service);
            return (said.map(|_| answered()), None);
        };
        let since = *self.0.entry(service.clone()).or_insert(now);
        let left = (since + LASTS).saturating_duration_since(now);
        if !is_said && !left.is_zero() {
            return (said.map(|_| answered()), Some(left));
        }
        self.0.remove(service);
        (Some(why.verdict()), None)
    }

    /// Nothing is to be said of a Service that is neither exported nor imported.
    pub(crate) fn forget(&mut self, service: &ServiceName) -> (Option<Verdict>, Option<Duration>) {
        self.0.remove(service);
        (None, None)
    }
}

#[cfg(test)]
mod tests {
    use api::condition::conditions;
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rules::unanswered::{NO_ENDPOINTS, NOT_READY};

    use super::*;

    #[test]
    fn only_what_lasts_is_said_and_what_was_said_is_put_right_at_once() {
        let (mut lasting, web, begun) = (Lasting::default(), ServiceName::new("shop", "web"), Instant::now());
        let none = || Some(Unanswered::new(NO_ENDPOINTS, "none"));
        let not_ready = || Some(Unanswered::new(NOT_READY, "not ready"));
        let later = |seconds| begun + Duration::from_secs(seconds);
        let said = |verdict: &Option<Verdict>| {
            conditions(verdict.as_slice(), &[], None, &Time(Timestamp::UNIX_EPOCH))
        };
        let words = |verdict: &Option<Verdict>| {
            verdict.as_ref().map(|verdict| (verdict.status.as_str(), verdict.reason.clone()))
        };
        assert_eq!(lasting.verdict(&web, none(), &[], begun), (None, Some(LASTS)));
        assert_eq!(lasting.verdict(&web, not_ready(), &[], later(2)), (None, Some(Duration::from_secs(3))));
        assert_eq!(
            lasting.verdict(&web, None, &[], later(3)),
            (None, None),
            "all is well, and costs nothing"
        );
        assert_eq!(lasting.verdict(&web, none(), &[], later(4)), (None, Some(LASTS)), "counted anew");
        let (verdict, wait) = lasting.verdict(&web, none(), &[], later(9));
        assert_eq!((words(&verdict), wait), (Some(("True", NO_ENDPOINTS.into())), None));
        let have = said(&verdict);
        let (verdict, wait) = lasting.verdict(&web, not_ready(), &have, later(10));
        assert_eq!((words(&verdict), wait), (Some(("True", NOT_READY.into())), None), "another reason");
        let (verdict, wait) = lasting.verdict(&web, None, &said(&verdict), later(11));
        assert_eq!((words(&verdict), wait), (Some(("False", "EndpointsReady".into())), None));
        let have = said(&verdict);
        assert_eq!(lasting.verdict(&web, none(), &have, later(12)), (verdict, Some(LASTS)), "as it is said");
        lasting.forget(&web);
        assert!(lasting.0.is_empty());
    }
}
