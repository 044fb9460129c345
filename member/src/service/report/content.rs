//! What a report says: pure.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    report::{ClusterReportStatus, NotReadyImport, ReportedExports, ReportedImports, count},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{pace::Difference, standing::Standing};
use crate::service::irregular::NotReady;

/// What there is to report of this cluster.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// Number of ServiceExports.
    exports: usize,
    /// Number of those that are not valid.
    invalid: usize,
    /// Number of Services that the set exports to this cluster.
    imports: usize,
    /// Number of those that are ready.
    ready: usize,
    missing: BTreeSet<String>,
    not_ready: BTreeMap<ServiceName, (NotReady, Option<Time>)>,
    /// Of these it is not known yet how they stand.
    unknown: BTreeSet<ServiceName>,
}

impl Found {
    /// Takes in a ServiceExport.
    pub(super) fn export(&mut self, is_valid: bool) {
        self.exports += 1;
        self.invalid += usize::from(!is_valid);
    }

    /// Takes in how the import of a Service stands.
    pub(super) fn import(&mut self, service: ServiceName, standing: Standing) {
        self.imports += usize::from(standing != Standing::NoImport);
        match standing {
            Standing::NoImport => {}
            Standing::NoNamespace => drop(self.missing.insert(service.namespace)),
            Standing::Ready => self.ready += 1,
            Standing::NotReady(why, since) => drop(self.not_ready.insert(service, (why, since))),
            Standing::Unknown => drop(self.unknown.insert(service)),
        }
    }
}

/// Returns what the report says, where `have` was said last: of imports of which it is not known how they stand, the same as before.
pub(super) fn desired(
    found: Found,
    (version, features): (&str, &[&str]),
    have: &ClusterReportStatus,
    now: &Time,
) -> ClusterReportStatus {
    let said = have.not_ready.iter().map(|said| (ServiceName::new(&said.namespace, &said.name), said));
    let said: BTreeMap<_, _> = said.collect();
    let entry = |(service, (why, since)): (ServiceName, (NotReady, Option<Time>))| {
        let before = said.get(&service).filter(|said| said.reason == why.reason);
        let since = since.or_else(|| Some(before?.since.clone()));
        let since = since.unwrap_or_else(|| now.clone());
        let ServiceName { namespace, name } = service.clone();
        (service, NotReadyImport { namespace, name, reason: why.reason, message: why.message, since })
    };
    let kept = said.iter().filter(|(service, _)| found.unknown.contains(*service));
    let kept = kept.map(|(service, said)| (service.clone(), (*said).clone()));
    let not_ready: BTreeMap<_, _> = kept.chain(found.not_ready.into_iter().map(entry)).collect();
    let status = ClusterReportStatus {
        version: version.to_owned(),
        features: features.iter().map(|&feature| feature.to_owned()).collect(),
        exports: ReportedExports { total: count(found.exports), invalid: count(found.invalid) },
        imports: ReportedImports { total: count(found.imports), ready: count(found.ready) },
        missing_namespaces: found.missing.into_iter().collect(),
        not_ready: not_ready.into_values().collect(),
        more: 0,
    };
    status.bounded()
}

/// Returns how a report differs from what was written; none was, if `have` is missing.
pub(super) fn difference(have: Option<&ClusterReportStatus>, want: &ClusterReportStatus) -> Difference {
    match have {
        Some(have) if have == want => Difference::None,
        Some(have) if have.differs_in_numbers_alone(want) => Difference::Numbers,
        Some(_) => Difference::Content,
        None => Difference::All,
    }
}

/// The time as a report has it: in whole seconds, as API servers keep it.
pub(super) fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: (&str, &[&str]) = ("1.2.3", &["Services"]);

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn shop(name: &str) -> ServiceName {
        ServiceName::new("shop", name)
    }

    fn refused(since: Option<Time>) -> Standing {
        Standing::NotReady(NotReady::new("ServiceRefused", "quota"), since)
    }

    fn report(
        imports: &[(ServiceName, Standing)],
        have: &ClusterReportStatus,
        now: i64,
    ) -> ClusterReportStatus {
        let mut found = Found::default();
        imports.iter().cloned().for_each(|(service, standing)| found.import(service, standing));
        found.export(true);
        found.export(false);
        desired(found, US, have, &at(now))
    }

    #[test]
    fn a_report_counts_all_and_names_what_is_missing_or_not_ready() {
        let imports = [
            (shop("web"), refused(Some(at(5)))),
            (shop("db"), refused(None)),
            (shop("ok"), Standing::Ready),
            (shop("new"), Standing::Unknown),
            (shop("none"), Standing::NoImport),
            (ServiceName::new("pay", "a"), Standing::NoNamespace),
            (ServiceName::new("pay", "b"), Standing::NoNamespace),
        ];
        let report = report(&imports, &ClusterReportStatus::default(), 9);
        assert_eq!(
            (report.version.as_str(), report.features.as_slice()),
            ("1.2.3", &["Services".to_owned()][..])
        );
        assert_eq!((report.exports.total, report.exports.invalid), (2, 1));
        assert_eq!((report.imports.total, report.imports.ready, report.more), (6, 1, 0));
        assert_eq!(report.missing_namespaces, ["pay"]);
        let not_ready: Vec<_> =
            report.not_ready.iter().map(|one| (one.name.as_str(), one.since.clone())).collect();
        assert_eq!(not_ready, [("db", at(9)), ("web", at(5))], "sorted");
    }

    #[test]
    fn after_a_restart_a_report_says_the_same() {
        let imports = [(shop("web"), refused(None)), (shop("db"), refused(Some(at(3))))];
        let before = report(&imports, &ClusterReportStatus::default(), 9);
        assert_eq!(report(&imports, &before, 99), before, "since the same time");
        let unknown = imports.map(|(service, _)| (service, Standing::Unknown));
        assert_eq!(report(&unknown, &before, 99), before, "before it is known");
        let better = report(&[(shop("web"), Standing::Ready)], &before, 99);
        assert_eq!(better.not_ready, []);
        let other = Standing::NotReady(NotReady::new("NotOurs", "m"), None);
        assert_eq!(report(&[(shop("web"), other)], &before, 99).not_ready[0].since, at(99), "another reason");
    }

    #[test]
    fn one_namespace_that_is_missing_is_one_entry_whatever_waits_for_it() {
        let waits = |count: usize| (0..count).map(|n| (shop(&format!("s{n}")), Standing::NoNamespace));
        let none = ClusterReportStatus::default();
        let (few, all) = (
            report(&waits(10).collect::<Vec<_>>(), &none, 1),
            report(&waits(1000).collect::<Vec<_>>(), &none, 2),
        );
        assert_eq!((all.missing_namespaces.as_slice(), all.imports.total), (&["shop".to_owned()][..], 1000));
        assert_eq!(difference(Some(&few), &all), Difference::Numbers, "which nobody is told at once");
        assert_eq!(difference(Some(&all), &all), Difference::None);
        assert_eq!(
            (difference(Some(&none), &all), difference(None, &none)),
            (Difference::Content, Difference::All)
        );
    }
}
