//! No object stops a list (issue 14, A1), whatever its author writes into it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::offload::pod::view::{BoundPod, OwnShadowPod};

/// Fields of NamespaceMaps, offers and ShadowPods.
const FIELDS: &[&str] = &[
    "origin",
    "destination",
    "desiredMapping",
    "currentMapping",
    "remoteNamespace",
    "phase",
    "reason",
    "message",
    "host",
    "home",
    "publicKey",
    "resources",
    "nodeLabels",
    "sealed",
    "uid",
    "name",
    "namespace",
    "deletion",
    "deleted",
    "pod",
    "containerStatuses",
    "state",
    "terminated",
    "finishedAt",
    "conditions",
    "lastTransitionTime",
    "podIPs",
    "startTime",
];

const TIME: &str = "9999-12-31T23:59:59Z";

fn node() -> Value {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "A", "message": "b", "lastHeartbeatTime": TIME, "lastTransitionTime": TIME,
    });
    json!({
        "spec": {"unschedulable": true, "taints": [{"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": TIME}]},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}, "conditions": [condition]},
    })
}

fn pod() -> Value {
    let waiting = json!({"waiting": {"reason": "A", "message": "b"}});
    let terminated =
        json!({"terminated": {"exitCode": 1, "signal": 2, "startedAt": TIME, "finishedAt": TIME}});
    let status = json!({
        "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 1, "started": true,
        "state": waiting, "lastState": terminated,
    });
    let requests = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1"}});
    let container = json!({"name": "c", "image": "i", "resources": requests, "restartPolicy": "Always"});
    let condition =
        json!({"type": "Ready", "status": "True", "lastProbeTime": TIME, "lastTransitionTime": TIME});
    json!({
        "spec": {"containers": [container], "initContainers": [container], "overhead": {"cpu": "1"}, "nodeName": "n"},
        "status": {
            "phase": "Running", "conditions": [condition], "containerStatuses": [status], "hostIP": "10.0.0.1",
            "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "startTime": TIME, "reason": "A", "message": "b",
        },
    })
}

proptest! {
    #[test]
    fn a1_no_record_stops_a_list(odd in odd::anything(FIELDS)) {
        odd::everywhere::<OwnMap>(&odd).unwrap();
        odd::everywhere::<PeerMap>(&odd).unwrap();
        odd::everywhere::<OwnOffer>(&odd).unwrap();
        odd::everywhere::<PeerOffer>(&odd).unwrap();
        odd::everywhere::<OwnShadowPod>(&odd).unwrap();
        odd::everywhere::<PeerPod>(&odd).unwrap();
    }

    #[test]
    fn a1_no_node_stops_a_list(odd in odd::like(&node(), &[])) {
        odd::list::<VirtualNode>(&odd).unwrap();
    }

    #[test]
    fn a1_no_pod_stops_a_list(odd in odd::like(&pod(), &[])) {
        odd::list::<HostedPod>(&odd).unwrap();
        odd::list::<BoundPod>(&odd).unwrap();
    }
}

#[test]
fn labels_of_what_others_write_take_no_memory() {
    let labels: std::collections::BTreeMap<_, _> = (0..1000).map(|n| (format!("l{n}"), "")).collect();
    let metadata = json!({"name": "r", "uid": "u", "labels": labels, "annotations": labels, "finalizers": ["example.com/x"]});
    let record = json!({"metadata": metadata}).to_string();
    let want = ObjectMeta { name: Some("r".into()), uid: Some("u".into()), ..ObjectMeta::default() };
    assert_eq!(serde_json::from_str::<PeerPod>(&record).unwrap().metadata, want);
    assert_eq!(serde_json::from_str::<PeerMap>(&record).unwrap().metadata, want);
    assert_eq!(serde_json::from_str::<PeerOffer>(&record).unwrap().metadata, want);
}
