//! Where offloading is set up.

use api::offload::view::NamespaceOffloadingView;

use super::*;
use crate::{
    objects::offload::{self, webhook},
    offload::{unmapped::Unmapped, vanished::Vanished},
    status::found::{OFFLOADED, Offloading},
};

fn offloading() -> Offloading {
    let peer = Entry { namespace: String::new(), ..entry("east", vec![says("Ready", "True", "Ready", "")]) };
    let shop = vec![says(OFFLOADED, "True", "Ready", ""), says("PlacementEnforced", "True", "Enforced", "")];
    Offloading {
        policy: Ok(offload::policy().map(Some)),
        checks: offload::checks().map(|check| Some(Ok(check.map(Some)))).into(),
        peers: Ok(vec![peer]),
        namespaces: Ok(vec![entry("offloading", shop)]),
        vanished: Vanished::default(),
        unmapped: vec![],
        twins_here: Ok(vec![("east".into(), "blog-east".into())]),
        twins_elsewhere: vec![("east".into(), "shop".into())],
        placed: Ok(vec!["shop".into()]),
        webhook: Ok(Some(webhook::configuration(None))),
        server: Some(Ok(Some(deployment(2, 2)))),
    }
}

fn judged(change: impl FnOnce(&mut Offloading)) -> crate::status::report::Report {
    let mut offloading = offloading();
    change(&mut offloading);
    report(&Found { offloading: Some(offloading), ..good() }, now())
}

#[test]
fn a_check_that_is_off_is_a_note_and_no_problem() {
    let report = judged(|offloading| {
        let Some(Some(Ok([_, binding]))) = offloading.checks.first_mut() else { panic!("{offloading:?}") };
        *binding = None;
    });
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.notes.iter().any(|note| note.contains("freeport-offload-content")), "{:?}", report.notes);
}

#[test]
fn all_is_well_where_peers_and_namespaces_are() {
    let well = judged(|_| {});
    assert!(well.is_well() && well.notes.is_empty(), "{:?} {:?}", well.problems, well.notes);
    assert_eq!(well.namespace_offloadings.as_ref().map(|tally| (tally.total, tally.troubled)), Some((1, 0)));
    assert!(text(&well).contains("OffloadPeers: 1"), "{}", text(&well));
}

#[test]
fn what_is_missing_is_said_with_the_words_of_the_daemon() {
    let peer = judged(|found| {
        found.peers.as_mut().unwrap()[0].conditions =
            vec![says("Ready", "False", "NotOffered", "east offers nothing")];
    });
    assert_eq!(peer.problems.len(), 1, "{:?}", peer.problems);
    assert_eq!(peer.problems[0].place, "OffloadPeer east");
    assert_eq!(peer.problems[0].what, "Ready is False: NotOffered: east offers nothing");
    assert_eq!(peer.problems[0].next, "kubectl describe offloadpeer east");

    let shop = judged(|found| {
        found.namespaces.as_mut().unwrap()[0].conditions[0] =
            says(OFFLOADED, "False", "AllFailed", "east: no");
    });
    assert_eq!(shop.problems[0].place, "NamespaceOffloading shop/offloading");
    assert_eq!(shop.problems[0].what, "Offloaded is False: AllFailed: east: no");
    let refused = judged(|found| {
        let conditions = &mut found.namespaces.as_mut().unwrap()[0].conditions;
        conditions.push(says("PodsAccepted", "False", "PodsRefused", "Pod web-1 is refused"));
    });
    assert!(
        refused.problems[0].what.ends_with("PodsRefused: Pod web-1 is refused"),
        "{:?}",
        refused.problems
    );
    let refused = judged(|found| {
        let conditions = &mut found.peers.as_mut().unwrap()[0].conditions;
        conditions[0] = says("Ready", "Unknown", "Pending", "the offer is not written yet");
        conditions.push(says("WritesAccepted", "False", "Refused", "refuses to create OffloadOffer"));
    });
    assert!(refused.problems[0].what.ends_with("refuses to create OffloadOffer"), "{:?}", refused.problems);
    assert!(refused.problems[0].next.contains("within a minute"), "{:?}", refused.problems);
    let open = judged(|found| found.policy = Ok([None, None]));
    assert!(open.problems[0].what.contains("can delete every Namespace"), "{:?}", open.problems);
}

