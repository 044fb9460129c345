//! `ClusterReport`: what one cluster reports of its exports and imports, for those that export to it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::shortened;

/// Number of entries that each list of a report has at most.
pub const ENTRIES_MAX: usize = 100;
/// Size of both lists of a report together, in bytes of JSON. The rest of a report takes less than 2 KiB.
const LISTS_MAX: usize = 30 << 10;
/// Limit of a message, in bytes. The schema leaves room for dots behind it.
pub const MESSAGE_MAX: usize = 300;
/// Limit of a reason, and of the name of a Service or a Namespace.
const NAME_MAX: usize = 63;

/// The feature API binding, in `features` of a report. The others are called as on Leases.
pub const BINDING: &str = "Binding";

/// Fields of a ClusterReport beside its status: none.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.freeport.dev",
    version = "v1alpha1",
    kind = "ClusterReport",
    namespaced,
    no_spec,
    status = "ClusterReportStatus",
    derive = "PartialEq",
    doc = "ClusterReport says how the exports and imports of one cluster of the set are doing. It is in the Common Area, and its name is the ID of that cluster, whose member writes it; users never do. The members of the clusters that export Services read it, and report it in condition `multicluster.freeport.dev/Imported` of their ServiceExports.",
    category = "multicluster",
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.version",
        description = "Version of the cluster's member"
    ),
    printcolumn(
        name = "Exports",
        type_ = "integer",
        json_path = ".status.exports.total",
        description = "Number of ServiceExports"
    ),
    printcolumn(
        name = "Invalid",
        type_ = "integer",
        json_path = ".status.exports.invalid",
        description = "Number of ServiceExports that are not valid"
    ),
    printcolumn(
        name = "Imports",
        type_ = "integer",
        json_path = ".status.imports.total",
        description = "Number of Services that the set exports to the cluster"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.imports.ready",
        description = "Number of those that are ready in the cluster"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ClusterReportFields {}

/// What the member of a cluster reports. A change of what is missing or not ready is written at once, but at most every 10 s, and less and
/// less often while it keeps changing, up to every 5 min. Numbers alone are written 5 min after they changed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReportStatus {
    /// Version of the member.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = NAME_MAX))]
    pub version: String,
    /// What the member takes part in: `Services`, `Offloading`, `Binding`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(max = NAME_MAX)))]
    pub features: Vec<String>,
    /// Number of ServiceExports in the cluster.
    #[serde(default)]
    pub exports: ReportedExports,
    /// Number of Services that the set exports to the cluster.
    #[serde(default)]
    pub imports: ReportedImports,
    /// Namespaces that the set exports Services from and that the cluster does not have. The first 100 by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES_MAX), inner(length(max = NAME_MAX)))]
    pub missing_namespaces: Vec<String>,
    /// Imports whose Namespace the cluster has and that are not ready there. The first 100 by Namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES_MAX))]
    pub not_ready: Vec<NotReadyImport>,
    /// Number of entries that both lists leave out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: i32,
}

/// Number of ServiceExports in a cluster.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct ReportedExports {
    /// All of them.
    #[serde(default)]
    pub total: i32,
    /// Those that are not valid.
    #[serde(default)]
    pub invalid: i32,
}

/// Number of Services that the set exports to a cluster.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct ReportedImports {
    /// All of them, also those whose Namespace is missing.
    #[serde(default)]
    pub total: i32,
    /// Those that are ready.
    #[serde(default)]
    pub ready: i32,
}

/// An import that is not ready in a cluster.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
pub struct NotReadyImport {
    /// Its Namespace.
    #[schemars(length(max = NAME_MAX))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(max = NAME_MAX))]
    pub name: String,
    /// Why, in one CamelCase word, as in condition `Ready` of the ServiceImport.
    #[schemars(length(max = NAME_MAX))]
    pub reason: String,
    /// Why, in a sentence. The first 300 bytes of it.
    #[schemars(length(max = MESSAGE_MAX + 10))]
    pub message: String,
    /// Since when.
    pub since: Time,
}

