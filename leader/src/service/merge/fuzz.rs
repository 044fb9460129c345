//! Records of all sorts: none panics, none disturbs the others.

use api::{antrea::Members, ranges::Bounds};
use kit::{index::Index, objects::Change};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::service::{index::record::Record, judge::judged};

fn service(name: &str) -> ServiceName {
    ServiceName::new("shop", name)
}

fn record(cluster: &str, of: &str) -> Value {
    json!({
        "metadata": {
            "name": name::service_export(cluster, &service(of)), "namespace": "cs", "uid": cluster, "generation": 1,
            "creationTimestamp": "2026-11-01T12:00:00Z",
            "labels": {"sourceClusterID": cluster, "sourceNamespace": "shop", "sourceName": of, "sourceKind": "Service"},
        },
        "spec": {"clusterID": cluster, "namespace": "shop", "name": of, "kind": "Service",
            "service": {"serviceSpec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}}},
    })
}

/// What is planned for `web` after these records came, and whether `west` offers something.
fn planned(records: Vec<Value>) -> (Plan, bool) {
    let mut index = Index::<ServiceName, ServiceEntry>::default();
    // What has no metadata no watch brings.
    for record in records.into_iter().filter_map(|record| serde_json::from_value::<Record>(record).ok()) {
        index.change(Change::Apply(judged(record, &Members::default(), &Bounds::default())));
    }
    let entry = index.get(&service("web")).unwrap();
    (desired(&service("web"), entry), entry.offers.get("west").is_some_and(|offer| !offer.payload.withdrawn))
}

/// Anything that JSON can say.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["east", "shop", "web", "Service", "EndpointSlice", "IPv4", "TCP"])
            .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "clusterID",
        "namespace",
        "name",
        "kind",
        "service",
        "serviceSpec",
        "ports",
        "port",
        "protocol",
        "endpointSlice",
        "endpoints",
        "addresses",
        "exportedAt",
        "exportedLabels",
        "withdrawn",
        "clusterIP",
        "ipFamilies",
        "sessionAffinityConfig",
        "clientIP",
        "timeoutSeconds",
        "x",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    /// Whatever a record holds, it is judged; what others offer is merged as without it, or together with it.
    #[test]
    fn no_record_disturbs_what_others_offer(spec in anything(), field in anything(), at in prop::sample::select(vec![
        "/spec/service/serviceSpec/ports/0/port", "/spec/service/serviceSpec/ports", "/spec/service/serviceSpec",
        "/spec/service", "/spec/clusterID", "/spec/name", "/metadata/labels", "/spec",
    ])) {
        let (alone, _) = planned(vec![record("east", "web")]);
        let (mut changed, mut made_up) = (record("west", "web"), record("west", "web"));
        *changed.pointer_mut(at).unwrap() = field;
        made_up["spec"] = spec;
        for odd in [changed, made_up] {
            match planned(vec![record("east", "web"), odd]) {
                (plan, false) => {
                    let import = |plan| match plan {
                        Plan::Write { import, .. } => import,
                        Plan::Hold => None,
                    };
                    prop_assert_eq!(import(plan), import(alone.clone()));
                }
                (Plan::Write { import: Some(import), .. }, true) => {
                    prop_assert!(import.exporters.unwrap().iter().any(|exporter| exporter.cluster_id == "east"));
                }
                (other, true) => prop_assert!(false, "{:?}", other),
            }
        }
    }

    /// Exports of other Services change nothing.
    #[test]
    fn an_unrelated_export_changes_nothing(other in "[a-v][a-z]{0,5}", first in any::<bool>()) {
        let mut records = vec![record("east", "web"), record("west", "web")];
        let (before, _) = planned(records.clone());
        records.insert(if first { 0 } else { 2 }, record("east", &other));
        prop_assert_eq!(planned(records).0, before);
    }
}
