//! What the Common Area still holds of a cluster that was removed, and what is to be done about it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, label, name,
    resource_export::{ENDPOINT_SLICE, ResourceExport, SERVICE},
    resource_import::SERVICE_IMPORT,
};
use serde_json::json;

use crate::{
    eraser::called,
    objects::Object,
    view::{RecordSpec, RecordView, ResourceImportView},
};

/// What is left to do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Remainder {
    /// Records that the leader reads and that are not withdrawn, or have finalizers.
    pub(super) withdraw: Vec<Object>,
    /// Records to create: an import names the cluster, and only a withdrawal is sure to remove it there.
    pub(super) create: Vec<Object>,
    /// Imports that name the cluster.
    pub(super) imports: usize,
    /// Records that the leader reads.
    pub(super) records: usize,
}

impl Remainder {
    /// Whether the leader is done.
    pub(super) fn is_empty(&self) -> bool {
        self.imports == 0 && self.records == 0
    }
}

/// Compares records of cluster `id` with the imports, which must have been read after them: the leader shrinks an import
/// before it deletes the record, so an import that was read later and names the cluster without a record was not shrunk.
pub(super) fn remainder(area: &str, id: &str, records: &[Object], imports: &[Object]) -> Remainder {
    let read: Vec<&Object> = records.iter().filter(|record| is_read_by_leader(id, record)).collect();
    let there: BTreeSet<ServiceName> = read.iter().filter_map(|record| exported(id, record)).collect();
    let named: Vec<ServiceName> = imports.iter().filter_map(|import| names(import, id)).collect();
    let missing = named.iter().filter(|service| !there.contains(service));
    Remainder {
        withdraw: read.iter().filter(|record| is_open(record)).map(|&record| record.clone()).collect(),
        create: missing.map(|service| withdrawal(area, id, service)).collect(),
        imports: named.len(),
        records: read.len(),
    }
}

/// The cluster's other records: slices, and records that the leader does not read. They are deleted here.
pub(super) fn others(id: &str, records: &[Object]) -> Vec<Object> {
    records.iter().filter(|record| is_of(id, record) && !is_read_by_leader(id, record)).cloned().collect()
}

/// Whether an importer reads endpoints from this record: it is emptied before it is deleted.
pub(super) fn has_endpoints(record: &Object) -> bool {
    let Some(spec) = spec(record) else { return false };
    let has = matches!(&spec.endpoint_slice.0, Ok(Some(slice)) if !slice.endpoints.is_empty());
    spec.kind.as_deref() == Some(ENDPOINT_SLICE) && has
}

/// Whether the object has finalizers, which delay its deletion.
pub(super) fn has_finalizers(object: &Object) -> bool {
    object.metadata().finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether the record's member says that it is withdrawn.
pub(super) fn is_withdrawn(record: &Object) -> bool {
    spec(record).is_some_and(|spec| spec.is_withdrawn())
}

fn is_open(record: &Object) -> bool {
    !is_withdrawn(record) || has_finalizers(record)
}

fn spec(record: &Object) -> Option<RecordSpec> {
    record.view::<RecordView>()?.spec.0.ok()
}

/// A label alone makes no record the cluster's: its spec may say another.
fn is_of(id: &str, record: &Object) -> bool {
    spec(record).is_some_and(|spec| spec.cluster_id.is_none_or(|cluster| cluster.is_empty() || cluster == id))
}

/// Whether the leader reads the record as the cluster's export of a Service: spec, name and labels agree.
fn is_read_by_leader(id: &str, record: &Object) -> bool {
    let Some(spec) = spec(record) else { return false };
    let Some(service) = service(spec.namespace, spec.name) else { return false };
    let has = record.metadata().labels.unwrap_or_default();
    spec.cluster_id.as_deref() == Some(id)
        && spec.kind.as_deref() == Some(SERVICE)
        && record.name == name::service_export(id, &service)
        && labels(id, &service).iter().all(|(key, value)| has.get(*key) == Some(value))
}

/// The Service of a record that the leader reads.
fn exported(id: &str, record: &Object) -> Option<ServiceName> {
    let spec = spec(record).filter(|_| is_read_by_leader(id, record))?;
    service(spec.namespace, spec.name)
}

fn service(namespace: Option<String>, name: Option<String>) -> Option<ServiceName> {
    let filled = |text: &String| !text.is_empty();
    Some(ServiceName::new(namespace.filter(filled)?, name.filter(filled)?))
}

/// The Service of an import that names the cluster as exporter. Only an import of the canonical name is the leader's.
fn names(import: &Object, id: &str) -> Option<ServiceName> {
    let spec = import.view::<ResourceImportView>()?.spec.0.ok()?;
    let named = spec.exporters.iter().any(|exporter| exporter.cluster_id == id);
    let is_merged = spec.kind.as_deref() == Some(SERVICE_IMPORT);
    let service = service(spec.namespace, spec.name)?;
    (named && is_merged && import.name == name::service_import(&service)).then_some(service)
}

fn labels(id: &str, service: &ServiceName) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        (label::SOURCE_CLUSTER_ID, id.to_owned()),
        (label::SOURCE_NAMESPACE, service.namespace.clone()),
        (label::SOURCE_NAME, service.name.clone()),
        (label::SOURCE_KIND, SERVICE.to_owned()),
    ])
}

