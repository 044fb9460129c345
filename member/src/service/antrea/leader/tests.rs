use kit::objects::Change;
use serde_json::{Value, json};

use super::*;
use crate::service::{
    entry::Unexported,
    import::{
        belief::Hub,
        plan::{self, Doubt, Plan},
    },
    knowledge::Knowledge,
    view::{Export, Service, Slice},
};

const IMPORT: &str = include_str!("../../../../../api/tests/golden/import-service-antrea.json");
const ENDPOINTS_OF_PEER: &str = include_str!("../../../../../api/tests/golden/export-endpoints-antrea.json");
const SERVICE_OF_PEER: &str = include_str!("../../../../../api/tests/golden/export-service-antrea.json");

fn us() -> Identity {
    Identity { cluster: "east".into(), common_area: "antrea-multicluster".into() }
}

fn read<K: serde::de::DeserializeOwned>(object: &Value) -> K {
    serde_json::from_value(object.clone()).unwrap()
}

fn golden(text: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = serde_json::from_str(text).unwrap();
    change(&mut object);
    object
}

/// Under a leader of Antrea's, where nothing is known.
fn nothing() -> Knowledge {
    Knowledge::under_antrea("east")
}

/// A Service with a slice, exported at some hour.
fn export(known: &Knowledge, service: &ServiceName, hour: u8) {
    let ServiceName { namespace, name } = service;
    let at = format!("2026-11-01T{hour:02}:00:00Z");
    let export = json!({"metadata": {"name": name, "namespace": namespace, "creationTimestamp": at}});
    let local = json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    });
    let slice = json!({
        "metadata": {"name": format!("{name}-x"), "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.8"]}, {"addresses": ["10.1.0.7"]}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    });
    known.services.change(Change::Apply(read::<Export>(&export)));
    known.services.change(Change::Apply(read::<Service>(&local)));
    known.services.change(Change::Apply(read::<Slice>(&slice)));
}

fn steps(known: &Knowledge, service: &ServiceName) -> Vec<Step> {
    desired(&us(), service, &known.entry(service).unwrap())
}

/// What would be written, by name.
fn written(steps: &[Step]) -> Vec<Value> {
    let want = |step: &Step| match step {
        Step::Put { want, .. } => serde_json::to_value(want).unwrap(),
        Step::Remove { have, .. } | Step::Delete { have } => json!({"delete": have.name_any()}),
    };
    steps.iter().map(want).collect()
}

/// The record as the API server has it.
fn told(known: &Knowledge, mut record: Value, change: impl FnOnce(&mut Value)) {
    record["metadata"]["uid"] = json!("u1");
    record["metadata"]["generation"] = json!(1);
    change(&mut record);
    known.services.change(Change::Apply(read::<OwnRecord>(&record)));
}