impl ClusterReportStatus {
    /// The same within the limits of a report: of both lists the first entries, and of each message the beginning.
    pub fn bounded(mut self) -> Self {
        let mut room = LISTS_MAX;
        let entries = self.missing_namespaces.len() + self.not_ready.len();
        self.missing_namespaces.truncate(fitting(&self.missing_namespaces, &mut room));
        for import in &mut self.not_ready {
            import.message = shortened(std::mem::take(&mut import.message), MESSAGE_MAX);
        }
        self.not_ready.truncate(fitting(&self.not_ready, &mut room));
        let left_out = entries - self.missing_namespaces.len() - self.not_ready.len();
        self.more = count(left_out);
        self
    }

    /// Reports whether both say the same but for numbers.
    pub fn differs_in_numbers_alone(&self, other: &Self) -> bool {
        let numbers =
            Self { exports: other.exports, imports: other.imports, more: other.more, ..self.clone() };
        numbers == *other
    }
}

/// Number of the first entries that there is room for.
fn fitting<T: Serialize>(entries: &[T], room: &mut usize) -> usize {
    let fits = |entry: &&T| {
        let bytes = serde_json::to_vec(entry).map_or(LISTS_MAX, |json| json.len() + 1);
        let left = room.checked_sub(bytes);
        *room = left.unwrap_or_default();
        left.is_some()
    };
    entries.iter().take(ENTRIES_MAX).take_while(fits).count()
}

/// The number as a report has it.
pub fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::golden::golden;

    fn import(name: &str, message: &str) -> NotReadyImport {
        NotReadyImport {
            namespace: "n".repeat(NAME_MAX),
            name: name.to_owned(),
            reason: "ServiceRefused".to_owned(),
            message: message.to_owned(),
            since: Time(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn what_travels_reads_and_writes_to_the_letter() {
        let report: ClusterReport = golden!("cluster-report");
        let status = report.status.unwrap();
        assert_eq!((status.exports.total, status.imports.ready, status.more), (3, 4, 0));
        assert_eq!(status.clone().bounded(), status);
    }

    #[test]
    fn a_report_has_a_limit_and_counts_what_it_leaves_out() {
        let namespaces = |count: usize| (0..count).map(|n| format!("namespace-{n:04}")).collect();
        let all = ClusterReportStatus { missing_namespaces: namespaces(1000), ..Default::default() };
        let bounded = all.bounded();
        assert_eq!((bounded.missing_namespaces, bounded.more), (namespaces(100), 900));

        let imports = |message: &str| (0..100).map(|n| import(&format!("i{n:03}"), message)).collect();
        let not_ready = imports(&"ä".repeat(10_000));
        let large =
            ClusterReportStatus { missing_namespaces: namespaces(200), not_ready, ..Default::default() };
        let bounded = large.bounded();
        let bytes = serde_json::to_vec(&bounded).unwrap().len();
        assert!(bytes <= 32 << 10, "{bytes}");
        assert!(bounded.not_ready.len() > 40 && bounded.not_ready[0].message.len() <= MESSAGE_MAX + 3);
        let listed = bounded.missing_namespaces.len() + bounded.not_ready.len();
        assert_eq!(listed + usize::try_from(bounded.more).unwrap(), 300);

        let small = ClusterReportStatus { not_ready: imports("quota"), ..Default::default() };
        assert_eq!((small.clone().bounded().more, small.bounded().not_ready.len()), (0, 100));
    }

    #[test]
    fn numbers_are_told_from_what_is_missing() {
        let one = ClusterReportStatus { missing_namespaces: vec!["shop".into()], ..Default::default() };
        let numbers = ClusterReportStatus { more: 1, ..one.clone() };
        assert!(one.differs_in_numbers_alone(&numbers));
        assert!(!one.differs_in_numbers_alone(&ClusterReportStatus::default()));
    }
}
