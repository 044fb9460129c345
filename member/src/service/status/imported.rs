//! What the clusters of the set report of their imports of a Service, in a condition of its ServiceExport: pure.

use api::{
    condition::{Condition, Status, Verdict},
    mcs::{IMPORTED, READY},
    words::{first_names, first_of},
};

use crate::service::index::{known::Known, reports::Reports};

/// The reason when clusters do not import the Service because they lack its Namespace. It is no fault: a Service is imported where its
/// Namespace is.
const NAMESPACE_MISSING: &str = "NamespaceMissing";

/// What to say of an export that the leader has merged; nothing while no report can be read.
pub(super) fn imported(known: &Known) -> Option<Verdict> {
    let reported = known.cluster.reports.known()?;
    let namespace = &known.service.namespace;
    let missing = match reported.lacking(namespace).as_slice() {
        [] => None,
        [one] => Some(format!("not in {one}: it has no Namespace {namespace}")),
        several => Some(format!("not in {}: they have no Namespace {namespace}", first_names(several))),
    };
    let not_ready: Vec<_> =
        reported.not_ready(&known.service).map(|(cluster, why)| format!("{cluster}: {why}")).collect();
    Some(match (not_ready.is_empty(), missing) {
        (false, missing) => {
            let said = [first_of(not_ready, "; ")].into_iter().chain(missing).collect::<Vec<_>>().join("; ");
            Verdict::new(IMPORTED, Status::False, "NotEverywhere", said)
        }
        (true, Some(missing)) => Verdict::new(IMPORTED, Status::True, NAMESPACE_MISSING, missing),
        (true, None) => Verdict::new(
            IMPORTED,
            Status::True,
            "Imported",
            "no cluster reports that its import is not ready",
        ),
    })
}

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

    use api::{condition::conditions, report::ClusterReportStatus};
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;
    use crate::service::{
        index::reports::Reported,
        offer::fixture::{Settings, entry, known_with},
    };

    fn of(reports: Reports) -> Option<Verdict> {
        imported(&known_with("east", &entry(), Settings { reports, ..Settings::default() }))
    }

    fn reported(reports: &[(&str, Value)]) -> Verdict {
        let read = |value: &Value| serde_json::from_value::<ClusterReportStatus>(value.clone()).unwrap();
        let all: Vec<_> = reports.iter().map(|(cluster, value)| (*cluster, read(value))).collect();
        let reported = Reported::of(all.iter().map(|(cluster, status)| (*cluster, status)));
        of(Reports::Known(Arc::new(reported))).unwrap()
    }

    fn words(verdict: &Verdict) -> (Status, &str, &str) {
        (verdict.status, &verdict.reason, &verdict.message)
    }

    #[test]
    fn an_export_says_where_it_is_not_imported_and_why() {
        assert_eq!((of(Reports::Unknown), of(Reports::Absent)), (None, None));
        let lacks = json!({"missingNamespaces": ["pay", "shop"]});
        let taken = json!({"notReady": [{"namespace": "shop", "name": "web", "reason": "ServiceNameTaken",
            "message": "it exists", "since": "2026-11-01T12:00:00Z"}]});
        let good = reported(&[("west", json!({"missingNamespaces": ["pay"]}))]);
        assert_eq!((good.status, good.reason.as_str()), (Status::True, "Imported"));
        let missing = reported(&[("west", lacks.clone()), ("north", lacks.clone())]);
        let said = "not in north, west: they have no Namespace shop";
        assert_eq!(words(&missing), (Status::True, "NamespaceMissing", said));
        assert_eq!(reported(&[("west", lacks.clone())]).message, "not in west: it has no Namespace shop");
        let bad = reported(&[("west", taken.clone()), ("north", lacks)]);
        let said = "west: ServiceNameTaken: it exists; not in north: it has no Namespace shop";
        assert_eq!(words(&bad), (Status::False, "NotEverywhere", said));
        let many: Vec<_> = ["a", "b", "c", "d", "e"].map(|cluster| (cluster, taken.clone())).into();
        assert!(reported(&many).message.ends_with("c: ServiceNameTaken: it exists and 2 more"));
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