fn succeeded(record: &mut Value) {
    record["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
}

fn said(golden: &str) -> (Value, Value) {
    let golden: Value = serde_json::from_str(golden).unwrap();
    (golden["metadata"].clone(), golden["spec"].clone())
}

#[test]
fn the_records_are_those_of_the_wire_contract_and_the_endpoints_wait_for_the_service() {
    let (known, web) = (nothing(), ServiceName::new("team-a", "web"));
    export(&known, &web, 12);
    let first = written(&steps(&known, &web));
    let [service] = first.as_slice() else { panic!("{first:?}") };
    let want = said(include_str!("../../../../../api/tests/golden/export-service-to-antrea.json"));
    assert_eq!((service["metadata"].clone(), service["spec"].clone()), want);

    told(&known, service.clone(), |_| {});
    assert_eq!(steps(&known, &web).len(), 1, "not yet taken");
    told(&known, service.clone(), succeeded);
    let both = written(&steps(&known, &web));
    let want = said(include_str!("../../../../../api/tests/golden/export-endpoints-to-antrea.json"));
    assert_eq!((both[1]["metadata"].clone(), both[1]["spec"].clone()), want);

    told(&known, both[1].clone(), |_| {});
    for step in steps(&known, &web) {
        let Step::Put { have: Some(have), want } = step else { panic!("{step:?}") };
        assert_eq!(have.spec, want.spec, "nothing to say");
    }
    known.services.note(&web, |entry| (entry.export, entry.unexported) = (None, Some(Unexported::Decided)));
    let gone = ["service", "endpoints"].map(|kind| json!({"delete": format!("east-team-a-web-{kind}")}));
    assert_eq!(written(&steps(&known, &web)), gone);
    told(&known, service.clone(), |r| r["metadata"]["deletionTimestamp"] = json!("2026-11-01T13:00:00Z"));
    assert_eq!(written(&steps(&known, &web)), gone[1..], "the other waits for the leader");
    export(&known, &web, 14);
    assert_eq!(written(&steps(&known, &web)).len(), 1, "nor is it written again before");
}

#[test]
fn of_two_services_that_want_one_name_the_older_export_has_it() {
    let (known, long, short) = (nothing(), ServiceName::new("a-b", "c"), ServiceName::new("a", "b-c"));
    export(&known, &long, 12);
    assert_eq!(steps(&known, &long).len(), 1);
    let first = written(&steps(&known, &long)).remove(0);
    told(&known, first, |_| {});
    export(&known, &short, 10);
    assert_eq!(known.entry(&long).unwrap().rival, Some(short.clone()));
    assert_eq!(written(&steps(&known, &long)), [json!({"delete": "east-a-b-c-service"})]);
    assert_eq!(known.entry(&short).unwrap().rival, None);
    assert_eq!(steps(&known, &short).len(), 1);
    assert!(namesakes(&short).contains(&long), "what changes for one is looked at for the other");

    known.services.note(&short, |entry| entry.service = None);
    assert_eq!(known.entry(&long).unwrap().rival, None, "the older one cannot be exported");
}

#[test]
fn ports_follow_the_order_of_the_import() {
    let (known, web) = (nothing(), ServiceName::new("shop", "web"));
    export(&known, &web, 12);
    known.services.note(&web, |entry| {
        let ports = json!([{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
        entry.service.as_mut().unwrap().spec.ports = read(&ports);
    });
    let numbers = |known: &Knowledge| {
        let record = written(&steps(known, &web))[0].clone();
        let ports = record["spec"]["service"]["serviceSpec"]["ports"].as_array().unwrap().clone();
        ports.iter().map(|port| port["port"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&known), [80, 53]);
    let import = golden(IMPORT, |import| {
        let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "http", "port": 80}]);
        import["spec"]["serviceImport"]["spec"]["ports"] = ports;
    });
    known.services.change(Change::Apply(read::<AntreaImport>(&import)));
    assert_eq!(numbers(&known), [53, 80]);
}

/// What `shop/web` comes to be here.
fn planned(known: &Knowledge) -> Plan {
    let web = ServiceName::new("shop", "web");
    let hub = Hub { uid: "antrea/u".into(), ..Hub::default() };
    plan::desired("east", &web, &hub, &known.entry(&web).unwrap())
}

/// `shop/web` of `north-1`, as it is imported here.
fn imported_of_peer() -> Knowledge {
    let known = nothing();
    known.services.change(Change::Apply(read::<AntreaImport>(&golden(IMPORT, |_| {}))));
    for record in [SERVICE_OF_PEER, ENDPOINTS_OF_PEER] {
        known.services.change(Change::Apply(read::<super::super::PeerRecord>(&golden(record, |_| {}))));
    }
    known
}

#[test]
fn who_takes_part_is_read_from_the_others_records() {
    let known = imported_of_peer();
    let Plan::Realise(realise) = planned(&known) else { panic!("{:?}", planned(&known)) };
    assert_eq!((realise.clusters.as_slice(), realise.doubts.len()), (["north-1".to_owned()].as_slice(), 0));
    assert_eq!(realise.slices[0].endpoints[0].shared.addresses, ["10.1.0.7"]);

    for slice in realise.slices {
        known.services.change(Change::Apply(slice));
    }
    let mut going =
        golden(ENDPOINTS_OF_PEER, |r| r["metadata"]["deletionTimestamp"] = json!("2026-11-01T13:00:00Z"));
    let peer = |record: &Value| read::<super::super::PeerRecord>(record);
    known.services.change(Change::Apply(peer(&going)));
    assert_eq!(planned(&known), Plan::Remove, "it said so, and the import need not go first");
    known.services.change(Change::Remove(peer(&going)));
    assert_eq!(planned(&known), Plan::Remove, "and is gone then");
    going["metadata"]["deletionTimestamp"] = Value::Null;
    known.services.change(Change::Apply(peer(&going)));
    assert!(matches!(planned(&known), Plan::Realise(_)), "it is back");

    known.services.change(Change::Remove(peer(&going)));
    let Plan::Realise(realise) = planned(&known) else { panic!() };
    assert_eq!(realise.kept, ["north-1".to_owned()].into(), "that it merely vanished is no word");
    assert!(realise.leftover.is_empty());
    known.services.change(Change::Remove(read::<AntreaImport>(&golden(IMPORT, |_| {}))));
    let Plan::Hold(doubts) = planned(&known) else { panic!("{:?}", planned(&known)) };
    assert_eq!(doubts, [Doubt::Part { cluster: "north-1".into() }, Doubt::Import]);
    let web = ServiceName::new("shop", "web");
    known.services.note(&web, |entry| {
        entry.import_gone = true;
        entry.parts_gone.insert("north-1".into());
    });
    assert_eq!(planned(&known), Plan::Remove, "both were found to be gone");
}

#[test]
fn our_part_is_merged_once_the_record_has_succeeded_and_the_import_is_there() {
    let (known, web) = (imported_of_peer(), ServiceName::new("shop", "web"));
    export(&known, &web, 12);
    let record = written(&steps(&known, &web))[0].clone();
    let ours = |known: &Knowledge| {
        let exporters = known.entry(&web).unwrap().hub_import.unwrap().spec.exporters.unwrap();
        exporters.into_iter().find(|exporter| exporter.cluster_id == "east").map(|e| e.observed)
    };
    assert_eq!(ours(&known), None);
    told(&known, record.clone(), |_| {});
    assert_eq!(ours(&known), Some(String::new()));
    told(&known, record, succeeded);
    assert_eq!(ours(&known), Some("u1/1".into()));
}
