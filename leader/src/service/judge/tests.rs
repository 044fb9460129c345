use api::ServiceName;
use kit::index::Part;
use serde_json::{Value, json};

use super::*;
use crate::service::index::report::Report;

fn record() -> Value {
    serde_json::from_str(include_str!("../../../../api/tests/golden/export-service.json")).unwrap()
}

fn judged_value(record: Value) -> Judged {
    judged(serde_json::from_value(record).unwrap(), &Members::default(), &Bounds::default())
}

/// The reason, and whose the record is.
fn refusal(change: impl FnOnce(&mut Value)) -> (String, Option<(String, ServiceName)>) {
    let mut record = record();
    change(&mut record);
    match judged_value(record).judgement {
        Judgement::Refused { objection, of } => (objection.reason, of),
        other => (format!("not refused: {other:?}"), None),
    }
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    refusal(change).0
}

#[test]
fn a_valid_record_offers_what_it_says() {
    let Judgement::Service { cluster, service, payload } = judged_value(record()).judgement else { panic!() };
    assert_eq!((cluster.as_str(), service), ("east", ServiceName::new("shop", "web")));
    assert_eq!(payload.exported_labels["team"], "shop");
}

#[test]
fn what_is_not_valid_says_why() {
    assert_eq!(refused(|r| r["spec"]["service"] = Value::Null), "NoPayload");
    assert_eq!(refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!("many")), "NotDecodable");
    assert_eq!(refused(|r| r["spec"]["clusterID"] = json!("west")), "ForeignTuple");
    assert_eq!(refused(|r| r["spec"]["name"] = json!("other")), "ForeignTuple");
    assert_eq!(refused(|r| r["metadata"]["labels"]["sourceClusterID"] = json!("west")), "ForeignTuple");
    assert_eq!(refused(|r| r["spec"]["clusterID"] = json!("No_Label")), "InvalidTuple");
    assert_eq!(refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!([])), "InvalidService");
    let port = |n: i32| json!({"port": n, "protocol": "TCP", "name": format!("p{n}")});
    assert_eq!(
        refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!([port(0)])),
        "InvalidService"
    );
    assert_eq!(
        refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!([port(1), port(1)])),
        "InvalidService"
    );
    let many: Vec<_> = (1..=101).map(port).collect();
    assert_eq!(refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!(many)), "TooManyPorts");
    assert_eq!(refused(|r| r["spec"]["kind"] = json!("EndpointSlice")), "ForeignTuple");
    let service = |field: &'static str, value: Value| {
        refused(move |r| r["spec"]["service"]["serviceSpec"][field] = value)
    };
    assert_eq!(service("ipFamilies", json!(["IPv6", "IPv6"])), "InvalidService");
    assert_eq!(service("ipFamilies", json!(["IPX"])), "InvalidService");
    assert_eq!(service("ports", json!([{"port": 80, "appProtocol": "no such"}])), "InvalidService");
    assert_eq!(service("sessionAffinity", json!("Sticky")), "InvalidService");
    assert_eq!(
        service("sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 0}})),
        "InvalidService"
    );
    assert_eq!(service("internalTrafficPolicy", json!("Remote")), "InvalidService");
    assert_eq!(service("trafficDistribution", json!("Anywhere")), "InvalidService");
    for labels in [json!({"a b": "c"}), json!({"a": "-"}), json!({"a": "x".repeat(64)}), json!({"": "c"})] {
        assert_eq!(refused(|r| r["spec"]["service"]["exportedLabels"] = labels), "InvalidService");
    }
    let long = json!({"a": "x".repeat(70_000)});
    assert_eq!(refused(|r| r["spec"]["service"]["exportedAnnotations"] = long), "InvalidService");
}

