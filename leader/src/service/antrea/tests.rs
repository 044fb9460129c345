use std::sync::Arc;

use api::{
    name,
    ranges::Bounds,
    resource_export::{EndpointsPayload, ServicePayload},
    resource_import::Exporter,
};
use serde_json::{Value, json};

use super::*;
use crate::service::{
    index::{
        entry::{Endpoints, Offer},
        judged::Judgement,
        record::Record,
    },
    judge::judged,
};

const SERVICE: &str = include_str!("../../../../api/tests/golden/export-service-antrea.json");
const ENDPOINTS_RECORD: &str = include_str!("../../../../api/tests/golden/export-endpoints-antrea.json");

fn service() -> ServiceName {
    ServiceName::new("shop", "web")
}

fn members() -> Members {
    Members::named("north-1")
}

fn judgement(record: &str, members: &Members, change: impl FnOnce(&mut Value)) -> Judgement {
    let mut record: Value = serde_json::from_str(record).unwrap();
    change(&mut record);
    judged(serde_json::from_value::<Record>(record).unwrap(), members, &Bounds::default()).judgement
}

fn is_going(record: &mut Value) {
    record["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
}

#[test]
fn a_marked_member_names_its_records_as_antrea_does_and_nobody_else() {
    let Judgement::Service { cluster, service: of, payload } = judgement(SERVICE, &members(), |_| {}) else {
        panic!()
    };
    assert_eq!((cluster.as_str(), of, payload.withdrawn), ("north-1", service(), false));
    let unmarked = judgement(SERVICE, &Members::named("south"), |_| {});
    assert!(matches!(unmarked, Judgement::Refused { of: None, .. }), "{unmarked:?}");
    let ours = judgement(SERVICE, &members(), |r| {
        r["metadata"]["name"] = json!(name::service_export("north-1", &service()));
    });
    assert!(matches!(ours, Judgement::Refused { .. }), "one name for one tuple: {ours:?}");
}

#[test]
fn deleting_is_how_antrea_withdraws() {
    let Judgement::Service { payload, .. } = judgement(SERVICE, &members(), is_going) else { panic!() };
    assert!(payload.withdrawn);
    let broken = judgement(SERVICE, &members(), |r| {
        is_going(r);
        r["spec"]["service"] = Value::Null;
    });
    assert!(matches!(broken, Judgement::Service { payload, .. } if payload.withdrawn), "whatever it says");
    let Judgement::Endpoints { payload, .. } = judgement(ENDPOINTS_RECORD, &members(), is_going) else {
        panic!()
    };
    assert_eq!(payload, EndpointsPayload::default());
    let ours =
        judgement(include_str!("../../../../api/tests/golden/export-service.json"), &members(), is_going);
    assert!(matches!(ours, Judgement::Service { payload, .. } if !payload.withdrawn), "ours say it first");
}

#[test]
fn endpoints_that_cannot_be_are_refused_and_without_antrea_nobody_looks() {
    let bad = judgement(ENDPOINTS_RECORD, &members(), |r| {
        r["spec"]["endpoints"]["subsets"][0]["addresses"][0]["ip"] = json!("127.0.0.1");
    });
    assert!(matches!(bad, Judgement::Refused { objection, .. } if objection.reason == "InvalidEndpoints"));
    assert_eq!(judgement(ENDPOINTS_RECORD, &Members::default(), |_| {}), Judgement::Foreign);
}

fn offer(port: (&str, i32)) -> Offer {
    let spec = json!({"ports": [{"name": port.0, "port": port.1, "protocol": "TCP"}]});
    let payload =
        ServicePayload { service_spec: serde_json::from_value(spec).unwrap(), ..ServicePayload::default() };
    Offer { metadata: ObjectMeta::default(), payload }
}

fn endpoints(port: (&str, i32), addresses: &[&str]) -> Endpoints {
    let addresses: Vec<_> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    let subsets =
        json!([{"addresses": addresses, "ports": [{"name": port.0, "port": port.1, "protocol": "TCP"}]}]);
    let payload = serde_json::from_value(json!({ "subsets": subsets })).unwrap();
    Endpoints { metadata: ObjectMeta::default(), payload }
}

/// `east` calls port 80 `http`, as the merged Service does, `north-1` calls it `web`.
fn entry() -> ServiceEntry {
    ServiceEntry {
        offers: [
            ("east".into(), Arc::new(offer(("http", 80)))),
            ("north-1".into(), Arc::new(offer(("web", 80)))),
        ]
        .into(),
        endpoints: [
            ("east".into(), Arc::new(endpoints(("http", 8080), &["10.1.0.7"]))),
            ("north-1".into(), Arc::new(endpoints(("web", 80), &["10.2.0.9"]))),
        ]
        .into(),
        ..ServiceEntry::default()
    }
}

fn import(exporters: &[&str]) -> ResourceImportSpec {
    let exporter = |id: &&str| Exporter { cluster_id: (*id).into(), ..Exporter::default() };
    let merged =
        json!({"spec": {"type": "ClusterSetIP", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}});
    ResourceImportSpec {
        exporters: Some(exporters.iter().map(exporter).collect()),
        service_import: Some(serde_json::from_value(merged).unwrap()),
        ..ResourceImportSpec::default()
    }
}

fn put(entry: &ServiceEntry, exporters: &[&str]) -> Value {
    match desired(&service(), entry, Some(&import(exporters)), &members()) {
        Step::Put(spec) => serde_json::to_value(spec).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn have(spec: &Value) -> Option<Import> {
    serde_json::from_value(json!({"metadata": {"name": "shop-web-endpoints"}, "spec": spec})).ok()
}

#[test]
fn all_endpoints_are_one_import_under_the_merged_names() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../../api/tests/golden/import-endpoints-of-all.json"))
            .unwrap();
    let mut entry = entry();
    let said = put(&entry, &["east", "north-1"]);
    assert_eq!(said, golden["spec"]);
    entry.endpoints_import = have(&said).map(Arc::new);
    let again = desired(&service(), &entry, Some(&import(&["east", "north-1"])), &members());
    assert_eq!(again, Step::Keep, "a second pass has nothing to say");
    let one = put(&entry, &["east"]);
    assert_eq!(one["endpoints"]["subsets"].as_array().unwrap().len(), 1, "who is no exporter has no part");
}

#[test]
fn endpoints_that_vanish_without_being_withdrawn_stay() {
    let mut entry = entry();
    entry.endpoints_import = have(&put(&entry, &["east", "north-1"])).map(Arc::new);
    entry.endpoints.remove("east");
    let step = desired(&service(), &entry, Some(&import(&["east", "north-1"])), &members());
    assert_eq!(step, Step::Keep);
    entry.endpoints.insert(
        "east".into(),
        Arc::new(Endpoints { payload: EndpointsPayload::default(), ..endpoints(("http", 1), &[]) }),
    );
    assert_eq!(
        put(&entry, &["east", "north-1"])["endpoints"]["subsets"].as_array().unwrap().len(),
        1,
        "said"
    );
}

#[test]
fn the_import_of_all_endpoints_goes_with_the_exporters_and_with_its_readers() {
    let mut entry = entry();
    let nobody = desired(&service(), &entry, Some(&import(&[])), &members());
    assert_eq!(nobody, Step::Keep, "it never was");
    let there = have(&put(&entry, &["east"])).unwrap();
    entry.endpoints_import = Some(Arc::new(there.clone()));
    let nobody = desired(&service(), &entry, Some(&import(&[])), &members());
    assert_eq!(nobody, Step::Remove(there.clone()));
    let no_reader = desired(&service(), &entry, Some(&import(&["east"])), &Members::default());
    assert_eq!(no_reader, Step::Remove(there));
}
