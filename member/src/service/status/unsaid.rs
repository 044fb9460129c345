//! What conditions said before a write of them failed: pure.
//!
//! A write without an answer may have happened. Then the next look finds that all is said already, and no Event was left.

use std::collections::HashMap;

use api::{ServiceName, condition::Condition};

/// The exports with such a write.
#[derive(Debug, Default)]
pub(super) struct Unsaid(HashMap<ServiceName, Vec<Condition>>);

impl Unsaid {
    /// A write failed where `have` was said. Of several the first counts: no Event was left since.
    pub(super) fn failed(&mut self, service: &ServiceName, have: &[Condition]) {
        self.0.entry(service.clone()).or_insert_with(|| have.to_vec());
    }

    /// What the last Event that was left knew, where that is not what is said now. It is left now, or of no use any more.
    pub(super) fn take(&mut self, service: &ServiceName) -> Option<Vec<Condition>> {
        self.0.remove(service)
    }
}

#[cfg(test)]
mod tests {
    use api::{
        condition::{Status, Verdict, conditions},
        mcs::READY,
    };
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn a_change_whose_write_got_no_answer_is_told_from_what_was_said_before_it() {
        let (mut unsaid, web) = (Unsaid::default(), ServiceName::new("shop", "web"));
        let said = |reason: &str| {
            let verdict = Verdict::new(READY, Status::False, reason, "m");
            conditions(&[verdict], &[], Some(1), &Time(Timestamp::UNIX_EPOCH))
        };
        assert_eq!(unsaid.take(&web), None, "nothing failed");
        unsaid.failed(&web, &said("Exported"));
        unsaid.failed(&web, &said("Refused"));
        assert_eq!(unsaid.take(&web), Some(said("Exported")));
        assert_eq!(unsaid.take(&web), None, "once");
    }
}
