use api::ServiceName;
use serde_json::{Value, json};

use super::*;

fn record() -> Value {
    serde_json::from_str(include_str!("../../../../api/tests/golden/export-service.json")).unwrap()
}

fn judged_value(record: Value) -> Judged {
    judged(serde_json::from_value(record).unwrap(), &Members::default())
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut record = record();
    change(&mut record);
    match judged_value(record).judgement {
        Judgement::Refused { objection, .. } => objection.reason,
        other => format!("not refused: {other:?}"),
    }
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
fn foreign_kinds_and_slices_pass() {
    for golden in [
        include_str!("../../../../api/tests/golden/export-endpoints-antrea.json"),
        include_str!("../../../../api/tests/golden/export-slice.json"),
    ] {
        let record = judged_value(serde_json::from_str(golden).unwrap());
        assert_eq!(record.judgement, Judgement::Passed);
        assert_eq!(Part::<String, Report>::key(&record), None, "and are not reported on");
    }
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

#[test]
fn a_mended_record_is_reported_once_and_then_forgotten() {
    let now = Time("2026-11-01T12:00:00Z".parse().unwrap());
    let failed = desired(Some(&Objection::new("NoPayload", "m")), &[], &now).conditions;
    assert_eq!(desired(Some(&Objection::new("NoPayload", "m")), &failed, &now).conditions, failed);
    let mended = desired(None, &failed, &now).conditions;
    assert_eq!(mended[0].type_.as_deref(), Some(SUCCEEDED));
    let mut record = judged_value(record());
    record.conditions = failed;
    assert!(Part::<String, Report>::key(&record).is_some());
    record.conditions = mended;
    assert_eq!(Part::<String, Report>::key(&record), None);
}
