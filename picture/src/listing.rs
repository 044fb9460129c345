//! Rows of `freeport get`: what the clusters that were looked at export and import. The rows are also the items of `-o json`; a field once there stays.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    condition::AntreaCondition,
    mcs::{CONFLICT, READY, ServiceImportSpec, ServiceImportType, VALID},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::Serialize;

use crate::view::{ServiceExportView, ServiceImportView};

/// What one cluster holds.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Its ID, or its context without one.
    pub cluster: String,
    /// Its ServiceExports.
    pub exports: Vec<ServiceExportView>,
    /// Its ServiceImports, whoever made them.
    pub imports: Vec<ServiceImportView>,
}

/// A ServiceExport.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportRow {
    /// Cluster that exports.
    pub cluster: String,
    /// Namespace.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Status of condition `Valid`; none before the member has seen the export.
    pub valid: Option<String>,
    /// Status of condition `Ready`.
    pub ready: Option<String>,
    /// Status of condition `Conflict`.
    pub conflict: Option<String>,
    /// What is wrong, in the words of the condition that tells it.
    pub message: Option<String>,
    /// When it was created.
    pub created: Option<Time>,
}

/// A ServiceImport.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportRow {
    /// Cluster that imports.
    pub cluster: String,
    /// Namespace.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// `ClusterSetIP` or `Headless`; none if the spec does not decode.
    #[serde(rename = "type")]
    pub type_: Option<ServiceImportType>,
    /// Addresses of the Service in that cluster.
    pub ips: Vec<String>,
    /// Ports, as `NAME:PORT/PROTOCOL`.
    pub ports: Vec<String>,
    /// Clusters whose endpoints are behind it.
    pub clusters: Vec<String>,
    /// Status of condition `Ready`; none if nobody has set it.
    pub ready: Option<String>,
    /// Why it is not ready.
    pub message: Option<String>,
    /// When it was created.
    pub created: Option<Time>,
}

/// A Service of the set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRow {
    /// Namespace.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// `ClusterSetIP` or `Headless`; none if no cluster that was looked at imports it.
    #[serde(rename = "type")]
    pub type_: Option<ServiceImportType>,
    /// Ports, as `NAME:PORT/PROTOCOL`.
    pub ports: Vec<String>,
    /// Clusters that export it.
    pub exported_by: BTreeSet<String>,
    /// Clusters that import it, of those that were looked at, and whether the import is ready there.
    pub imported_by: BTreeMap<String, bool>,
    /// Whether exports differ.
    pub conflict: bool,
}

/// An export that differs from those of other clusters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConflictRow {
    /// Namespace.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Cluster whose ServiceExport tells it.
    pub cluster: String,
    /// Which property differs.
    pub reason: String,
    /// Whose value is used, and how many disagree.
    pub message: String,
    /// Since when.
    pub since: Option<Time>,
}

/// ServiceExports by Namespace, name and cluster.
pub fn exports(held: &[Held]) -> Vec<ExportRow> {
    let of = |held: &Held| {
        let row = |export: &ServiceExportView| ExportRow {
            cluster: held.cluster.clone(),
            namespace: export.namespace().unwrap_or_default(),
            name: export.name_any(),
            valid: status(export.condition(VALID)),
            ready: status(export.condition(READY)),
            conflict: status(export.condition(CONFLICT)),
            message: trouble(export),
            created: export.creation_timestamp(),
        };
        held.exports.iter().map(row).collect::<Vec<_>>()
    };
    sorted(held.iter().flat_map(of), |row| (&row.namespace, &row.name, &row.cluster))
}

/// ServiceImports by Namespace, name and cluster.
pub fn imports(held: &[Held]) -> Vec<ImportRow> {
    let of = |held: &Held| held.imports.iter().map(|import| import_row(held, import)).collect::<Vec<_>>();
    sorted(held.iter().flat_map(of), |row| (&row.namespace, &row.name, &row.cluster))
}

fn sorted<R>(rows: impl Iterator<Item = R>, key: impl Fn(&R) -> (&String, &String, &String)) -> Vec<R> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
    rows
}

fn import_row(held: &Held, import: &ServiceImportView) -> ImportRow {
    let spec = import.spec.0.as_ref().ok();
    let ready = import.condition(READY);
    ImportRow {
        cluster: held.cluster.clone(),
        namespace: import.namespace().unwrap_or_default(),
        name: import.name_any(),
        type_: spec.map(|spec| spec.type_),
        ips: spec.map(|spec| spec.ips.clone()).unwrap_or_default(),
        ports: spec.map(ports).unwrap_or_default(),
        clusters: import.clusters().map(str::to_owned).collect(),
        ready: status(ready),
        message: ready.filter(|ready| !is(ready, "True")).map(words),
        created: import.creation_timestamp(),
    }
}

/// Services of the set by Namespace and name: each that a cluster exports or imports.
pub fn services(held: &[Held]) -> Vec<ServiceRow> {
    let mut rows = BTreeMap::<(String, String), ServiceRow>::new();
    for export in exports(held) {
        let row = row_of(&mut rows, export.namespace, export.name);
        row.exported_by.insert(export.cluster);
        row.conflict |= export.conflict.as_deref() == Some("True");
    }
    for import in imports(held) {
        let row = row_of(&mut rows, import.namespace, import.name);
        row.exported_by.extend(import.clusters);
        row.imported_by.insert(import.cluster, import.ready.as_deref() == Some("True"));
        row.type_ = row.type_.or(import.type_);
        if row.ports.is_empty() {
            row.ports = import.ports;
        }
    }
    rows.into_values().collect()
}

