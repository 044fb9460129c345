use api::{ServiceName, label, name, resource_export::SERVICE, view::Lenient};
use kit::{index::Index, objects::Change};
use serde_json::{Value, json};

use super::*;
use crate::service::{
    index::{
        EXPORT, READ,
        view::{Export, Import, LeaderImport, OwnRecord, PeerSlice, Service, Slice},
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

    /// As it is now.
    fn read<P: kit::index::Part<ServiceName, ServiceEntry>>(&mut self, mut object: P) -> Readers {
        object.meta_mut().resource_version = Some(self.version.to_string());
        let lists = self.index.lists::<P>();
        let dirty = self.index.read(object, lists);
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
    seen.apply(export());
    seen.apply(local_service(|_| {}));
    seen.apply(slice(&["10.1.0.7"]));
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

fn slice_record(address: &str) -> Value {
    json!({
        "metadata": {"name": name::slice_export("north", &service(), "web-x"), "namespace": "cs", "labels": {
            label::SOURCE_CLUSTER_ID: "north", label::SOURCE_NAMESPACE: "shop", label::SOURCE_NAME: "web",
        }},
        "spec": {"kind": "EndpointSlice", "clusterID": "north", "namespace": "shop", "name": "web",
            "endpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": []}},
    })
}

fn peer_slice(address: &str) -> PeerSlice {
    read(slice_record(address))
}

fn imported_slice(address: &str) -> Slice {
    let mut slice = slice(&[address]);
    slice.metadata.name = Some(imported_name());
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
    assert_eq!(seen.apply(export()), READ);
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
fn our_service_record_is_read_for_the_status_and_our_slices_where_the_leader_refuses_them() {
    let mut seen = exporter();
    assert_eq!(seen.apply(own_record("u1", 1)), EXPORT.and(STATUS));
    assert_eq!(seen.apply(own_slice()), EXPORT);
    let mut refused = own_record("u1", 1);
    refused.status = Lenient(Ok(read(json!({"conditions": [{"type": "Failure", "status": "True"}]}))));
    let status = refused.status.clone();
    assert_eq!(seen.apply(refused), STATUS, "what the leader says about it");
    assert_eq!(seen.apply(OwnRecord { status, ..own_slice() }), STATUS);
    assert_eq!(seen.apply(own_slice()), STATUS);
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

/// Name of a slice that we import of `web`.
fn imported_name() -> String {
    name::imported_slice("web", &name::slice_export("north", &service(), "web-x"))
}

#[test]
fn a_slice_of_ours_is_known_whatever_becomes_of_its_labels() {
    let ours = imported_slice("10.2.0.1");
    let labels = ours.metadata.labels.clone().unwrap();
    let relabelled = |change: &dyn Fn(&mut std::collections::BTreeMap<String, String>), by: Option<&str>| {
        let (mut seen, mut slice) = (Seen::default(), ours.clone());
        seen.apply(slice.clone());
        change(slice.metadata.labels.as_mut().unwrap());
        let entry = |manager: &str| json!({"manager": manager});
        slice.metadata.managed_fields = by.map(|by| read(json!([entry(by)])));
        let readers = seen.apply(slice);
        let entry = seen.index.get(&service()).cloned().unwrap_or_default();
        (readers, entry.imported_slices.len())
    };
    let gone: Vec<_> = labels.keys().cloned().collect();
    for key in [label::MCS_SERVICE_NAME, label::SERVICE_NAME] {
        let seen = relabelled(&|labels| drop(labels.insert(key.into(), "other".into())), None);
        assert_eq!(seen, (IMPORT, 1), "{key}");
    }
    let all_gone = |labels: &mut std::collections::BTreeMap<String, String>| {
        gone.iter().for_each(|key| drop(labels.remove(key)));
    };
    assert_eq!(relabelled(&all_gone, Some(label::MEMBER)), (IMPORT, 1), "we wrote it");
    assert_eq!(relabelled(&all_gone, Some("kubectl")), (IMPORT, 0), "nothing shows that it is ours");
    let by_kubernetes = |labels: &mut std::collections::BTreeMap<String, String>| {
        labels.insert(label::MANAGED_BY.into(), label::FREEPORT.into());
        labels.insert(label::SLICE_MANAGED_BY.into(), "endpointslice-controller.k8s.io".into());
    };
    let mut selected = ours.clone();
    selected.metadata.name = Some("antrea-mc-web-x7k2p".into());
    by_kubernetes(selected.metadata.labels.as_mut().unwrap());
    let mut seen = Seen::default();
    assert_eq!(seen.apply(selected), Readers::NONE, "made for a selector, with the labels of our Service");
    let mut copied = ours.clone();
    copied.metadata.name = Some("web-copied".into());
    copied.metadata.labels.as_mut().unwrap().insert(label::SERVICE_NAME.into(), "web".into());
    seen.apply(copied);
    assert!(
        seen.index.get(&service()).is_none_or(|entry| entry.imported_slices.is_empty()),
        "copied by somebody"
    );
}

#[test]
fn a_resource_import_is_found_by_its_name_whatever_its_spec_says() {
    let mut seen = exporter();
    seen.apply(leader_import());
    let mut garbled = leader_import();
    garbled.spec.0.as_mut().unwrap().name = Some("other".into());
    assert_eq!(seen.apply(garbled), IMPORT.and(STATUS), "another version of it");
    assert!(seen.index.get(&service()).unwrap().leader_import.is_some());
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

#[test]
fn of_what_nobody_reads_the_names_are_kept_and_the_rest_is_read_once_the_service_is_exported() {
    let entry = |seen: &Seen| seen.index.get(&service()).cloned();
    let mut seen = Seen::default();
    seen.apply(local_service(|_| {}));
    seen.apply(slice(&["10.1.0.7"]));
    let (mut second, mut third) = (slice(&["10.1.0.9"]), slice(&["10.1.0.10"]));
    second.metadata.name = Some("web-y".into());
    third.metadata.name = Some("web-z".into());
    seen.apply(second.clone());
    seen.apply(third.clone());
    let kept = entry(&seen).unwrap();
    assert!(kept.service.is_none() && kept.slices.is_empty() && kept.unread().is_none());
    seen.remove(second);

    assert_eq!(seen.apply(export()), READ, "nobody else can do anything yet");
    let unread = entry(&seen).unwrap().unread().cloned().unwrap();
    assert!(unread.has_service());
    assert_eq!(unread.slices().collect::<Vec<_>>(), ["web-x", "web-z"]);

    // What the watch tells need not be read any more.
    assert_eq!(seen.apply(third), READ);
    let read = [seen.read(local_service(|_| {})), seen.read(slice(&["10.1.0.8"]))];
    assert_eq!(read, [READ, EXPORT.and(IMPORT).and(STATUS)]);
    let all = entry(&seen).unwrap();
    assert!(all.unread().is_none() && all.service.is_some() && all.slices.len() == 2);
    assert_eq!(all.slices["web-x"].endpoints[0].shared.addresses, ["10.1.0.8"]);

    // It does not matter any more.
    seen.remove(export());
    assert!(entry(&seen).unwrap().service.is_none());
    assert!(entry(&seen).unwrap().export_went, "what was learned stays");

    let mut seen = Seen::default();
    seen.apply(slice(&["10.1.0.7"]));
    seen.apply(local_service(|_| {}));
    seen.remove(local_service(|_| {}));
    seen.remove(slice(&["10.1.0.7"]));
    assert_eq!(entry(&seen), None, "nothing is known of it any more");
}

#[test]
fn what_was_read_counts_only_where_the_watch_tells_nothing_later() {
    let unread = |uid: &str| {
        let mut seen = Seen::default();
        seen.apply(of_uid(uid));
        seen.apply(export());
        seen
    };
    let known = |seen: &Seen| seen.index.get(&service()).unwrap().service.is_some();

    let mut gone = unread("u1");
    gone.remove(of_uid("u1"));
    gone.read(of_uid("u1"));
    assert!(!known(&gone), "it came back");

    let mut replaced = unread("u1");
    replaced.read(of_uid("u2"));
    assert!(!known(&replaced), "the watch has not told of this one");
    replaced.read(of_uid("u1"));
    assert!(known(&replaced));

    let mut older = unread("u1");
    let mut old = of_uid("u1");
    old.metadata.resource_version = Some("0".into());
    let lists = older.index.lists::<Service>();
    older.index.read(old, lists);
    assert!(!known(&older));

    let mut restored = unread("u1");
    let (before, mut list) = (restored.index.lists::<Service>(), of_uid("u1"));
    list.metadata.resource_version = Some("1".into());
    restored.index.change(Change::Reset(Vec::<Service>::new()));
    restored.index.change(Change::Apply(list));
    let mut read = of_uid("u1");
    read.metadata.resource_version = Some("99".into());
    restored.index.read(read, before);
    assert_eq!(
        restored.index.get(&service()).unwrap().service.as_ref().unwrap().resource_version().unwrap(),
        "1"
    );
}

fn of_uid(uid: &str) -> Service {
    local_service(|service| service["metadata"]["uid"] = json!(uid))
}

/// Issue 14, A2 and A4: what was imported of such a record stays, nothing is kept of its content, and the others go on.
#[test]
fn a2_a4_a_slice_that_is_not_valid_or_too_much_is_known_and_not_kept() {
    let record = |change: fn(&mut Value)| -> PeerSlice {
        let mut record = slice_record("10.1.0.1");
        change(&mut record);
        read(record)
    };
    let odd: [fn(&mut Value); 4] = [
        |record| record["spec"] = json!("?"),
        |record| record["spec"]["clusterID"] = json!("west"),
        |record| record["spec"]["endpointSlice"]["endpoints"][0]["zone"] = json!("a b"),
        |record| {
            record["status"] =
                json!({"conditions": [{"type": "Failure", "status": "False", "reason": "OverQuota"}]});
        },
    ];
    for change in odd {
        let mut seen = Seen::default();
        seen.apply(leader_import());
        assert_eq!(seen.apply(peer_slice("10.1.0.7")), IMPORT);
        let odd = record(change);
        assert_eq!(odd.payload, None);
        assert_eq!(seen.apply(odd), IMPORT);
        let entry = seen.index.get(&service()).unwrap();
        assert_eq!((entry.peers.len(), entry.slices_refused.len()), (0, 1));
        assert_eq!(seen.apply(record(change)), Readers::NONE);
        assert_eq!(seen.apply(peer_slice("10.1.0.7")), IMPORT);
        assert!(seen.index.get(&service()).unwrap().slices_refused.is_empty());
    }
    let mended = record(|record| {
        record["status"] =
            json!({"conditions": [{"type": "Failure", "status": "False", "reason": "InvalidSlice"}]});
    });
    assert!(mended.payload.is_some(), "the leader has not looked at it again");
}