#[test]
fn what_is_too_large_to_be_read_is_refused_and_known_as_its_clusters() {
    // Each empty text takes far more memory than its three bytes.
    let many = vec![""; 100_000];
    let (reason, of) = refusal(|r| r["spec"]["service"]["serviceSpec"]["externalIPs"] = json!(many));
    assert_eq!((reason.as_str(), of), ("TooLarge", Some(("east".into(), ServiceName::new("shop", "web")))));
}

#[test]
fn foreign_kinds_and_slices_pass() {
    for (golden, judgement) in [
        (include_str!("../../../../api/tests/golden/export-endpoints-antrea.json"), Judgement::Foreign),
        (include_str!("../../../../api/tests/golden/export-slice.json"), Judgement::Passed),
    ] {
        let record = judged_value(serde_json::from_str(golden).unwrap());
        assert_eq!(record.judgement, judgement);
        assert_eq!(Part::<String, Report>::key(&record), None, "and are not reported on");
    }
}

#[test]
fn addresses_out_of_range_are_said_and_the_rest_takes_part() {
    let golden = include_str!("../../../../api/tests/golden/export-slice.json");
    let said = |addresses: &[&str], ranges: &str| {
        let mut record: Value = serde_json::from_str(golden).unwrap();
        let endpoints: Vec<_> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
        record["spec"]["endpointSlice"]["endpoints"] = json!(endpoints);
        let bounds = Bounds::said(ranges);
        // As one of a list, of which no more is kept.
        let record = serde_json::from_value::<Record>(record).unwrap().bounded(&bounds);
        let judged = judged(record, &Members::default(), &bounds);
        assert_eq!(judged.judgement, Judgement::Passed);
        assert_eq!(Part::<String, Report>::key(&judged).is_some(), judged.remark.is_some());
        judged.remark
    };
    let mixed = ["10.1.0.7", "10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.4"];
    assert_eq!(said(&mixed, ""), None);
    assert_eq!(said(&mixed, "west=10.1.0.0/16"), None, "another's ranges");
    assert_eq!(said(&mixed, "east=10.1.0.0/16,10.9.0.0/29"), None);
    let objection = said(&mixed, "east=10.1.0.0/16").unwrap();
    assert_eq!(objection.reason, "OutOfRange");
    let names =
        "10.9.0.1, 10.9.0.2, 10.9.0.3 and 1 more: in none of the ranges of cluster east (10.1.0.0/16)";
    assert!(objection.message.starts_with(names), "{}", objection.message);
    assert!(said(&mixed, "east=fd00::/64").unwrap().message.contains("10.1.0.7"), "a family without a range");
}

#[test]
fn of_all_endpoints_in_one_record_those_out_of_range_are_left_out() {
    let golden = include_str!("../../../../api/tests/golden/export-endpoints.json");
    let mut record: Value = serde_json::from_str(golden).unwrap();
    record["spec"]["endpoints"]["subsets"] =
        json!([{"addresses": [{"ip": "10.1.0.7"}, {"ip": "10.9.0.1"}], "ports": [{"port": 80}]}]);
    let cluster = record["spec"]["clusterID"].as_str().unwrap().to_owned();
    let bounds = Bounds::said(&format!("{cluster}=10.1.0.0/16"));
    let judged = judged(serde_json::from_value(record).unwrap(), &Members::named("north-1"), &bounds);
    let Judgement::Endpoints { payload, .. } = judged.judgement else { panic!("{:?}", judged.judgement) };
    let [subset] = payload.subsets.try_into().unwrap();
    assert_eq!(subset.addresses.unwrap().into_iter().map(|a| a.ip).collect::<Vec<_>>(), ["10.1.0.7"]);
    assert_eq!(judged.remark.unwrap().reason, "OutOfRange");
}

#[test]
fn r12_a_headless_service_needs_no_ports_and_no_ipv4() {
    let mut record = record();
    record["spec"]["service"]["serviceSpec"] = json!({"clusterIP": "None", "ipFamilies": ["IPv6"]});
    assert!(matches!(judged_value(record).judgement, Judgement::Service { .. }));
}

