//! What is refused, in one clear line, with nothing written.

use api::cluster_set::ClusterSet;
use e2e::waiting::eventually;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::ResourceExt;
use serde_json::json;

use crate::cli::{
    member_set::{AREA, MemberSet, SYSTEM, alone},
    status,
};

#[e2e::test]
fn what_cannot_be_is_refused_in_one_line_and_writes_nothing() {
    alone(async |set| {
        let clusters = set.clusters;
        let dir = format!("{}/refused", clusters.folder("west"));
        let refused = async |line: &str, parts: &[&str]| {
            let said = clusters.freeport(&format!("{line} --external {dir}")).await.refused(parts);
            assert_eq!(said, "", "{line}");
        };
        let misused = async |line: &str, parts: &[&str]| {
            let said = clusters.freeport(&format!("{line} --external {dir}")).await.misused(parts);
            assert_eq!(said, "", "{line}");
        };
        let join = "join --leader-context leader --context west --clusterset";
        let before = [clusters.written_by_people("west").await, clusters.written_by_people("leader").await];

        // All other usage errors are unit tests of `cli`: args::refusals.
        misused(&format!("{join} demo --cluster-id West"), &["--cluster-id", "\"West\""]).await;
        refused(
            &format!("{join} none --cluster-id west"),
            &["leader: leads no ClusterSet \"none\"", "clusterset-demo", "freeport init"],
        )
        .await;
        refused(
            "join --clusterset demo --cluster-id west --context west --leader-context east",
            &["east: leads no ClusterSet \"demo\"", "freeport init"],
        )
        .await;
        let others = clusters.folder("leader");
        clusters
            .freeport(&format!("{join} demo --cluster-id west --external {others}"))
            .await
            .refused(&[".kubeconfig is for the daemon of another cluster", "a folder of its own"]);
        refused(&format!("{join} demo --cluster-id other"), &["clusterID \"west\"", "\"other\""]).await;
        refused(
            "join --clusterset demo --cluster-id other --context leader --leader-context leader",
            &["leads ClusterSet \"demo\" under the ID \"leader\"", "\"other\"", "--context"],
        )
        .await;
        refused(
            "init --clusterset second --cluster-id west --context west",
            &["already a member of ClusterSet \"demo\"", "--dedicated"],
        )
        .await;
        refused(
            "init --clusterset demo --cluster-id other --context leader",
            &["clusterID \"leader\"", "cannot be changed"],
        )
        .await;
        let after = [clusters.written_by_people("west").await, clusters.written_by_people("leader").await];
        assert_eq!(after, before);
        assert!(!std::path::Path::new(&dir).exists(), "no file either");

        let ran = clusters.freeport("depart").await;
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.starts_with("error: ") && ran.stdout.is_empty(), "{ran}");
    });
}

#[e2e::test]
fn an_id_belongs_to_who_got_it() {
    alone(async |set| {
        let clusters = set.clusters;
        let dir = format!("{}/refused", clusters.folder("east"));
        // Which cluster asks does not matter, as long as it belongs to no set.
        clusters.freeport("leave --context east --leader-context leader").await.succeeded();
        let join = format!(
            "join --clusterset demo --context east --leader-context leader --external {dir} --cluster-id"
        );
        clusters
            .freeport(&format!("{join} west"))
            .await
            .refused(&["\"west\" belongs to another cluster", "choose another --cluster-id"]);
        clusters
            .freeport(&format!("{join} leader"))
            .await
            .refused(&["\"leader\" is that of the leader's own cluster"]);
        taken_by_hand(set).await;
    });
}

/// A cluster that took another's ID and credential leaves, and what it took stays that one's.
async fn taken_by_hand(set: &MemberSet) {
    let (east, west) = (set.cluster("east"), set.cluster("west"));
    set.join("east").await;
    set.clusters.freeport("leave --context east --leader-context leader").await.succeeded();
    let credential = west.api::<Secret>(SYSTEM).get("freeport-leader-demo").await.unwrap();
    let secret = json!({"metadata": {"name": credential.name_any()}, "data": credential.data});
    let _: Secret = east.create(SYSTEM, secret).await;
    let of_west = west.api::<ClusterSet>(SYSTEM).get("demo").await.unwrap();
    let set_of_east = json!({"metadata": {"name": "demo"}, "spec": of_west.spec});
    let _: ClusterSet = east.create(SYSTEM, set_of_east).await;
    eventually("east is told that the ID is taken", || async {
        let ran = set.clusters.freeport("status --context east").await;
        if ran.stdout.contains("DuplicateClusterID") { Ok(()) } else { Err(ran.to_string()) }
    })
    .await;

    let left = set.clusters.freeport("leave --context east --leader-context leader").await.succeeded();
    assert!(left.contains("another cluster uses ID \"west\""), "{left}");
    assert!(!left.contains("next: ") && !left.contains("leader: deleted"), "{left}");
    // Not ours by its labels, so it is left where it is.
    east.delete::<Secret>(SYSTEM, "freeport-leader-demo").await;
    let access = set.cluster("leader").api::<ServiceAccount>(AREA);
    assert!(access.get_opt("freeport-member-west").await.unwrap().is_some(), "its access stays");
    set.join("east").await;
    status::all_is_well(set).await;
}
