//! A member that will not return is removed at the leader, and joins again when it returns all the same.

use api::report::ClusterReport;
use e2e::{
    cluster::Cluster,
    seen::{event, imported, not_imported},
    waiting::{VOUCHED, eventually, within},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::cli::{
    clusters::SET,
    member_set::{AREA, MemberSet, SYSTEM, alone},
    status,
};

const NS: &str = "removal";
/// Nobody else exports these.
const ALONE: [&str; 3] = ["alone-1", "alone-2", "alone-3"];
const REMOVE: &str = "leave --force --clusterset demo --cluster-id east --leader-context leader";

#[e2e::test]
fn r60_a_member_that_will_not_return_is_removed_and_may_join_again() {
    alone(async |set| {
        set.join("east").await;
        for (cluster, address) in [("leader", "10.1.0.1"), ("east", "10.2.0.1"), ("west", "10.3.0.1")] {
            set.cluster(cluster).create_namespace(NS).await;
            set.cluster(cluster).exported(NS, "web", &[address]).await;
        }
        for service in ALONE {
            set.cluster("east").exported(NS, service, &["10.2.0.2"]).await;
        }
        set.imports(NS, "web", &["east", "leader", "west"], &SET).await;
        alone_are_imported(set).await;
        status::all_is_well(set).await;
        let token = token(set.cluster("east")).await;
        assert!(reads(set, &token).await, "the token is good");

        mistyped(set).await;
        set.clusters
            .freeport(REMOVE)
            .await
            .misused(&["\"east\" is alive", "run `freeport leave` in that cluster"]);
        set.kill_member("east").await;
        status::names_the_silent_member(set).await;

        let west = set.cluster("west");
        let before = imported(west, NS, "web").await.unwrap();
        let said = set.clusters.freeport(REMOVE).await.succeeded();
        assert!(said.contains("leader: member \"east\" is removed from ClusterSet \"demo\""), "{said}");
        set.imports(NS, "web", &["leader", "west"], &["leader", "west"]).await;
        let after = imported(west, NS, "web").await.unwrap();
        assert_eq!((after.vip, after.import_uid), (before.vip, before.import_uid), "the import goes on");
        alone_are_gone(set).await;
        let report = set.cluster("leader").api::<ClusterReport>(AREA).get_opt("east").await.unwrap();
        assert_eq!(report, None, "it reports nothing any more; {said}");
        eventually("the token is refused", || async {
            if reads(set, &token).await { Err("it is taken") } else { Ok(()) }.map_err(str::to_owned)
        })
        .await;
        status::says_that_it_left(set).await;
        let again = set.clusters.freeport(REMOVE).await.succeeded();
        assert!(!again.contains("deleted") && !again.contains("changed"), "nothing is left to do: {again}");

        set.join("east").await;
        set.imports(NS, "web", &["east", "leader", "west"], &SET).await;
        alone_are_imported(set).await;
        status::all_is_well(set).await;
        cut_off(set).await;
        for cluster in SET {
            set.cluster(cluster).release_namespace(NS).await;
        }
    });
}

async fn alone_are_imported(set: &MemberSet) {
    for service in ALONE {
        eventually(service, || imported(set.cluster("west"), NS, service)).await;
    }
}

/// What a member exports that is removed goes, though it is much at once, and nobody takes that for a mistake of the leader's.
async fn alone_are_gone(set: &MemberSet) {
    let west = set.cluster("west");
    for service in ALONE {
        eventually(&format!("{service} is gone"), || not_imported(west, NS, service)).await;
    }
    assert!(event(west, SYSTEM, "demo", "MassWithdrawal").await.is_err());
}

/// A member that lives keeps what it imported until it leaves by itself.
async fn cut_off(set: &MemberSet) {
    let east = set.cluster("east");
    let before = imported(east, NS, "web").await.unwrap();
    let said = set.clusters.freeport(&format!("{REMOVE} --even-if-alive")).await.succeeded();
    assert!(said.contains("leader: deleted ServiceAccount"), "{said}");
    assert!(said.contains("leader: member \"east\" is removed from ClusterSet \"demo\""), "{said}");
    set.imports(NS, "web", &["leader", "west"], &["leader", "west"]).await;
    alone_are_gone(set).await;
    status::says_that_it_left(set).await;
    within(VOUCHED, "east is told that it is cut off", || async {
        let ran = set.clusters.freeport("status --context east").await;
        let told = ran.stdout.contains("ClusterSet freeport-system/demo: Ready is False: ");
        if told && ran.code == Some(1) { Ok(()) } else { Err(ran.to_string()) }
    })
    .await;
    let after = imported(east, NS, "web").await.unwrap();
    assert_eq!((&after.vip, &after.import_uid), (&before.vip, &before.import_uid), "the import stays");
    for other in ["leader", "west"] {
        // Its own part it may have lost: a watch that was open hears on.
        assert_eq!(after.endpoints.get(other), before.endpoints.get(other), "and what others have in it");
    }

    set.clusters.freeport("leave --force --context east").await.succeeded();
    assert_eq!(set.traces("east").await, [""; 0]);
    assert_eq!(not_imported(east, NS, "web").await, Ok(()));
    let again = set.clusters.freeport(REMOVE).await.succeeded();
    assert!(!again.contains("deleted") && !again.contains("changed"), "nothing is left to do: {again}");
    // At once: nobody holds the Lease that tells of the removal.
    set.join("east").await;
}

/// An ID of nobody is refused, and nothing tells of it afterwards.
async fn mistyped(set: &MemberSet) {
    let before = set.clusters.written_by_people("leader").await;
    for more in ["", " --even-if-alive", " --dry-run"] {
        let line = format!("{}{more}", REMOVE.replace("east", "esat"));
        set.clusters.freeport(&line).await.refused(&["member \"esat\"", "known here: east, leader, west"]);
    }
    assert_eq!(set.clusters.written_by_people("leader").await, before);
}

/// What proves `east` to the leader.
pub(super) async fn token(east: &Cluster) -> String {
    let secret = east.api::<Secret>(SYSTEM).get("freeport-leader-demo").await.unwrap();
    String::from_utf8(secret.data.unwrap()["token"].0.clone()).unwrap()
}

/// Whether the leader's API server takes the token. Any refusal but that of a stranger is a failure.
pub(super) async fn reads(set: &MemberSet, token: &str) -> bool {
    match answered(set, token).await {
        200 => true,
        401 => false,
        other => panic!("{other}"),
    }
}

/// What the leader's API server answers to who has this token and asks for what members read.
pub(super) async fn answered(set: &MemberSet, token: &str) -> u16 {
    let kubeconfig =
        Kubeconfig::read_from(set.clusters.world.real().fleet.cluster("leader").unwrap().kubeconfig())
            .unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.auth_info = serde_json::from_value(serde_json::json!({"token": token})).unwrap();
    config.proxy_url = None;
    let imports: Api<api::resource_import::ResourceImport> =
        Api::namespaced(Client::try_from(config).unwrap(), AREA);
    match imports.list(&kube::api::ListParams::default()).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
    }
}