#[test]
fn a_withdrawal_needs_no_ports() {
    let mut record = record();
    record["spec"]["service"] = json!({"serviceSpec": {}, "withdrawn": true});
    assert!(matches!(judged_value(record).judgement, Judgement::Service { .. }));
}

/// Issue 14, A2: such a record keeps the part of its cluster, and the others go on.
#[test]
fn a2_a_record_that_is_refused_is_known_by_what_cannot_change() {
    let ours = || Some(("east".to_owned(), ServiceName::new("shop", "web")));
    let time = |text: &'static str| refusal(move |r| r["spec"]["service"]["exportedAt"] = json!(text));
    assert_eq!(time("2026-01-01T10:00:00+99:99"), ("NotDecodable".into(), ours()));
    assert_eq!(time("0000-01-01T00:00:00+23:59"), ("InvalidService".into(), ours()), "the year -1");
    assert!(time("0001-01-01T00:00:00Z").0.starts_with("not refused"));
    assert!(time("9999-12-30T21:59:59Z").0.starts_with("not refused"));
    for (pointer, value) in [
        ("/spec", json!({"clusterID": 7})),
        ("/spec/clusterID", json!("west")),
        ("/spec/name", json!("other")),
        ("/spec/kind", json!("EndpointSlice")),
        ("/spec/kind", json!("ClusterInfo")),
        ("/metadata/labels/sourceClusterID", json!("west")),
    ] {
        let (reason, of) = refusal(|r| *r.pointer_mut(pointer).unwrap() = value.clone());
        assert_eq!(of, ours(), "{pointer}: {value}: {reason}");
    }
    let unlabelled = refusal(|r| {
        r["metadata"]["labels"] = Value::Null;
        r["spec"] = json!("?");
    });
    assert_eq!(unlabelled, ("NotDecodable".into(), ours()));
    let stranger = refusal(|r| r["metadata"]["name"] = json!("something"));
    assert_eq!(stranger.1, None);
}

/// The label does not make a record of another kind ours.
#[test]
fn a2_a_record_of_antreas_is_none_of_our_business_whatever_it_is_called() {
    let mut record = record();
    record["spec"]["kind"] = json!("AntreaClusterNetworkPolicy");
    record["metadata"]["labels"] = json!({});
    assert_eq!(judged_value(record).judgement, Judgement::Foreign);
}

/// With dashes everywhere, a name can be that of two Services: the labels say which.
#[test]
fn a2_a_broken_record_of_an_antrea_member_is_known_by_its_labels() {
    let golden = include_str!("../../../../api/tests/golden/export-service-antrea.json");
    let mut record: Value = serde_json::from_str(golden).unwrap();
    record["spec"]["service"] = json!("?");
    let judge = |record: &Value| {
        let record = serde_json::from_value(record.clone()).unwrap();
        judged(record, &Members::named("north-1"), &Bounds::default())
    };
    let service = ServiceName::new("shop", "web");
    assert_eq!(judge(&record).judgement.of(), Some(("north-1".to_owned(), service.clone())));
    assert_eq!(
        judge(&record).metadata.name,
        Some(Members::named("north-1").service_export("north-1", &service))
    );
    record["metadata"]["labels"] = Value::Null;
    assert_eq!(judge(&record).judgement.of(), None);
}

#[test]
fn what_is_not_merged_is_not_kept() {
    let mut large = record();
    large["spec"]["service"]["serviceSpec"]["externalIPs"] = json!(vec!["192.0.2.1"; 1000]);
    let judged = judged_value(large);
    assert!(judged.bytes > 10_000, "but counted: {}", judged.bytes);
    let Judgement::Service { payload, .. } = judged.judgement else { panic!() };
    assert_eq!((payload.service_spec.external_ips, judged.metadata.labels), (None, None));
    assert_eq!(judged.cluster, "east");
}