fn row_of(
    rows: &mut BTreeMap<(String, String), ServiceRow>,
    namespace: String,
    name: String,
) -> &mut ServiceRow {
    rows.entry((namespace.clone(), name.clone())).or_insert_with(|| ServiceRow {
        namespace,
        name,
        type_: None,
        ports: vec![],
        exported_by: BTreeSet::new(),
        imported_by: BTreeMap::new(),
        conflict: false,
    })
}

/// Exports with `Conflict`, by Namespace, name and cluster.
pub fn conflicts(held: &[Held]) -> Vec<ConflictRow> {
    let of = |held: &Held| {
        let row = |export: &ServiceExportView| {
            let conflict = export.condition(CONFLICT).filter(|conflict| is(conflict, "True"))?;
            Some(ConflictRow {
                namespace: export.namespace().unwrap_or_default(),
                name: export.name_any(),
                cluster: held.cluster.clone(),
                reason: conflict.reason.clone().unwrap_or_default(),
                message: conflict.message.clone().unwrap_or_default(),
                since: conflict.last_transition_time.clone(),
            })
        };
        held.exports.iter().filter_map(row).collect::<Vec<_>>()
    };
    sorted(held.iter().flat_map(of), |row| (&row.namespace, &row.name, &row.cluster))
}

fn status(condition: Option<&AntreaCondition>) -> Option<String> {
    condition?.status.clone()
}

fn is(condition: &AntreaCondition, status: &str) -> bool {
    condition.status.as_deref() == Some(status)
}

fn words(condition: &AntreaCondition) -> String {
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}: {}", of(&condition.reason), of(&condition.message))
}

/// What is wrong with an export: not valid, not ready, in conflict.
fn trouble(export: &ServiceExportView) -> Option<String> {
    let wrong = |(type_, good): (&str, &str)| {
        export.condition(type_).filter(|condition| !is(condition, good)).map(words)
    };
    [(VALID, "True"), (READY, "True"), (CONFLICT, "False")].into_iter().find_map(wrong)
}

fn ports(spec: &ServiceImportSpec) -> Vec<String> {
    let port = |port: &api::mcs::ServicePort| {
        let name = port.name.as_deref().filter(|name| !name.is_empty());
        let name = name.map(|name| format!("{name}:")).unwrap_or_default();
        format!("{name}{}/{}", port.port, port.protocol.as_deref().unwrap_or("TCP"))
    };
    spec.ports.iter().map(port).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn export(name: &str, conditions: &Value) -> ServiceExportView {
        let metadata = json!({"namespace": "shop", "name": name});
        from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap()
    }

    fn import(name: &str, ready: &str, clusters: &[&str]) -> ServiceImportView {
        let clusters: Vec<_> = clusters.iter().map(|id| json!({"cluster": id})).collect();
        from_value(json!({
            "metadata": {"namespace": "shop", "name": name},
            "spec": {
                "type": "ClusterSetIP", "ips": ["10.0.0.7"],
                "ports": [{"name": "http", "port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
            },
            "status": {
                "clusters": clusters,
                "conditions": [{"type": "Ready", "status": ready, "reason": "Why", "message": "it is so"}],
            },
        }))
        .unwrap()
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "Why", "message": "it is so"})
    }

    fn set() -> Vec<Held> {
        let good =
            json!([condition("Valid", "True"), condition("Ready", "True"), condition("Conflict", "False")]);
        let conflict =
            json!([condition("Valid", "True"), condition("Ready", "True"), condition("Conflict", "True")]);
        let east = Held {
            cluster: "east".into(),
            exports: vec![export("web", &conflict), export("api", &good)],
            imports: vec![import("web", "True", &["east", "north"])],
        };
        let west = Held {
            cluster: "west".into(),
            exports: vec![export("new", &json!([]))],
            imports: vec![import("web", "False", &["east", "north"])],
        };
        vec![west, east]
    }

    #[test]
    fn exports_and_imports_are_sorted_and_say_what_is_wrong() {
        let exports = exports(&set());
        let row = |row: &ExportRow| (row.name.clone(), row.cluster.clone(), row.message.clone());
        let wrong = Some("Why: it is so".to_owned());
        assert_eq!(
            exports.iter().map(row).collect::<Vec<_>>(),
            [
                ("api".into(), "east".into(), None),
                ("new".into(), "west".into(), None),
                ("web".into(), "east".into(), wrong.clone())
            ]
        );
        assert_eq!((exports[1].valid.as_deref(), exports[2].valid.as_deref()), (None, Some("True")));
        let imports = imports(&set());
        assert_eq!(imports.len(), 2);
        assert_eq!((&imports[0].message, &imports[1].message), (&None, &wrong));
        assert_eq!(imports[0].ports, ["http:80/TCP", "53/UDP"]);
    }

    #[test]
    fn a_service_has_the_exporters_that_its_imports_name() {
        let services = services(&set());
        let names: Vec<_> = services.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["api", "new", "web"]);
        let web = &services[2];
        assert_eq!(web.exported_by.iter().collect::<Vec<_>>(), ["east", "north"]);
        assert_eq!(web.imported_by, BTreeMap::from([("east".into(), true), ("west".into(), false)]));
        assert!(web.conflict && !services[0].conflict);
        assert_eq!((services[0].type_, web.type_), (None, Some(ServiceImportType::ClusterSetIP)));
        let conflicts = conflicts(&set());
        assert_eq!(conflicts.len(), 1);
        assert_eq!((conflicts[0].cluster.as_str(), conflicts[0].reason.as_str()), ("east", "Why"));
    }
}
