//! What the clusters of the set report of their imports. Members of other clusters write the reports: what is kept of each has a limit.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    ServiceName,
    report::{ClusterReportStatus, ENTRIES_MAX, MESSAGE_MAX},
    view::shortened,
    words::printable,
};

/// What is known of the reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Reports {
    /// They were not listed yet.
    #[default]
    Unknown,
    /// The leader's cluster has no such kind, or does not let this member read it.
    Absent,
    /// This is reported.
    Known(Arc<Reported>),
}

impl Reports {
    /// What is reported, if that is known.
    pub fn known(&self) -> Option<&Reported> {
        match self {
            Self::Known(reported) => Some(reported),
            Self::Unknown | Self::Absent => None,
        }
    }

    /// Reports whether what is known of this Service is another than `before`.
    pub fn is_news_of(&self, before: &Self, service: &ServiceName) -> bool {
        match (self, before) {
            (Self::Known(now), Self::Known(before)) => {
                now.missing.get(&service.namespace) != before.missing.get(&service.namespace)
                    || now.not_ready.get(service) != before.not_ready.get(service)
            }
            (now, before) => now != before,
        }
    }
}

/// What is reported, by what it is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// IDs of the clusters that lack a Namespace, by its name.
    missing: BTreeMap<String, BTreeSet<String>>,
    /// Why an import is not ready, by Service and the ID of the cluster.
    not_ready: BTreeMap<ServiceName, BTreeMap<String, String>>,
}

impl Reported {
    /// The reports of these clusters.
    pub fn of<'a>(reports: impl IntoIterator<Item = (&'a str, &'a ClusterReportStatus)>) -> Self {
        let mut all = Self::default();
        for (cluster, report) in reports {
            for namespace in report.missing_namespaces.iter().take(ENTRIES_MAX) {
                all.missing.entry(namespace.clone()).or_default().insert(cluster.to_owned());
            }
            for import in report.not_ready.iter().take(ENTRIES_MAX) {
                let service = ServiceName::new(&import.namespace, &import.name);
                let why = format!("{}: {}", import.reason, import.message);
                let why = printable(&shortened(why, MESSAGE_MAX));
                all.not_ready.entry(service).or_default().insert(cluster.to_owned(), why);
            }
        }
        all
    }

    /// IDs of the clusters that lack this Namespace.
    pub fn lacking(&self, namespace: &str) -> Vec<&str> {
        self.missing.get(namespace).into_iter().flatten().map(String::as_str).collect()
    }

    /// IDs of the clusters in which the import of this Service is not ready, and why.
    pub fn not_ready(&self, service: &ServiceName) -> impl Iterator<Item = (&str, &str)> {
        let these = self.not_ready.get(service).into_iter().flatten();
        these.map(|(cluster, why)| (cluster.as_str(), why.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reported(reports: &[(&str, Value)]) -> Reports {
        let read = |value: &Value| serde_json::from_value::<ClusterReportStatus>(value.clone()).unwrap();
        let all: Vec<_> = reports.iter().map(|(cluster, value)| (*cluster, read(value))).collect();
        Reports::Known(Arc::new(Reported::of(all.iter().map(|(cluster, status)| (*cluster, status)))))
    }

    fn not_ready(name: &str, message: &str) -> Value {
        json!({"namespace": "shop", "name": name, "reason": "ServiceNameTaken", "message": message,
            "since": "2026-11-01T12:00:00Z"})
    }

    #[test]
    fn only_exports_that_a_report_says_something_else_of_are_news() {
        let [web, db] = ["web", "db"].map(|name| ServiceName::new("shop", name));
        let elsewhere = ServiceName::new("pay", "web");
        let of_west = |names: &[&str]| {
            let imports: Vec<_> = names.iter().map(|name| not_ready(name, "m")).collect();
            reported(&[("west", json!({"notReady": imports}))])
        };
        let (before, now) = (of_west(&["db"]), of_west(&["db", "web"]));
        assert!(now.is_news_of(&before, &web) && !now.is_news_of(&before, &db));
        let lacks = reported(&[("west", json!({"missingNamespaces": ["pay"]}))]);
        assert!(lacks.is_news_of(&of_west(&[]), &elsewhere) && !lacks.is_news_of(&of_west(&[]), &web));
        assert!(of_west(&[]).is_news_of(&Reports::Unknown, &web), "each export gets its condition");
        assert!(Reports::Absent.is_news_of(&Reports::Unknown, &web));
        let numbers = reported(&[("west", json!({"imports": {"total": 7, "ready": 7}}))]);
        assert!(!numbers.is_news_of(&of_west(&[]), &web), "numbers are about no export");
    }

    #[test]
    fn a_hostile_report_says_no_more_than_it_may() {
        let imports: Vec<_> = (0..200).map(|n| not_ready(&format!("i{n:03}"), "m")).collect();
        let message = format!("\u{1b}[31m{}", "x".repeat(5000));
        let imports: Vec<_> = [not_ready("a", &message)].into_iter().chain(imports).collect();
        let namespaces: Vec<_> = (0..200).map(|n| format!("n{n:03}")).collect();
        let all = reported(&[("west", json!({"notReady": imports, "missingNamespaces": namespaces}))]);
        let reported = all.known().unwrap();
        assert_eq!((reported.missing.len(), reported.not_ready.len()), (ENTRIES_MAX, ENTRIES_MAX));
        let (_, why) = reported.not_ready(&ServiceName::new("shop", "a")).next().unwrap();
        assert!(why.len() <= MESSAGE_MAX + 3 && !why.contains('\u{1b}'), "{why}");
    }
}
