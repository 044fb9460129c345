//! Taking a leader out of its cluster: what remains is what was there before.

use e2e::waiting::eventually;

use crate::cli::{clusters::Clusters, contents::Contents};

/// Whatever is deleted first. What another deletion took along is not found.
const ORDER: [&str; 7] = [
    "namespace,flowschema clusterset-on clusterset-demo",
    "-f MANIFESTS/offload.yaml",
    "-f MANIFESTS/leader.yaml",
    "-f MANIFESTS/member.yaml",
    "-f MANIFESTS/crds-leader.yaml",
    "-f MANIFESTS/crds-member.yaml",
    "-f MANIFESTS/offload-leader.yaml",
];

/// `hub` leads, by `init`, and belongs to its own set. It leaves that, and is as it was `before`, in each order of deleting.
pub(crate) async fn the_leader_leaves_no_trace(clusters: &Clusters, init: &str, before: &Contents) {
    let mut order = ORDER;
    for _ in 0..2 {
        clusters.freeport(&format!("{init} --no-wait")).await.succeeded();
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