/// The record by which cluster `id` takes its export back.
fn withdrawal(area: &str, id: &str, service: &ServiceName) -> Object {
    let mut record = called::<ResourceExport>(area, &name::service_export(id, service));
    record.body = json!({
        "apiVersion": record.resource.api_version,
        "kind": record.resource.kind,
        "metadata": {"name": record.name, "namespace": area, "labels": labels(id, service)},
        "spec": {
            "clusterID": id,
            "namespace": service.namespace,
            "name": service.name,
            "kind": SERVICE,
            "service": {"serviceSpec": {}, "withdrawn": true},
        },
    });
    record
}

#[cfg(test)]
mod tests {
    use api::resource_import::ResourceImport;

    use super::*;

    const AREA: &str = "clusterset-demo";

    fn web() -> ServiceName {
        ServiceName::new("shop", "web")
    }

    fn record(id: &str) -> Object {
        let mut record = withdrawal(AREA, id, &web());
        record.body["spec"]["service"] = json!({"serviceSpec": {"ports": [{"port": 80}]}});
        record
    }

    fn slice(id: &str) -> Object {
        let mut slice = record(id);
        slice.name = name::slice_export(id, &web(), "web-1");
        slice.body["spec"]["kind"] = json!(ENDPOINT_SLICE);
        slice.body["spec"]["endpointSlice"] =
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]});
        slice
    }

    fn import(exporters: &[&str]) -> Object {
        let exporters: Vec<_> = exporters.iter().map(|id| json!({"clusterID": id})).collect();
        let body = json!({
            "metadata": {"name": name::service_import(&web())},
            "spec": {"kind": SERVICE_IMPORT, "namespace": "shop", "name": "web", "exporters": exporters},
        });
        Object { body, ..called::<ResourceImport>(AREA, &name::service_import(&web())) }
    }

    #[test]
    fn a_record_is_withdrawn_and_the_leader_waited_for() {
        let left = remainder(AREA, "east", &[record("east")], &[import(&["east", "west"])]);
        assert_eq!(left.withdraw, [record("east")]);
        assert_eq!((left.imports, left.records, left.create.len()), (1, 1, 0));

        let said = withdrawal(AREA, "east", &web());
        let left = remainder(AREA, "east", std::slice::from_ref(&said), &[import(&["west"])]);
        assert_eq!((left.withdraw.len(), left.imports, left.records), (0, 0, 1));
        assert!(!left.is_empty(), "the leader has yet to delete it");
        assert!(remainder(AREA, "east", &[], &[import(&["west"])]).is_empty());

        let mut kept = said;
        kept.body["metadata"]["finalizers"] = json!(["antrea"]);
        assert_eq!(remainder(AREA, "east", &[kept.clone()], &[]).withdraw, [kept]);
    }

    #[test]
    fn a_record_that_vanished_is_written_anew_as_withdrawn() {
        let left = remainder(AREA, "east", &[], &[import(&["east"])]);
        let [made] = &left.create[..] else { panic!("{left:?}") };
        assert_eq!(made.name, "east-shop-web-service");
        assert!(is_read_by_leader("east", made) && is_withdrawn(made));
        let spec: api::resource_export::ResourceExportSpec =
            serde_json::from_value(made.body["spec"].clone()).unwrap();
        assert!(spec.service.unwrap().withdrawn);
        // A slice is not the record of the Service.
        assert_eq!(remainder(AREA, "east", &[slice("east")], &[import(&["east"])]).create.len(), 1);
    }

    #[test]
    fn imports_of_other_names_and_kinds_are_not_the_leaders() {
        let mut foreign = import(&["east"]);
        foreign.name = "other".into();
        let mut policy = import(&["east"]);
        policy.body["spec"]["kind"] = json!("Endpoints");
        assert!(remainder(AREA, "east", &[], &[foreign, policy]).is_empty());
    }

    #[test]
    fn records_that_the_leader_does_not_read_are_deleted_unless_they_are_anothers() {
        let mut mislabelled = record("east");
        mislabelled.body["metadata"]["labels"][label::SOURCE_NAME] = json!("other");
        let mut misnamed = record("east");
        misnamed.name = "east".into();
        let records = [record("east"), record("west"), slice("east"), mislabelled.clone(), misnamed.clone()];
        assert_eq!(others("east", &records), [slice("east"), mislabelled, misnamed]);
    }

    #[test]
    fn only_slices_with_endpoints_are_emptied() {
        let mut empty = slice("east");
        empty.body["spec"]["endpointSlice"]["endpoints"] = json!([]);
        assert!(has_endpoints(&slice("east")));
        assert!(!has_endpoints(&empty) && !has_endpoints(&record("east")));
    }
}