#[test]
fn what_a_host_refuses_to_delete_is_said_in_its_words() {
    let ready = json!({"type": "Ready", "status": "False", "reason": "Terminating",
        "message": "shop-west: DeletionRefused: not this one", "lastTransitionTime": "2026-11-01T12:00:00Z"});
    let status = json!({"offloadingPhase": "Terminating", "remoteNamespacesConditions": {"east": [ready]}});
    let metadata = json!({"name": "offloading", "namespace": "shop"});
    let view: NamespaceOffloadingView =
        serde_json::from_value(json!({"metadata": metadata, "spec": {}, "status": status})).unwrap();
    let refused = judged(|found| found.namespaces = Ok(vec![view.into()]));
    let [problem] = refused.problems.as_slice() else { panic!("{:?}", refused.problems) };
    assert!(problem.what.ends_with("refuses to delete Namespace shop-west: not this one"), "{problem:?}");
    assert!(problem.what.starts_with("Offloaded is False: DeletionRefused: "), "{problem:?}");
    assert!(problem.next.starts_with("in that cluster, change the policy"), "{problem:?}");
}

#[test]
fn a_twin_that_no_map_names_is_a_problem() {
    let peer =
        json!({"metadata": {"name": "west"}, "spec": {}, "status": {"unmappedTwins": {"evil-west": "evil"}}});
    let left = judged(|found| found.unmapped = Unmapped::all(&[serde_json::from_value(peer).unwrap()]));
    assert_eq!(left.problems.len(), 1, "{:?}", left.problems);
    assert_eq!(left.problems[0].place, "Namespace evil-west");
}

#[test]
fn a_peer_that_vanished_is_a_problem_where_namespaces_are_offloaded() {
    let lost = judged(|found| found.peers.as_mut().unwrap().clear());
    assert_eq!(lost.problems.len(), 2, "{:?}", lost.problems);
    let said = |nth: usize| (lost.problems[nth].place.as_str(), lost.problems[nth].what.as_str());
    assert!(said(0).0 == "OffloadPeer east" && said(0).1.contains("(blog-east)"), "{:?}", said(0));
    assert!(lost.problems[0].next.starts_with("freeport offload accept east"), "{:?}", lost.problems);
    assert!(said(1).1.contains("(shop)") && lost.problems[1].next.starts_with("freeport offload use east"));
}

#[test]
fn a_namespace_whose_offloading_vanished_is_a_problem() {
    let lost = judged(|found| found.placed.as_mut().unwrap().push("lost".into()));
    assert_eq!(lost.problems.len(), 1, "{:?}", lost.problems);
    assert_eq!(lost.problems[0].place, "Namespace lost");
    assert!(lost.problems[0].next.contains("freeport offload namespace lost"), "{:?}", lost.problems);
    let peer = json!({"metadata": {"name": "east"}, "spec": {}, "status": {"lostOffloadings": {"shop": "x", "web": "web"}}});
    let twins =
        judged(|found| found.vanished = Vanished::new(None, &[serde_json::from_value(peer).unwrap()]));
    assert_eq!(twins.problems.len(), 1, "of shop it is told: {:?}", twins.problems);
    assert!(twins.problems[0].what.contains("twin web in east"), "{:?}", twins.problems);
}

#[test]
fn a_webhook_that_may_be_passed_by_is_a_note() {
    let ignored = judged(|found| {
        let there = found.webhook.as_mut().unwrap().as_mut().unwrap();
        there.body["webhooks"][0]["failurePolicy"] = json!("Ignore");
    });
    assert!(ignored.is_well() && ignored.notes[0].contains("failurePolicy Ignore"), "{:?}", ignored.notes);
}

#[test]
fn a_kind_that_is_gone_and_a_webhook_whose_rollout_hangs_are_problems() {
    let gone = judged(|found| found.peers = Err(Gap { part: "offloadpeers".into(), why: Why::NoCrd }));
    assert_eq!(gone.problems[0].place, "offloadpeers");
    assert!(gone.problems[0].next.contains("freeport join --offload"), "{:?}", gone.problems);

    let hangs = json!({"type": "Progressing", "status": "False", "message": "ReplicaSet x has timed out progressing."});
    let stuck = judged(|found| {
        let mut there = deployment(2, 2);
        there.status.as_mut().unwrap().conditions = serde_json::from_value(json!([hangs])).unwrap();
        found.server = Some(Ok(Some(there)));
    });
    assert_eq!(stuck.problems[0].place, "Deployment freeport-system/freeport-webhook");
    assert!(stuck.problems[0].what.contains("timed out progressing"), "{:?}", stuck.problems);
}

#[test]
fn a_leader_says_which_kinds_of_records_it_has_lost() {
    let found = Found { lost_records: Ok(vec!["namespacemaps.offloading.liqo.io".into()]), ..good() };
    let report = report(&found, now());
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(report.problems[0].place, "CustomResourceDefinition namespacemaps.offloading.liqo.io");
    assert!(report.problems[0].next.contains("freeport init --offload"), "{:?}", report.problems);
}
