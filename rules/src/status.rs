//! What the conditions of a ServiceExport say.

use api::{
    ServiceName,
    condition::{Status, Verdict},
    lacking::Lacking,
    mcs::{CONFLICT, IMPORTED, READY, VALID},
    resource_import::Objection,
    words::{first_names, first_of},
};

use crate::{keys, offer::Invalid, reports::Reported, view::Export};

/// The reason of `Ready` while there is nothing to say yet, or nothing exported.
pub const PENDING: &str = "Pending";
/// The reason of `Ready` when the leader has merged the export.
pub const EXPORTED: &str = "Exported";
/// The reason when clusters do not import the Service because they lack its Namespace. It is no fault: a Service is imported where its
/// Namespace is.
pub const NAMESPACE_MISSING: &str = "NamespaceMissing";
/// What is said of an export that cannot be made as it is, beside what is wrong.
const KEPT: &str = "Until this is corrected, the last valid export is still served: other clusters keep its ports, labels and \
                    annotations, and follow its endpoints";

/// The export is valid; also which of its labels and annotations the Services of its imports do not get.
pub fn valid(export: Option<&Export>) -> Verdict {
    let spec = export.and_then(|export| export.spec.0.as_ref().ok());
    let left_out = spec.and_then(keys::said).map(|said| format!(". {said}")).unwrap_or_default();
    Verdict::new(VALID, Status::True, "Valid", format!("the Service can be exported{left_out}"))
}

/// The export cannot be made as it is, and the last valid one stays.
pub fn kept(Invalid { reason, message, .. }: Invalid) -> Verdict {
    Verdict::new(VALID, Status::False, reason, format!("{message}. {KEPT}"))
}

/// Nothing is exported.
pub fn not_exported(Invalid { reason, message, .. }: Invalid) -> [Verdict; 2] {
    let not_ready = "not exported, because it is not valid";
    [
        Verdict::new(VALID, Status::False, reason, message),
        Verdict::new(READY, Status::False, PENDING, not_ready),
    ]
}

/// All that differs at once: the reasons joined as the Multi-Cluster Services API wants it, a sentence for each.
pub fn conflict(objections: &[Objection]) -> Verdict {
    if objections.is_empty() {
        return Verdict::new(CONFLICT, Status::False, "NoConflicts", "all exports of this Service agree");
    }
    let join =
        |part: fn(&Objection) -> &str, between| objections.iter().map(part).collect::<Vec<_>>().join(between);
    let (reasons, messages) = (join(|o| &o.reason, ","), join(|o| &o.message, ". "));
    Verdict::new(CONFLICT, Status::True, reasons, messages)
}

/// What is exported, in words, where condition `Valid` says that.
pub fn what(valid: &Verdict) -> &'static str {
    if valid.status == Status::True { "this export" } else { "the last valid export" }
}

/// The leader has merged `what`; also which clusters lack the Namespace.
pub fn exported(what: &str, namespace: &str, lacking: Option<&Lacking>) -> Verdict {
    let lack = lacking.and_then(|lacking| lacking.lack(namespace)).map(|lack| {
        format!(
            ". It is not imported in {lack}, because there is no Namespace {namespace}; create it there if the Service is to be \
             used there"
        )
    });
    let message = format!("the leader has merged {what}{}", lack.unwrap_or_default());
    Verdict::new(READY, Status::True, EXPORTED, message)
}

/// The leader refuses the export.
pub fn refused(Objection { reason, message }: &Objection) -> Verdict {
    Verdict::new(READY, Status::False, "Failed", format!("{reason}: {message}"))
}

/// What the clusters report of their imports of a Service that the leader has merged.
pub fn imported(reported: &Reported, service: &ServiceName) -> Verdict {
    let namespace = &service.namespace;
    let missing = match reported.lacking(namespace).as_slice() {
        [] => None,
        [one] => Some(format!("not in {one}: it has no Namespace {namespace}")),
        several => Some(format!("not in {}: they have no Namespace {namespace}", first_names(several))),
    };
    let not_ready: Vec<_> =
        reported.not_ready(service).map(|(cluster, why)| format!("{cluster}: {why}")).collect();
    match (not_ready.is_empty(), missing) {
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
    }
}

#[cfg(test)]
mod tests {
    use api::report::ClusterReportStatus;
    use serde_json::{Value, json};

    use super::*;

    fn reported(reports: &[(&str, Value)]) -> Verdict {
        let read = |value: &Value| serde_json::from_value::<ClusterReportStatus>(value.clone()).unwrap();
        let all: Vec<_> = reports.iter().map(|(cluster, value)| (*cluster, read(value))).collect();
        let reported = Reported::of(all.iter().map(|(cluster, status)| (*cluster, status)));
        imported(&reported, &ServiceName::new("shop", "web"))
    }

    fn words(verdict: &Verdict) -> (Status, &str, &str) {
        (verdict.status, &verdict.reason, &verdict.message)
    }

    #[test]
    fn an_export_says_where_it_is_not_imported_and_why() {
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
}
