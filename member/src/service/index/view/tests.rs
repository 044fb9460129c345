//! No object stops a list (issue 14, A1), whatever its author writes into it.

use std::collections::BTreeMap;

use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::service::index::endpoints::CoreEndpoints;

/// Fields of ServiceExports, ServiceImports and records.
const FIELDS: &[&str] = &[
    "conditions",
    "lastTransitionTime",
    "service",
    "serviceSpec",
    "exportedAt",
    "exporters",
    "ports",
    "port",
    "endpointSlice",
    "endpoints",
    "addresses",
    "zone",
    "kind",
    "name",
    "namespace",
    "clusterID",
    "ips",
    "sessionAffinityConfig",
    "exportedLabels",
    "withdrawn",
];

fn service() -> Value {
    json!({
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "ClientIP", "internalTrafficPolicy": "Local",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}, "selector": {"app": "web"},
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": "web", "appProtocol": "h2"}],
            "externalIPs": ["192.0.2.1"], "publishNotReadyAddresses": true, "externalName": "a.b",
            "loadBalancerIP": "192.0.2.1", "loadBalancerSourceRanges": ["10.0.0.0/8"], "loadBalancerClass": "x/y",
            "allocateLoadBalancerNodePorts": false, "externalTrafficPolicy": "Local", "healthCheckNodePort": 1,
            "trafficDistribution": "PreferClose",
        },
        "status": {"conditions": [{"type": "A", "lastTransitionTime": "9999-12-31T23:59:59Z"}]},
    })
}

fn slice() -> Value {
    json!({
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false},
            "hostname": "a", "nodeName": "n", "zone": "z",
            "targetRef": {"kind": "Pod", "namespace": "x", "name": "y", "uid": "z", "fieldPath": "a"},
            "hints": {"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]},
        }],
        "ports": [{"name": "http", "protocol": "TCP", "port": 80, "appProtocol": "h2"}],
    })
}

fn endpoints() -> Value {
    let address = json!([{"ip": "10.0.0.1", "hostname": "a", "nodeName": "n", "targetRef": {"kind": "Pod"}}]);
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2"}]);
    json!({"subsets": [{"addresses": address, "notReadyAddresses": address, "ports": ports}]})
}

proptest! {
    #[test]
    fn a1_nothing_of_a_crd_stops_a_list(odd in odd::anything(FIELDS)) {
        odd::everywhere::<Export>(&odd).unwrap();
        odd::everywhere::<Import>(&odd).unwrap();
        odd::everywhere::<OwnRecord>(&odd).unwrap();
        odd::everywhere::<PeerSlice>(&odd).unwrap();
        odd::everywhere::<LeaderImport>(&odd).unwrap();
    }

    #[test]
    fn a1_no_service_stops_a_list(odd in odd::like(&service(), &["port"])) {
        odd::list::<Service>(&odd).unwrap();
        odd::list::<Derived>(&odd).unwrap();
    }

    #[test]
    fn a1_no_slice_stops_a_list(odd in odd::like(&slice(), &["addressType", "addresses"])) {
        odd::list::<Slice>(&odd).unwrap();
    }

    #[test]
    fn a1_no_endpoints_stop_a_list(odd in odd::like(&endpoints(), &["ip", "port"])) {
        odd::list::<CoreEndpoints>(&odd).unwrap();
    }
}

/// Go writes an empty list so.
#[test]
fn a1_null_is_an_empty_list() {
    odd::list::<Slice>(&json!({"addressType": "IPv4", "endpoints": null, "ports": null})).unwrap();
    odd::list::<CoreEndpoints>(&json!({"subsets": null})).unwrap();
}

/// Issue 14, A4.
#[test]
fn a4_labels_that_are_not_read_take_no_memory() {
    let labelled = |count: usize, own: Value| {
        let mut labels: BTreeMap<_, _> =
            (0..count).map(|n| (format!("l{n}"), json!("x".repeat(60)))).collect();
        labels.extend([(label::SERVICE_NAME.to_owned(), json!("web"))]);
        labels.extend(own.as_object().cloned().unwrap_or_default());
        let metadata =
            json!({"name": "web-1", "labels": labels, "annotations": labels, "finalizers": ["a.b/c"]});
        let slice: Slice =
            serde_json::from_value(json!({"metadata": metadata, "addressType": "IPv4"})).unwrap();
        let service: Service = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let export: Export = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        assert_eq!((export.labels().len(), export.finalizers().len()), (0, 0));
        [slice.metadata, service.metadata].map(|metadata| metadata.labels.unwrap_or_default().len())
    };
    let ours = || json!({label::MANAGED_BY: label::FREEPORT});
    assert_eq!(labelled(100, json!({})), [1, 1]);
    assert_eq!(labelled(100, ours()), [102, 102], "what is exported is written there");
    assert_eq!(labelled(5000, ours()), [2, 2], "somebody else labelled it as ours");
}
