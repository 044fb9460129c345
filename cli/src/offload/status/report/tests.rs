//! An example, judged.

use serde_json::{Value, json};

use super::*;
use crate::offload::{
    status::pods::SpecsWritten,
    vanished::{Vanished, tests::example as example_of_vanished},
};

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
        written: SpecsWritten::default(),
        labelled: vec![],
        vanished: Vanished::default(),
        only: None,
        lacks: None,
        away: None,
    };
    report("west", &found)
}

#[test]
fn what_no_object_tells_is_said() {
    let mut found = Read {
        peers: read(json!([{"metadata": {"name": "east"}, "spec": {"outgoing": {}}}])),
        nodes: vec![],
        offloadings: read(json!([{"metadata": {"name": "offloading", "namespace": "shop"}, "spec": {}}])),
        twins: vec![],
        pods: vec![],
        written: SpecsWritten::default(),
        labelled: read(json!([{"metadata": {"name": "shop"}}, {"metadata": {"name": "left"}}])),
        vanished: Vanished::default(),
        only: None,
        lacks: None,
        away: Some("it has left".into()),
    };
    let [away, left] = &report("west", &found).problems[..] else { panic!() };
    assert_eq!(away, "it has left");
    assert!(left.starts_with("Namespace left has label liqo.io/scheduling-enabled=true"), "{left}");
    let away = found.away.take();
    found.vanished = example_of_vanished();
    let names = |found: &Read| -> Vec<String> {
        let problems = report("west", found).problems;
        problems.iter().map(|problem| problem.split(' ').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(names(&found), ["bar", "left", "web"], "of shop it is told");
    found.only = Some("web".into());
    assert_eq!(names(&found), ["web"]);
    (found.only, found.away) = (None, away);
    assert!(left.contains("freeport unoffload namespace left --yes"), "{left}");
    (found.lacks, found.away) = (Some("namespaceoffloadings.offloading.liqo.io".into()), None);
    found.offloadings.clear();
    let problems = report("west", &found).problems;
    assert!(problems.len() == 1 && problems[0].contains("join --offload"), "{problems:?}");
}

#[test]
fn a_namespace_that_cannot_be_offloaded_says_why() {
    let invalid = json!([{
        "metadata": {"name": "offloading", "namespace": "shop", "generation": 1}, "spec": {},
        "status": {
            "observedGeneration": 1, "offloadingPhase": "NoClusterSelected",
            "conditions": [said("Valid", "False", "NameTooLong")],
        },
    }]);
    let found = Read {
        peers: vec![],
        nodes: vec![],
        offloadings: read(invalid),
        twins: vec![],
        pods: vec![],
        written: SpecsWritten::default(),
        labelled: vec![],
        vanished: Vanished::default(),
        only: None,
        lacks: None,
        away: None,
    };
    let report = report("west", &found);
    let text = crate::offload::status::text(&report);
    assert!(text.contains("    nothing is offloaded: False: NameTooLong: says NameTooLong\n"), "{text}");
    assert!(!text.contains("placed wrongly") && !report.is_well(), "{text}");
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
