//! An example, judged.

use serde_json::{Value, json};

use super::*;

fn said(type_: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": format!("says {reason}"),
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn read<T: serde::de::DeserializeOwned>(objects: Value) -> Vec<T> {
    serde_json::from_value(objects).unwrap()
}

/// Home of `shop`, which `east` refuses, and host of `web` of `north`.
pub(in super::super) fn example() -> OffloadReport {
    let labels =
        |cluster: &str| json!({"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": cluster});
    let found = Read {
        peers: read(json!([
            {"metadata": {"name": "east"}, "spec": {"outgoing": {}}, "status": {"conditions": [said("Ready", "True", "Ready")]}},
            {"metadata": {"name": "north"}, "spec": {"incoming": {}}},
        ])),
        nodes: read(json!([{
            "metadata": {"name": "freeport-east", "labels": labels("east")},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "m"}]},
        }])),
        offloadings: read(json!([{
            "metadata": {"name": "offloading", "namespace": "shop", "generation": 1},
            "spec": {"podOffloadingStrategy": "Remote"},
            "status": {
                "observedGeneration": 1, "offloadingPhase": "AllFailed", "remoteNamespaceName": "shop-west",
                "conditions": [said("PlacementEnforced", "True", "Enforced")],
                "remoteNamespacesConditions": {
                    "east": [said("OffloadingRequired", "True", "X"), said("Ready", "False", "CreationLoopBackOff")],
                    "south": [said("OffloadingRequired", "False", "ClusterNotSelected")],
                },
            },
        }])),
        twins: read(json!([{"metadata": {
            "name": "web-north", "labels": labels("north"), "annotations": {"liqo.io/original-name": "web"},
        }}])),
        pods: read(
            json!([{"metadata": {"name": "web-1", "namespace": "shop"}, "spec": {"nodeName": "worker"}}]),
        ),
    };
    report("west", &found)
}

#[test]
fn it_says_who_refuses_what_and_which_pods_are_older() {
    let report = example();
    let [shop] = report.namespaces.as_slice() else { panic!("{report:?}") };
    assert_eq!(shop.clusters.keys().collect::<Vec<_>>(), ["east"], "the others have nothing to do with it");
    assert_eq!(shop.clusters["east"].message, "says CreationLoopBackOff");
    assert_eq!(shop.older_pods, ["web-1"]);
    assert_eq!(report.peers[1].ready, Said::nothing());
    assert_eq!((report.twins[0].home.as_str(), report.twins[0].original.as_str()), ("north", "web"));
    assert!(!report.is_well());
}

#[test]
fn all_is_well_if_nobody_says_otherwise() {
    let mut report = example();
    report.peers.remove(1);
    report.namespaces[0].phase = "Ready".into();
    assert!(report.is_well());
    report.nodes[0].ready.status = "Unknown".into();
    assert!(!report.is_well());
    assert!(OffloadReport::default().is_well());
}
