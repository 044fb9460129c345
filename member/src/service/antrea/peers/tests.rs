use kit::{index::Index, objects::Change};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::service::index::view::Slice;

const SERVICE_RECORD: &str = include_str!("../../../../../api/tests/golden/export-service-antrea.json");
const ENDPOINTS_RECORD: &str = include_str!("../../../../../api/tests/golden/export-endpoints-antrea.json");

fn record(golden: &str, change: impl FnOnce(&mut Value)) -> PeerRecord {
    let mut record: Value = serde_json::from_str(golden).unwrap();
    change(&mut record);
    serde_json::from_value(record).unwrap()
}

fn service() -> ServiceName {
    ServiceName::new("shop", "web")
}

/// What is known of `shop/web` after these records have been seen, and the slice `imported` is here.
fn known(records: Vec<PeerRecord>) -> Index<ServiceName, ServiceEntry> {
    let mut index = Index::default();
    index.change(Change::Reset(records));
    for name in importable(&index) {
        let imported: Slice = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "labels": {
                label::SLICE_MANAGED_BY: label::FREEPORT,
                label::MCS_SERVICE_NAME: "web",
                label::MCS_SOURCE_CLUSTER: "north-1",
            }},
            "addressType": "IPv4",
        }))
        .unwrap();
        index.change(Change::Apply(imported));
    }
    index
}

fn both() -> Index<ServiceName, ServiceEntry> {
    known(vec![record(SERVICE_RECORD, |_| {}), record(ENDPOINTS_RECORD, |_| {})])
}

fn entry(index: &Index<ServiceName, ServiceEntry>) -> &ServiceEntry {
    index.get(&service()).unwrap()
}

/// Names of the slices to import from it.
fn importable(index: &Index<ServiceName, ServiceEntry>) -> Vec<String> {
    let entry = index.get(&service());
    entry.map(|entry| entry.to_import_from(&service(), "north-1").collect()).unwrap_or_default()
}

#[test]
fn both_records_together_are_its_slices() {
    let index = both();
    let slices = &entry(&index).peers["north-1"];
    let [(record, slice)] = slices.iter().collect::<Vec<_>>()[..] else { panic!("{slices:?}") };
    assert_eq!(record, "north-1-shop-web-endpoints");
    assert_eq!(slice.endpoints[0].addresses, ["10.1.0.7"]);
    assert_eq!((slice.ports[0].port, slice.ports[0].service_port), (80, 80));
    assert!(entry(&index).is_complete("north-1") && !entry(&index).is_complete("east"));

    let alone = known(vec![record_of_endpoints()]);
    assert!(
        entry(&alone).peers.is_empty() && !entry(&alone).is_complete("north-1"),
        "which ports it has is not known"
    );
}

fn record_of_endpoints() -> PeerRecord {
    record(ENDPOINTS_RECORD, |_| {})
}

#[test]
fn a_record_that_claims_to_be_anothers_says_nothing() {
    for change in [
        (|r| r["metadata"]["name"] = json!("free")) as fn(&mut Value),
        |r| r["metadata"]["labels"]["sourceClusterID"] = json!("east"),
        |r| r["spec"]["clusterID"] = json!("east"),
        |r| r["spec"]["kind"] = json!("ClusterInfo"),
    ] {
        assert_eq!(record(ENDPOINTS_RECORD, change).key(), None);
    }
}

#[test]
fn deleting_takes_back_and_vanishing_does_not() {
    let going = |r: &mut Value| r["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
    let mut said = both();
    let imported = importable(&said);
    said.change(Change::Apply(record(ENDPOINTS_RECORD, going)));
    assert!(entry(&said).peers.is_empty() && entry(&said).is_complete("north-1"), "it has none");
    said.change(Change::Remove(record(ENDPOINTS_RECORD, going)));
    assert_eq!(entry(&said).slices_gone.iter().cloned().collect::<Vec<_>>(), imported);

    let mut vanished = both();
    vanished.change(Change::Remove(record_of_endpoints()));
    assert!(entry(&vanished).slices_gone.is_empty() && !entry(&vanished).is_complete("north-1"));
    assert_eq!(vanished.change(Change::Apply(record_of_endpoints())), [(service(), IMPORT)].into(), "back");
    assert_eq!(importable(&vanished), imported);
}

/// Issue 14, A4.
#[test]
fn a4_a_record_that_is_refused_leaves_what_is_imported_as_it_is() {
    let too_much = json!([{"type": "Failure", "status": "True", "reason": "OverQuota"}]);
    for change in
        [(|r, _| r["spec"]["endpoints"] = json!("many")) as fn(&mut Value, &Value), |r, too_much| {
            r["status"]["conditions"] = too_much.clone()
        }]
    {
        let mut index = both();
        let refused = record(ENDPOINTS_RECORD, |r| change(r, &too_much));
        assert_eq!((refused.key(), refused.bytes()), (Some(service()), 0));
        assert_eq!(index.change(Change::Apply(refused)), [(service(), IMPORT)].into());
        assert!(entry(&index).is_refused("north-1") && !entry(&index).is_complete("north-1"));
        assert!(entry(&index).has_endpoints("north-1") && entry(&index).peers.is_empty());
        index.change(Change::Apply(record_of_endpoints()));
        assert!(!entry(&index).is_refused("north-1") && entry(&index).is_complete("north-1"));
    }
}

/// Issue 14, A4.
#[test]
fn a4_records_of_both_kinds_are_one_share_and_weigh_what_they_take_in_memory() {
    let addresses: Vec<_> =
        (0..13_000).map(|n| json!({"ip": format!("10.{}.{}.1", n / 250, n % 250)})).collect();
    let subsets =
        json!([{"addresses": addresses, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}]);
    let dense = record(ENDPOINTS_RECORD, |r| r["spec"]["endpoints"]["subsets"] = subsets);
    assert!(dense.bytes() > 13_000 * 272, "{}", dense.bytes());
    let mut shares = kit::quota::Shares::new(api::quota::Quota { records: 5, bytes: dense.bytes() });
    let kept = |change| match change {
        Some(Change::Apply(PeerRecord { content, .. })) => content.is_some(),
        _ => false,
    };
    assert!(kept(shares.change(Change::Apply(dense))));
    assert!(!kept(shares.change(Change::Apply(record(SERVICE_RECORD, |_| {})))), "there is no room");
    assert_eq!(shares.left_out(), 1);
    let going = |r: &mut Value| r["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
    assert!(
        kept(shares.change(Change::Apply(record(ENDPOINTS_RECORD, going)))),
        "that it ends takes no room"
    );
}

proptest! {
    #[test]
    fn a1_no_record_of_antreas_stops_a_list(odd in odd::anything(&[
        "conditions", "clusterID", "namespace", "name", "kind", "service", "serviceSpec", "ports", "port", "endpoints", "subsets", "addresses", "ip",
    ])) {
        odd::everywhere::<PeerRecord>(&odd).unwrap();
    }
}
