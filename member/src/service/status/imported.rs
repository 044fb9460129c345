//! What the clusters of the set report of their imports of a Service, in a condition of its ServiceExport: pure.

use api::{
    condition::{Condition, Verdict},
    mcs::{IMPORTED, READY},
};
use rules::{reports::Reports, status::NAMESPACE_MISSING};

/// What was said stands while the reports are not known, and while the leader has not answered a change of the export.
pub(super) fn keep_imported(want: &mut Vec<Condition>, have: &[Condition], reports: &Reports) {
    let ready = want.iter().find(|said| said.type_ == READY).map(|ready| ready.status.as_str());
    let stands = match ready {
        Some("Unknown") => *reports != Reports::Absent,
        Some("True") => *reports == Reports::Unknown,
        _ => false,
    };
    if stands && !want.iter().any(|said| said.type_ == IMPORTED) {
        want.extend(have.iter().find(|said| said.type_ == IMPORTED).cloned());
    }
}

/// Whether a verdict that is not bad is worth an Event after this condition: clusters that have no Namespace for the Service are named once,
/// and it is said when all have it.
pub(super) fn is_news(before: Option<&Condition>, verdict: &Verdict) -> bool {
    let was_missing = before.is_some_and(|before| before.reason == NAMESPACE_MISSING);
    verdict.type_ == IMPORTED && was_missing != (verdict.reason == NAMESPACE_MISSING)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::{
        condition::{Status, conditions},
        report::ClusterReportStatus,
    };
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rules::{reports::Reported, status::imported};
    use serde_json::{Value, json};

    use super::*;
    use crate::service::offer::fixture::service;

    fn reported(reports: &[(&str, Value)]) -> Verdict {
        let read = |value: &Value| serde_json::from_value::<ClusterReportStatus>(value.clone()).unwrap();
        let all: Vec<_> = reports.iter().map(|(cluster, value)| (*cluster, read(value))).collect();
        let reported = Reported::of(all.iter().map(|(cluster, status)| (*cluster, status)));
        imported(&reported, &service())
    }

    #[test]
    fn what_was_said_stands_until_it_is_known_anew() {
        let now = Time(Timestamp::UNIX_EPOCH);
        let said = |verdict: &Verdict| conditions(std::slice::from_ref(verdict), &[], Some(1), &now);
        let have = said(&reported(&[]));
        let keeps = |ready: Status, reports: &Reports| {
            let mut want = said(&Verdict::new(READY, ready, "r", "m"));
            keep_imported(&mut want, &have, reports);
            want.len() == 2
        };
        let known = Reports::Known(Arc::default());
        assert!(keeps(Status::True, &Reports::Unknown), "a restart writes nothing");
        assert!(keeps(Status::Unknown, &known), "the leader has not answered yet");
        assert!(!keeps(Status::True, &Reports::Absent) && !keeps(Status::Unknown, &Reports::Absent));
        assert!(!keeps(Status::False, &known), "it is not exported");
    }

    #[test]
    fn clusters_without_the_namespace_are_an_event_once() {
        let lacks = json!({"missingNamespaces": ["shop"]});
        let (good, missing) = (reported(&[]), reported(&[("west", lacks.clone())]));
        let more = reported(&[("north", lacks.clone()), ("west", lacks)]);
        let before = |verdict: &Verdict| {
            conditions(std::slice::from_ref(verdict), &[], None, &Time(Timestamp::UNIX_EPOCH)).remove(0)
        };
        assert!(!is_news(None, &good) && is_news(None, &missing));
        assert!(is_news(Some(&before(&good)), &missing) && is_news(Some(&before(&missing)), &good));
        assert!(!is_news(Some(&before(&missing)), &more) && !is_news(Some(&before(&good)), &good));
    }
}
