//! How an import stands in this cluster: pure. Nearly all of it is what the ServiceImport says, so that a member that starts again reports
//! the same.

use api::{
    condition::{Status, Verdict},
    mcs::READY,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rules::import::foreign;

use crate::service::{import::TOO_MANY, index::known::Known, irregular::NotReady};

/// How an import stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing {
    /// Nobody exports the Service, or its Namespace is being deleted.
    NoImport,
    /// It waits for its Namespace.
    NoNamespace,
    /// It is ready.
    Ready,
    /// It is not ready, and since when, if that is known.
    NotReady(NotReady, Option<Time>),
    /// It is not known yet.
    Unknown,
}

/// Returns how the import of a Service stands. `max_imports` is the limit that keeps it out, if one does; `noted` what the controller of
/// imports found in this process.
pub(super) fn standing(known: &Known, max_imports: Option<usize>, noted: Option<&NotReady>) -> Standing {
    let (entry, namespace) = (&known.entry, known.namespace);
    let is_exported = entry.leader_import.is_some() && !known.exporters().is_empty();
    if !entry.is_imported() {
        match () {
            () if is_exported && !namespace.exists => return Standing::NoNamespace,
            () if !is_exported || !namespace.active => return Standing::NoImport,
            () => {}
        }
        if let Some(max) = max_imports {
            let message = format!("this cluster makes {max} imports at the most (--max-imports)");
            return Standing::NotReady(NotReady::new(TOO_MANY, message), None);
        }
        if entry.is_anothers() {
            let Verdict { reason, message, .. } = foreign();
            return Standing::NotReady(NotReady::new(&reason, message), None);
        }
    }
    let status = entry.own_import().and_then(|import| import.status.0.as_ref().ok());
    let ready = status.and_then(|status| status.conditions.iter().find(|said| said.type_ == READY));
    let denied = ready.filter(|said| said.status == Status::False.as_str());
    let since = denied.map(|said| said.last_transition_time.clone());
    match (noted, denied, ready) {
        (Some(noted), ..) => Standing::NotReady(noted.clone(), since),
        (None, Some(said), _) => Standing::NotReady(NotReady::new(&said.reason, &said.message), since),
        (None, None, Some(said)) if said.status == Status::True.as_str() => Standing::Ready,
        (None, None, _) => Standing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::{
        label,
        resource_import::{Exporter, ResourceImportSpec},
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::service::{
        index::{
            entry::{LeaderRecord, NamespaceEntry, ServiceEntry},
            view::Import,
        },
        offer::fixture::known,
    };

    fn exported() -> ServiceEntry {
        let exporter = Exporter { cluster_id: "east".into(), ..Exporter::default() };
        let spec = ResourceImportSpec { exporters: Some(vec![exporter]), ..ResourceImportSpec::default() };
        let mut entry = ServiceEntry::default();
        entry.leader_import = Some(Arc::new(LeaderRecord { spec, ..LeaderRecord::default() }));
        entry
    }

    fn import(by: &str, conditions: &Value) -> Arc<Import> {
        let written = json!([{"manager": by, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
        let labels =
            if by == label::MEMBER { json!({label::MANAGED_BY: label::FREEPORT}) } else { json!({}) };
        let metadata = json!({"name": "web", "namespace": "shop", "uid": "i", "labels": labels, "managedFields": written});
        let import = json!({"metadata": metadata, "spec": {"type": "ClusterSetIP", "ports": []}, "status": {"conditions": conditions}});
        Arc::new(serde_json::from_value(import).unwrap())
    }

    fn of(entry: &ServiceEntry, max: Option<usize>, noted: Option<&NotReady>) -> Standing {
        standing(&known("west", entry), max, noted)
    }

    fn reason(standing: Standing) -> Option<String> {
        match standing {
            Standing::NotReady(why, _) => Some(why.reason),
            _ => None,
        }
    }

    #[test]
    fn what_nobody_exports_or_has_no_namespace_is_told_apart() {
        assert_eq!(of(&ServiceEntry::default(), None, None), Standing::NoImport);
        let mut nowhere = known("west", &exported());
        nowhere.namespace = NamespaceEntry::default();
        assert_eq!(standing(&nowhere, None, None), Standing::NoNamespace);
        nowhere.namespace.exists = true;
        assert_eq!(standing(&nowhere, None, None), Standing::NoImport, "it is being deleted");
        assert_eq!(reason(of(&exported(), Some(4), None)), Some(TOO_MANY.to_owned()));
    }

    #[test]
    fn an_import_stands_as_its_serviceimport_says() {
        let said = |status: &str| {
            json!([{"type": "Ready", "status": status, "reason": "ServiceNameTaken", "message": "m",
            "lastTransitionTime": "2026-11-01T12:00:00Z"}])
        };
        let mut entry = exported();
        assert_eq!(of(&entry, None, None), Standing::Unknown, "it is about to be made");
        entry.import = Some(import(label::MEMBER, &json!([])));
        assert_eq!(of(&entry, None, None), Standing::Unknown);
        entry.import = Some(import(label::MEMBER, &said("True")));
        assert_eq!(of(&entry, None, None), Standing::Ready);
        let refused = NotReady::new("ServiceImportRefused", "quota");
        assert_eq!(of(&entry, None, Some(&refused)), Standing::NotReady(refused.clone(), None));
        entry.import = Some(import(label::MEMBER, &said("False")));
        let Standing::NotReady(why, since) = of(&entry, None, None) else { panic!() };
        assert_eq!(why, NotReady::new("ServiceNameTaken", "m"));
        assert!(since.is_some(), "so that a restart says the same");
        entry.import = Some(import("kubectl", &said("True")));
        assert_eq!(reason(of(&entry, None, None)), Some("NotOurs".to_owned()));
    }
}
