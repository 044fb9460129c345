use api::{ServiceName, label, name, resource_export::SERVICE, view::Lenient};
use kit::{index::Index, objects::Change};
use serde_json::{Value, json};

use super::*;
use crate::service::{
    index::{
        EXPORT,
        view::{Export, Import, LeaderImport, OwnRecord, PeerSlice, Slice},
    },
    offer::fixture::{export, local_service, own_record, service, slice},
};

/// What is known; each change is a new version.
#[derive(Default)]
struct Seen {
    index: Index<ServiceName, ServiceEntry>,
    version: u64,
}

impl Seen {
    /// Who has to reconcile for it.
    fn apply<P: kit::index::Part<ServiceName, ServiceEntry>>(&mut self, mut object: P) -> Readers {
        self.version += 1;
        object.meta_mut().resource_version = Some(self.version.to_string());
        let dirty = self.index.change(Change::Apply(object));
        dirty.get(&service()).copied().unwrap_or_default()
    }

    fn remove<P: kit::index::Part<ServiceName, ServiceEntry>>(&mut self, mut object: P) -> Readers {
        self.version += 1;
        object.meta_mut().resource_version = Some(self.version.to_string());
        let dirty = self.index.change(Change::Remove(object));
        dirty.get(&service()).copied().unwrap_or_default()
    }
}

/// A cluster with `shop/web`, exported.
fn exporter() -> Seen {
    let mut seen = Seen::default();
    seen.apply(local_service(|_| {}));
    seen.apply(slice(&["10.1.0.7"]));
    seen.apply(export());
    seen
}

fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn with_status(mut export: Export) -> Export {
    export.status = Lenient(Ok(read(json!({"conditions": [{
        "type": "Valid", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": "2026-11-01T12:00:00Z",
    }]}))));
    export
}

fn leader_import() -> LeaderImport {
    read(json!({
        "metadata": {"name": name::service_import(&service()), "namespace": "cs", "uid": "i"},
        "spec": {"kind": "ServiceImport", "namespace": "shop", "name": "web", "exporters": [{"clusterID": "east"}],
            "serviceImport": {"spec": {"ports": [{"port": 80}]}}},
    }))
}

fn peer_slice(address: &str) -> PeerSlice {
    read(json!({
        "metadata": {"name": name::slice_export("north", &service(), "web-x"), "namespace": "cs",
            "labels": {label::SOURCE_CLUSTER_ID: "north"}},
        "spec": {"kind": "EndpointSlice", "clusterID": "north", "namespace": "shop", "name": "web",
            "endpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": []}},
    }))
}

fn imported_slice(address: &str) -> Slice {
    let mut slice = slice(&[address]);
    slice.metadata.name = Some("web-imported".into());
    let labels = [(label::SLICE_MANAGED_BY, label::FREEPORT), (label::MCS_SERVICE_NAME, "web")];
    slice.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    slice
}

/// Our record of a slice.
fn own_slice() -> OwnRecord {
    let mut record = own_record("u2", 1);
    record.metadata.name = Some(name::slice_export("east", &service(), "web-x"));
    let labels = record.metadata.labels.as_mut().unwrap();
    labels.insert(label::SOURCE_KIND.into(), "EndpointSlice".into());
    record
}

#[test]
fn nobody_reconciles_for_a_service_that_is_not_exported() {
    let mut seen = Seen::default();
    assert_eq!(seen.apply(local_service(|_| {})), Readers::NONE);
    assert_eq!(seen.apply(slice(&["10.1.0.7"])), Readers::NONE);
    assert_eq!(seen.apply(slice(&["10.1.0.8"])), Readers::NONE);
    assert_eq!(seen.apply(export()), EXPORT.and(STATUS));
}

#[test]
fn endpoints_are_read_by_the_exports_and_by_our_own_import() {
    let mut seen = exporter();
    assert_eq!(seen.apply(slice(&["10.1.0.8"])), EXPORT, "nothing is imported yet");
    assert_eq!(seen.apply(slice(&["10.1.0.8"])), Readers::NONE, "a version more that says the same");
    seen.apply(leader_import());
    assert_eq!(seen.apply(slice(&["10.1.0.9"])), EXPORT.and(IMPORT));
    let mut six = slice(&["fd00::1"]);
    (six.metadata.name, six.address_type) = (Some("web-y".into()), "IPv6".into());
    assert_eq!(seen.apply(six), EXPORT.and(IMPORT).and(STATUS), "a family more may make it valid");
    assert_eq!(seen.remove(slice(&["10.1.0.9"])), EXPORT.and(IMPORT).and(STATUS));
}

