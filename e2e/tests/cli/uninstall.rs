//! Taking a leader out of its cluster: what remains is what was there before.

use e2e::{schedule::Place, shared::with_own, waiting::eventually};

use crate::cli::{clusters::Clusters, contents::Contents};

const PLACE: Place = Place { name: "cli-uninstall", planes: 1, copies: 1 };
const INIT: &str = "init --clusterset on --cluster-id no --context hub --offload --no-wait";

/// Whatever is deleted first. What another deletion took along is not found.
const ORDER: [&str; 7] = [
    "namespace,flowschema clusterset-on",
    "-f MANIFESTS/offload.yaml",
    "-f MANIFESTS/leader.yaml",
    "-f MANIFESTS/member.yaml",
    "-f MANIFESTS/crds-leader.yaml",
    "-f MANIFESTS/crds-member.yaml",
    "-f MANIFESTS/offload-leader.yaml",
];

/// `hub` leads and belongs to its own set. It leaves that, and is as it was before, in each order of deleting.
#[e2e::test]
fn a_leader_that_is_uninstalled_leaves_no_trace() {
    with_own(PLACE, Clusters::up(PLACE.name, &["hub"]), async |clusters| {
        let before = Contents::at_rest(clusters, "hub").await;
        leaves_no_trace(clusters, &before).await;
    });
}

async fn leaves_no_trace(clusters: &Clusters, before: &Contents) {
    let mut order = ORDER;
    for _ in 0..2 {
        clusters.freeport(INIT).await.succeeded();
        let left = clusters.freeport("leave --context hub --leader-context hub").await.succeeded();
        assert!(left.contains("hub: deleted ClusterSet freeport-system/on"), "{left}");
        for what in order {
            let what = what.replace("MANIFESTS", concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests"));
            let line = format!("--context hub delete --ignore-not-found {what}");
            clusters.kubectl(&line).await.succeeded();
        }
        eventually(&format!("all is as it was, after deleting {order:?}"), || async {
            Contents::of(clusters, "hub").await?.same_as(before)
        })
        .await;
        order.reverse();
    }
    let ran = clusters.freeport("status --context hub").await;
    ran.reported(1, &["neither leads nor belongs to a ClusterSet"]);
}
