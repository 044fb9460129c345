//! A member whose access is taken away while it lives is out at once, keeps what it imported, and may come back.

use std::time::Instant;

use e2e::{
    promised::{REVOKED, promised},
    seen::imported,
    waiting::{VOUCHED, eventually, within},
};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use serde_json::json;

use crate::cli::{
    clusters::SET,
    member_set::{AREA, MemberSet, alone},
    removal::{answered, reads, token},
    status,
};

const NS: &str = "revoke";
const REVOKE: &str = "revoke --clusterset demo --cluster-id east --leader-context leader";
const TOKEN: &str = "freeport-member-east-token";

#[e2e::test]
fn a_member_that_is_revoked_is_out_within_seconds_keeps_its_imports_and_may_join_again() {
    alone(async |set| {
        set.join("east").await;
        for (cluster, address) in [("leader", "10.1.0.1"), ("east", "10.2.0.1")] {
            set.cluster(cluster).create_namespace(NS).await;
            set.cluster(cluster).exported(NS, "web", &[address]).await;
        }
        set.cluster("west").create_namespace(NS).await;
        set.imports(NS, "web", &["east", "leader"], &SET).await;
        a_token_from_an_earlier_version_is_deleted(set).await;
        let (east, stolen) = (set.cluster("east"), token(set.cluster("east")).await);
        assert!(reads(set, &stolen).await, "the token is good");
        let before = imported(east, NS, "web").await.unwrap();

        set.clusters.freeport(REVOKE).await.misused(&["member \"east\" is alive", "--yes"]);
        set.clusters
            .freeport(&REVOKE.replace("east", "esat"))
            .await
            .refused(&["member \"esat\"", "known here: east, leader, west"]);
        assert!(reads(set, &stolen).await, "nothing was done");
        let line = format!("{REVOKE} --yes");
        an_account_of_another_tool_keeps_it_in(set, &line).await;
        let (ran, ()) = tokio::join!(set.clusters.freeport(&line), is_refused(set, &stolen));
        let said = ran.succeeded();
        assert!(
            said.contains("leader: deleted ServiceAccount clusterset-demo/freeport-member-east"),
            "{said}"
        );
        assert!(said.contains("leader: member \"east\" is out"), "{said}");

        set.imports(NS, "web", &["leader"], &["leader", "west"]).await;
        within(VOUCHED, "east says why it is out", || async {
            let ran = set.clusters.freeport("status --context east").await;
            let told = ran.stdout.contains("ClusterSet freeport-system/demo: Ready is False: TokenRefused");
            if told && ran.code == Some(1) { Ok(()) } else { Err(ran.to_string()) }
        })
        .await;
        let after = imported(east, NS, "web").await.unwrap();
        assert_eq!((&after.vip, &after.import_uid), (&before.vip, &before.import_uid), "the import stays");
        assert_eq!(
            after.endpoints.get("leader"),
            before.endpoints.get("leader"),
            "and what others have in it"
        );
        let again = set.clusters.freeport(REVOKE).await.succeeded();
        assert!(!again.contains("deleted") && !again.contains("changed"), "nothing is left to do: {again}");

        set.join("east").await;
        set.imports(NS, "web", &["east", "leader"], &SET).await;
        status::all_is_well(set).await;
        let last = imported(east, NS, "web").await.unwrap();
        assert_eq!((&last.vip, &last.import_uid), (&before.vip, &before.import_uid), "and stayed");
        for cluster in SET {
            set.cluster(cluster).release_namespace(NS).await;
        }
    });
}

/// Its account stays, and the command says so.
async fn an_account_of_another_tool_keeps_it_in(set: &MemberSet, line: &str) {
    let managed_by = async |tool: &str| {
        let label = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": tool}}});
        set.cluster("leader").patch::<ServiceAccount>(AREA, "freeport-member-east", &label).await;
    };
    managed_by("another").await;
    set.clusters.freeport(line).await.refused(&["member \"east\" is NOT out", "freeport-member-east"]);
    managed_by("freeport").await;
}

/// Waits until the token has no rights, then until no API server knows it.
async fn is_refused(set: &MemberSet, token: &str) {
    let begun = Instant::now();
    for (what, codes) in [("may do nothing", &[401, 403][..]), ("is unknown", &[401])] {
        eventually(&format!("the token {what}"), || async {
            let code = answered(set, token).await;
            if codes.contains(&code) { Ok(()) } else { Err(code.to_string()) }
        })
        .await;
        promised(&format!("revoked: the token {what}"), begun.elapsed(), REVOKED);
    }
}

/// The one that counts for ever is a problem until the member joins again.
async fn a_token_from_an_earlier_version_is_deleted(set: &MemberSet) {
    let lasting = json!({
        "metadata": {
            "name": TOKEN,
            "labels": {"app.kubernetes.io/managed-by": "freeport"},
            "annotations": {"kubernetes.io/service-account.name": "freeport-member-east"},
        },
        "type": "kubernetes.io/service-account-token",
    });
    let _: Secret = set.cluster("leader").create(AREA, lasting).await;
    let status = set.clusters.freeport("status --context leader").await;
    let delete = format!("kubectl -n {AREA} delete secret {TOKEN}");
    status.reported(1, &[&format!("problem: Secret {AREA}/{TOKEN}"), &delete]);
    let join = "join --clusterset demo --cluster-id east --context east --leader-context leader --external";
    let said = set.clusters.freeport(&format!("{join} {}", set.clusters.folder("east"))).await.succeeded();
    assert!(said.contains(&format!("leader: deleted Secret {AREA}/{TOKEN}")), "{said}");
    assert!(!said.contains("credential in Secret"), "it keeps the one that it has: {said}");
}
