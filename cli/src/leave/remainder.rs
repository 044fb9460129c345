//! What the Common Area still holds of a cluster that was removed, and what is to be done about it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, label, name,
    resource_export::{ENDPOINT_SLICE, ResourceExport, SERVICE},
    resource_import::SERVICE_IMPORT,
};
use serde_json::{Value, json};

use super::departure::text;
use crate::{eraser::called, objects::Object};

/// What the leader has not yet taken to heart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Remainder {
    /// Records the leader acts on that are not withdrawn, or that something keeps from going.
    pub(super) withdraw: Vec<Object>,
    /// Records to create: the import names the cluster, and only a withdrawal takes it out for sure.
    pub(super) create: Vec<Object>,
    /// Imports that name the cluster.
    pub(super) imports: usize,
    /// Records the leader acts on.
    pub(super) records: usize,
}

impl Remainder {
    /// Whether the leader is done.
    pub(super) fn is_empty(&self) -> bool {
        self.imports == 0 && self.records == 0
    }
}

/// Compares records of cluster `id` with the imports, which must have been read after them: the leader shrinks an import
/// before it deletes the record, so an import read later that still names the cluster has no record on purpose.
pub(super) fn remainder(area: &str, id: &str, records: &[Object], imports: &[Object]) -> Remainder {
    let heard: Vec<&Object> = records.iter().filter(|record| is_heard(id, record)).collect();
    let there: BTreeSet<ServiceName> = heard.iter().filter_map(|record| service(record)).collect();
    let named: Vec<ServiceName> = imports.iter().filter_map(|import| names(import, id)).collect();
    let missing = named.iter().filter(|service| !there.contains(service));
    Remainder {
        withdraw: heard.iter().filter(|record| is_open(record)).map(|&record| record.clone()).collect(),
        create: missing.map(|service| withdrawal(area, id, service)).collect(),
        imports: named.len(),
        records: heard.len(),
    }
}

/// The cluster's other records: slices, and whatever the leader does not act on. They are deleted here.
pub(super) fn others(id: &str, records: &[Object]) -> Vec<Object> {
    records.iter().filter(|record| is_of(id, record) && !is_heard(id, record)).cloned().collect()
}

/// Whether an importer reads endpoints from this record: it hears that there are none before the record goes.
pub(super) fn has_endpoints(record: &Object) -> bool {
    text(record, "/spec/kind").as_deref() == Some(ENDPOINT_SLICE)
        && record
            .body
            .pointer("/spec/endpointSlice/endpoints")
            .and_then(Value::as_array)
            .is_some_and(|endpoints| !endpoints.is_empty())
}

/// Whether something keeps the object from going when it is deleted.
pub(super) fn has_finalizers(object: &Object) -> bool {
    object
        .body
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether the record's member says that it is withdrawn.
pub(super) fn is_withdrawn(record: &Object) -> bool {
    record.body.pointer("/spec/service/withdrawn") == Some(&Value::Bool(true))
}

fn is_open(record: &Object) -> bool {
    !is_withdrawn(record) || has_finalizers(record)
}

/// A label alone makes no record the cluster's: its spec may say another.
fn is_of(id: &str, record: &Object) -> bool {
    text(record, "/spec/clusterID").is_none_or(|cluster| cluster == id)
}

/// Whether the leader takes the record for the cluster's word on a Service: spec, name and labels agree.
fn is_heard(id: &str, record: &Object) -> bool {
    let Some(service) = service(record) else {
        return false;
    };
    let label = |key: &str| record.body.pointer("/metadata/labels")?.get(key)?.as_str();
    text(record, "/spec/clusterID").as_deref() == Some(id)
        && text(record, "/spec/kind").as_deref() == Some(SERVICE)
        && record.name == name::service_export(id, &service)
        && labels(id, &service).iter().all(|(key, value)| label(key) == Some(value))
}

fn service(object: &Object) -> Option<ServiceName> {
    Some(ServiceName::new(text(object, "/spec/namespace")?, text(object, "/spec/name")?))
}

/// The Service of an import that names the cluster as exporter. Only an import of the canonical name is the leader's.
fn names(import: &Object, id: &str) -> Option<ServiceName> {
    let service = service(import)?;
    let exporters = import.body.pointer("/spec/exporters")?.as_array()?;
    let named = exporters.iter().any(|exporter| exporter.get("clusterID").is_some_and(|it| it == id));
    let ours = text(import, "/spec/kind").as_deref() == Some(SERVICE_IMPORT)
        && import.name == name::service_import(&service);
    (named && ours).then_some(service)
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
        slice.body["spec"]["endpointSlice"] = json!({"endpoints": [{"addresses": ["10.0.0.1"]}]});
        slice
    }

    fn import(exporters: &[&str]) -> Object {
        let exporters: Vec<_> = exporters.iter().map(|id| json!({"clusterID": id})).collect();
        let body = json!({
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
        assert!(is_heard("east", made) && is_withdrawn(made));
        let spec: api::resource_export::ResourceExportSpec =
            serde_json::from_value(made.body["spec"].clone()).unwrap();
        assert!(spec.service.unwrap().withdrawn);
        // A slice does not speak for the Service.
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
    fn what_the_leader_does_not_hear_is_deleted_but_never_what_is_anothers() {
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