#[test]
fn a_status_is_read_by_who_writes_it_alone() {
    let mut seen = exporter();
    assert_eq!(seen.apply(with_status(export())), STATUS);
    assert_eq!(seen.apply(with_status(export())), Readers::NONE);
    let mut labelled = with_status(export());
    labelled.spec = Lenient(Ok(read(json!({"exportedLabels": {"team": "other"}}))));
    assert_eq!(seen.apply(labelled), EXPORT.and(STATUS));
    assert_eq!(seen.remove(export()), EXPORT.and(STATUS));
}

#[test]
fn our_service_record_is_read_for_the_status_and_our_slices_are_not() {
    let mut seen = exporter();
    assert_eq!(seen.apply(own_record("u1", 1)), EXPORT.and(STATUS));
    assert_eq!(seen.apply(own_slice()), EXPORT);
    let mut refused = own_record("u1", 1);
    refused.status = Lenient(Ok(read(json!({"conditions": [{"type": "Failure", "status": "True"}]}))));
    assert_eq!(seen.apply(refused), STATUS, "what the leader says about it");
    assert_eq!(seen.remove(own_slice()), EXPORT);
    assert_eq!(seen.remove(own_record("u1", 1)), EXPORT.and(STATUS));

    let mut without_export = Seen::default();
    without_export.apply(imported_slice("10.2.0.1"));
    assert_eq!(
        without_export.apply(own_record("u1", 1)),
        EXPORT.and(IMPORT).and(STATUS),
        "it says what is exported"
    );
}

#[test]
fn an_importer_reconciles_imports_alone() {
    let mut seen = Seen::default();
    assert_eq!(
        seen.apply(peer_slice("10.2.0.1")),
        Readers::NONE,
        "the leader does not say yet that it is exported"
    );
    assert_eq!(seen.apply(leader_import()), IMPORT);
    assert_eq!(seen.apply(leader_import()), Readers::NONE);
    assert_eq!(seen.apply(imported_slice("10.2.0.1")), IMPORT);
    assert_eq!(seen.apply(peer_slice("10.2.0.2")), IMPORT);
    assert_eq!(seen.apply(peer_slice("10.2.0.2")), Readers::NONE);
    let import: Import = read(
        json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"type": "ClusterSetIP", "ports": []}}),
    );
    assert_eq!(seen.apply(import), IMPORT);
    assert_eq!(seen.remove(imported_slice("10.2.0.1")), IMPORT);
    assert_eq!(seen.remove(peer_slice("10.2.0.2")), IMPORT);
    assert_eq!(seen.remove(leader_import()), IMPORT);
}

#[test]
fn what_the_leader_merged_is_read_for_the_status_of_an_export() {
    let mut seen = exporter();
    assert_eq!(seen.apply(leader_import()), IMPORT.and(STATUS));
    let changed = local_service(|service| service["spec"]["sessionAffinity"] = json!("ClientIP"));
    assert_eq!(seen.apply(changed), EXPORT.and(IMPORT).and(STATUS));
    assert_eq!(seen.remove(leader_import()), IMPORT.and(STATUS));
}

#[test]
fn under_a_leader_of_antreas_our_records_and_their_status_say_more() {
    let held = |status: Value| {
        let mut record = own_record("u1", 1);
        record.metadata.name = Some(api::antrea::service_export("east", &service()));
        record.metadata.finalizers = Some(vec![api::antrea::RECORD_FINALIZERS[0].to_owned()]);
        assert_eq!(record.metadata.labels.as_ref().unwrap()[label::SOURCE_KIND], SERVICE);
        record.status = Lenient(Ok(read(status)));
        record
    };
    let mut seen = exporter();
    seen.apply(imported_slice("10.2.0.1"));
    assert_eq!(seen.apply(held(json!({}))), EXPORT.and(IMPORT).and(STATUS), "that we take part");
    let succeeded = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
    assert_eq!(seen.apply(held(succeeded)), EXPORT.and(STATUS), "the record of endpoints waits for that");
}
