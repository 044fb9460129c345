//! Under a leader of Antrea's.

use serde_json::{Value, json};

use super::*;
use crate::service::{
    antrea::{leader::AntreaImport, peers::PeerRecord},
    knowledge::{
        Knowledge,
        fixture::{IMPORT, export, golden, nothing, read, steps, succeeded, taken_in, written},
    },
};

const ENDPOINTS_OF_PEER: &str =
    include_str!("../../../../../../api/tests/golden/export-endpoints-antrea.json");
const SERVICE_OF_PEER: &str = include_str!("../../../../../../api/tests/golden/export-service-antrea.json");

/// What `shop/web` comes to be here.
fn planned(known: &Knowledge) -> Plan {
    let web = ServiceName::new("shop", "web");
    let writers = Writers { leader_uid: Some("antrea/u".into()), ..Writers::default() };
    desired(&known.known(&web).unwrap(), &writers)
}

/// `shop/web` of `north-1`, as it is imported here.
fn imported_of_peer() -> Knowledge {
    let known = nothing();
    known.services.change(Change::Apply(read::<AntreaImport>(&golden(IMPORT, |_| {}))));
    for record in [SERVICE_OF_PEER, ENDPOINTS_OF_PEER] {
        known.services.change(Change::Apply(read::<PeerRecord>(&golden(record, |_| {}))));
    }
    known
}

#[test]
fn who_takes_part_is_read_from_the_others_records() {
    let known = imported_of_peer();
    let Plan::Import(import) = planned(&known) else { panic!("{:?}", planned(&known)) };
    assert_eq!((import.clusters.as_slice(), import.doubts.len()), (["north-1".to_owned()].as_slice(), 0));
    assert_eq!(import.slices[0].endpoints[0].shared.addresses, ["10.1.0.7"]);

    for slice in import.slices {
        known.services.change(Change::Apply(by_us(slice)));
    }
    let mut going =
        golden(ENDPOINTS_OF_PEER, |r| r["metadata"]["deletionTimestamp"] = json!("2026-11-01T13:00:00Z"));
    let peer = |record: &Value| read::<PeerRecord>(record);
    known.services.change(Change::Apply(peer(&going)));
    assert_eq!(planned(&known), Plan::Remove, "it said so, and the import need not go first");
    known.services.change(Change::Remove(peer(&going)));
    assert_eq!(planned(&known), Plan::Remove, "and is gone then");
    going["metadata"]["deletionTimestamp"] = Value::Null;
    known.services.change(Change::Apply(peer(&going)));
    assert!(matches!(planned(&known), Plan::Import(_)), "it is back");

    known.services.change(Change::Remove(peer(&going)));
    let Plan::Import(import) = planned(&known) else { panic!() };
    assert_eq!(import.kept, ["north-1".to_owned()].into(), "it merely vanished");
    assert!(import.leftover.is_empty());
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
        let known = known.known(&web).unwrap();
        let ours = known.exporters().iter().find(|exporter| exporter.cluster_id == "east");
        ours.map(|exporter| exporter.observed.clone())
    };
    assert_eq!(ours(&known), None);
    taken_in(&known, record.clone(), |_| {});
    assert_eq!(ours(&known), Some(String::new()));
    taken_in(&known, record, succeeded);
    assert_eq!(ours(&known), Some("u1/1".into()));
}
