//! Leaving without the leader, with and without the member's daemon; and coming back.

use e2e::{seen::not_imported, waiting::eventually};
use fleet::Component;
use k8s_openapi::api::{core::v1::Service, events::v1::Event};
use kube::api::ListParams;

use crate::cli::{
    clusters::SET,
    member_set::{MemberSet, SYSTEM, alone},
};

const NS: &str = "force";
/// All clusters, in the order of their names.
const EXPORTERS: [&str; 3] = ["east", "leader", "west"];

#[e2e::test]
fn without_the_leader_a_member_leaves_by_force_and_comes_back() {
    alone(async |set| {
        let hub = set.clusters.world.real().fleet.cluster("leader").unwrap();
        set.join("east").await;
        for (cluster, address) in [("leader", "10.1.0.1"), ("east", "10.2.0.1"), ("west", "10.3.0.1")] {
            set.cluster(cluster).create_namespace(NS).await;
            set.cluster(cluster).exported(NS, "web", &[address]).await;
        }
        set.imports(NS, "web", &EXPORTERS, &SET).await;

        set.stop_member("west").await;
        hub.kill(Component::ApiServer).await.unwrap();
        // One with its daemon, one without.
        tokio::join!(leaves(set, "east", false), leaves(set, "west", true));

        hub.start(Component::ApiServer).await.unwrap();
        // The ID is still its own, though its daemon is down.
        let other =
            "join --clusterset demo --cluster-id west --context east --leader-context leader --external";
        let other = set.clusters.freeport(&format!("{other} {}", set.clusters.folder("leader"))).await;
        other.refused(&[
            "\"west\" belongs to another cluster",
            "freeport leave --force",
            "--cluster-id west",
        ]);
        for cluster in ["east", "west"] {
            set.join(cluster).await;
        }
        set.imports(NS, "web", &EXPORTERS, &SET).await;
        for cluster in SET {
            set.cluster(cluster).release_namespace(NS).await;
        }
    });
}

async fn leaves(set: &MemberSet, cluster: &str, alone: bool) {
    let here = set.cluster(cluster);
    let web = here.api::<Service>(NS).get("web").await.unwrap();
    let said = set.clusters.freeport(&format!("leave --force --context {cluster}")).await.succeeded();
    assert_eq!(said.contains("removing its imports in its place"), alone, "{said}");
    let next = format!(
        "the leader's administrator runs: freeport leave --force --clusterset demo --cluster-id {cluster} --leader-context"
    );
    assert!(said.contains(&format!("next: {next}")), "{said}");
    if !alone {
        eventually("the daemon says it as well", || async {
            let events = here.api::<Event>(SYSTEM).list(&ListParams::default()).await.unwrap();
            let notes: Vec<_> = events.into_iter().filter_map(|event| event.note).collect();
            if notes.iter().any(|note| note.contains(&next)) { Ok(()) } else { Err(format!("{notes:?}")) }
        })
        .await;
    }
    assert_eq!(set.traces(cluster).await, [""; 0], "{said}");
    eventually("nothing imported is left", || not_imported(here, NS, "web")).await;
    assert_eq!(here.api::<Service>(NS).get("web").await.unwrap(), web, "the user's own stays as it is");
    let again = set.clusters.freeport(&format!("leave --force --context {cluster}")).await.succeeded();
    assert!(again.contains("not a member"), "{again}");
}
