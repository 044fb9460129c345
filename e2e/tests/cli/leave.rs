//! Leaving, and taking Freeport out of the cluster: what remains is what was there before.

use api::mcs::ServiceImport;
use e2e::{
    forbidden::{NOT_THIS_ONE, forbid_daemons, permit},
    seen::{imported, not_imported, says},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use kube::ResourceExt;
use serde_json::json;

use crate::cli::{
    contents::Contents,
    member_set::{AREA, MemberSet, SHOP, SYSTEM, alone},
};

const MEMBER: &str = "member.yaml";
const CRDS: &str = "crds-member.yaml";

#[e2e::test]
fn who_leaves_and_uninstalls_has_what_was_there_before() {
    alone(async |set| {
        others_have_their_part(set).await;
        // Nobody is told which to delete first.
        for order in [[MEMBER, CRDS], [CRDS, MEMBER]] {
            both_ways(set).await;
            leave(set).await;
            uninstall(set, order).await;
            set.clusters
                .freeport("status --context east")
                .await
                .reported(1, &["freeport init", "freeport join"]);
        }
        for cluster in ["leader", "west"] {
            set.cluster(cluster).release_namespace(SHOP).await;
        }
    });
}

#[e2e::test]
fn who_left_without_the_leader_is_forgotten_there_later() {
    alone(async |set| {
        set.join("east").await;
        let (clusters, leader) = (set.clusters, set.cluster("leader"));
        let written =
            async || (clusters.written_by_people("east").await, clusters.written_by_people("leader").await);
        let before = written().await;
        let wrong = clusters.freeport("leave --context east --leader-context west").await;
        assert_eq!(wrong.refused(&["west: leads no ClusterSet \"demo\""]), "");
        assert_eq!(written().await, before, "who is asked the wrong way writes nothing");

        let said = clusters.freeport("leave --context east").await.succeeded();
        let next = "next: the leader's administrator runs: freeport leave --force --clusterset demo --cluster-id east";
        assert!(said.contains(next) && !said.contains("leader: "), "{said}");
        assert_eq!(set.traces("east").await, [""; 0], "{said}");
        let account = async || {
            leader.api::<ServiceAccount>(AREA).get_opt("freeport-member-east").await.unwrap().is_some()
        };
        assert!(account().await, "nobody had the right to delete it");

        let again = clusters.freeport("leave --context east --leader-context leader").await.succeeded();
        assert!(again.contains("east: not a member"), "{again}");
        assert!(
            again.contains(&format!("leader: deleted ServiceAccount {AREA}/freeport-member-east")),
            "{again}"
        );
        assert!(!account().await, "{again}");
        let said = Contents::of(clusters, "leader").await.unwrap().saying("freeport-member-east", AREA);
        assert_eq!(said, [""; 0]);
    });
}

/// Issue 38, 4.
#[e2e::test]
fn what_an_api_server_refuses_to_a_member_that_leaves_is_said_and_leaving_goes_on_when_it_is_accepted() {
    alone(async |set| {
        set.join("east").await;
        let (east, west) = (set.cluster("east"), set.cluster("west"));
        west.create_namespace(SHOP).await;
        west.exported(SHOP, "kept", &["10.9.0.1"]).await;
        eventually("east imports it", || imported(east, SHOP, "kept")).await;
        let refused = "variables.name == 'antrea-mc-kept' && request.operation == 'DELETE'";
        forbid_daemons(east, SHOP, "nobody-deletes", refused).await;
        let leave = "leave --context east --leader-context leader";
        let said = set.clusters.freeport(&format!("{leave} --timeout 10m")).await;
        assert!(!said.stderr.contains("timed out"), "it ends with what is refused: {said}");
        said.refused(&["refuses to delete Service shop/antrea-mc-kept", NOT_THIS_ONE, "run this again"]);
        permit(east, "nobody-deletes").await;
        set.clusters.freeport(leave).await.succeeded();
        eventually("it is gone", || not_imported(east, SHOP, "kept")).await;
        west.release_namespace(SHOP).await;
    });
}

#[e2e::test]
fn r1_r2_an_id_of_two_labels_serves_and_another_id_is_another_member() {
    alone(async |set| {
        let leave = "leave --context east --leader-context leader";
        set.clusters.freeport(leave).await.succeeded();
        set.cluster("west").create_namespace(SHOP).await;
        set.join_as("east", "eu.east").await;
        let east = set.cluster("east");
        east.export(SHOP, "web").await;
        set.imports(SHOP, "web", &["eu.east"], &["east", "west"]).await;
        eventually("Ready", || says(east, (SHOP, "web"), "Ready", "True", "Exported")).await;
        set.clusters.freeport(leave).await.succeeded();
        eventually("gone from west", || not_imported(set.cluster("west"), SHOP, "web")).await;
        set.join("east").await;
        set.imports(SHOP, "web", &["east"], &["east", "west"]).await;
        eventually("nothing tells of who it was", || async {
            let said = Contents::of(set.clusters, "leader").await?.saying("eu.east", AREA);
            if said.is_empty() { Ok(()) } else { Err(said.join("\n")) }
        })
        .await;
        east.unexport(SHOP, "web").await;
        eventually("gone from west", || not_imported(set.cluster("west"), SHOP, "web")).await;
        set.clusters.freeport(leave).await.succeeded();
        set.cluster("west").release_namespace(SHOP).await;
    });
}

/// `web` in all three clusters, besides `west`'s own `db`.
async fn others_have_their_part(set: &MemberSet) {
    for cluster in ["leader", "west"] {
        set.cluster(cluster).create_namespace(SHOP).await;
    }
    set.cluster("west").exported(SHOP, "web", &["10.3.0.1"]).await;
    set.cluster("west").exported(SHOP, "db", &["10.3.0.2"]).await;
}

/// `east` joins, exports `web` as `west` does and `api` alone, and imports.
async fn both_ways(set: &MemberSet) {
    set.join("east").await;
    let east = set.cluster("east");
    east.export(SHOP, "web").await;
    east.export(SHOP, "labelled").await;
    // Somebody else's, which no user of a Namespace could write: whoever may write their status may.
    let _: ServiceImport = east
        .create(
            SHOP,
            json!({"metadata": {"name": "theirs"}, "spec": {"type": "ClusterSetIP", "ips": [], "ports": []}}),
        )
        .await;
    set.imports(SHOP, "web", &["east", "west"], &["leader", "west", "east"]).await;
    set.imports(SHOP, "db", &["west"], &["leader", "east"]).await;
    for cluster in ["leader", "west"] {
        eventually(&format!("labelled in {cluster}"), || imported(set.cluster(cluster), SHOP, "labelled"))
            .await;
    }
}

async fn leave(set: &MemberSet) {
    let (clusters, east, west) = (set.clusters, set.cluster("east"), set.cluster("west"));
    let service = async || west.api::<Service>(SHOP).get("antrea-mc-web").await.unwrap();
    let (before, db) = (service().await, imported(west, SHOP, "db").await.unwrap());
    let dry = "leave --context east --leader-context leader --dry-run";
    let written = (clusters.written_by_people("east").await, clusters.written_by_people("leader").await);
    let would = clusters.freeport(dry).await.succeeded();
    assert!(would.contains(&format!("east: would delete ClusterSet {SYSTEM}/demo")), "{would}");
    let now = (clusters.written_by_people("east").await, clusters.written_by_people("leader").await);
    assert_eq!(now, written, "a dry run writes nothing");

    let said = clusters.freeport("leave --context east --leader-context leader").await.succeeded();
    assert!(said.contains(&format!("east: deleted ClusterSet {SYSTEM}/demo")), "{said}");
    assert!(said.contains(&format!("leader: deleted ServiceAccount {AREA}/freeport-member-east")), "{said}");

    assert_eq!(set.traces("east").await, [""; 0], "nothing of the membership is in east; it said:\n{said}");
    for service in ["web", "db"] {
        assert_eq!(not_imported(east, SHOP, service).await, Ok(()));
    }
    let theirs = east.api::<ServiceImport>(SHOP).get_opt("theirs").await.unwrap();
    assert!(theirs.is_some(), "another implementation's stays");

    set.imports(SHOP, "web", &["west"], &["leader", "west"]).await;
    let after = service().await;
    assert_eq!((after.uid(), after.spec), (before.uid(), before.spec), "the import goes on in west");
    assert_eq!(imported(west, SHOP, "db").await, Ok(db), "and what east had no part in is as it was");
    for cluster in ["leader", "west"] {
        eventually(&format!("labelled is gone from {cluster}"), || {
            not_imported(set.cluster(cluster), SHOP, "labelled")
        })
        .await;
    }
    eventually("nothing in the Common Area tells of east", || async {
        let said = Contents::of(clusters, "leader").await?.saying("east", AREA);
        if said.is_empty() { Ok(()) } else { Err(said.join("\n")) }
    })
    .await;
    let again = clusters.freeport("leave --context east --leader-context leader").await.succeeded();
    assert!(again.contains("not a member"), "{again}");
}

async fn uninstall(set: &MemberSet, order: [&str; 2]) {
    set.stop_member("east").await;
    let manifests = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests");
    for file in order {
        let line = format!("--context east delete -f {manifests}/{file} --ignore-not-found");
        set.clusters.kubectl(&line).await.succeeded();
    }
    eventually(&format!("all is as it was, after deleting {order:?}"), || async {
        Contents::of(set.clusters, "east").await?.same_as(&set.before)
    })
    .await;
}
