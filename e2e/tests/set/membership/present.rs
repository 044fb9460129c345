//! Who is there, as both sides say it.

use std::time::Duration;

use api::{
    cluster_set::ClusterSetStatus,
    name::{LEADER_LEASE, member_lease},
};
use e2e::{
    cluster::Cluster,
    cluster_set::{ready, says, status},
    daemon::{End, LEADER},
    fixture::{AREA, SET, SYSTEM, alone},
    seen::event,
    waiting::{VOUCHED, always, eventually, within},
    world::PACE,
};
use k8s_openapi::{
    api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp,
};
use serde_json::json;

use super::traces::{CONNECTED, EAST};

/// Cluster IDs with the reason of their condition `Ready`.
fn clusters(status: &ClusterSetStatus) -> Vec<(&str, &str)> {
    let reason = |entry| ready(entry).and_then(|ready| ready.reason.as_deref()).unwrap_or_default();
    let entries = status.cluster_statuses.iter();
    entries.map(|e| (e.cluster_id.as_deref().unwrap_or_default(), reason(&e.conditions))).collect()
}

/// Waits until the ClusterSet says these clusters, all of them and in this order.
async fn shows(cluster: &Cluster, namespace: &str, want: &[(&str, &str)]) {
    // A Lease that is stale takes its time.
    within(VOUCHED, &format!("{} says {want:?}", cluster.name), || async {
        let status = status(cluster, namespace).await?;
        if clusters(&status) != want {
            return Err(format!("{status:?}"));
        }
        let connected = want.iter().filter(|(_, reason)| *reason == "Connected").count();
        // A member has no entry for itself, unless it leads, and counts itself.
        let itself = usize::from(want.iter().all(|(id, _)| *id != cluster.name));
        assert_eq!(status.total_clusters, i32::try_from(want.len() + itself).ok());
        assert_eq!(status.ready_clusters, i32::try_from(connected + itself).ok());
        Ok(())
    })
    .await;
}

#[e2e::test]
fn both_sides_say_who_is_there() {
    alone(async |world| {
        let leader = world.leader();
        let all = [("east", "Connected"), ("leader", "Connected"), ("west", "Connected")];
        let leader_says = async |said| eventually("the leader says", || says(leader, AREA, said)).await;
        shows(leader, AREA, &all).await;
        leader_says(("True", "Ready")).await;
        // The leader, a member too, once; and not oneself.
        shows(world.cluster("east"), SYSTEM, &[("leader", "Connected"), ("west", "Connected")]).await;
        let of_leader = [("leader", "Connected"), ("east", "Connected"), ("west", "Connected")];
        shows(leader, SYSTEM, &of_leader).await;

        world.end(EAST, End::Stop).await;
        let but_east = [("east", "Disconnected"), ("leader", "Connected"), ("west", "Connected")];
        shows(leader, AREA, &but_east).await;
        leader_says(("False", "SomeNotReady")).await;
        eventually("an Event says so", || event(leader, AREA, SET, "MemberDisconnected")).await;
        let of_east = async || {
            let members = status(leader, AREA).await?.cluster_statuses.into_iter();
            let east = members.filter(|member| member.cluster_id.as_deref() == Some("east"));
            Ok::<_, String>(east.flat_map(|member| member.conditions).collect::<Vec<_>>())
        };
        let said = of_east().await.unwrap();
        world.end(LEADER, End::Stop).await;
        world.start(LEADER).await;
        always("a restart of the leader says nothing new of it", || async {
            let now = of_east().await?;
            if now == said { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
        world.start(EAST).await;
        shows(leader, AREA, &all).await;
        leader_says(("True", "Ready")).await;
        eventually("an Event says so", || event(leader, AREA, SET, "MemberConnected")).await;
    });
}

#[e2e::test]
fn a_leader_that_is_silent_and_a_clock_that_is_wrong_are_warnings() {
    alone(async |world| {
        let east = world.cluster("east");
        world.end(LEADER, End::Stop).await;
        let silent = || says(east, SYSTEM, ("True", "LeaderSilent"));
        let message = within(VOUCHED, "the leader's daemon is missed", silent).await;
        assert!(message.contains(AREA), "{message}");
        // As another daemon with a wrong clock would write it.
        let renew = async || {
            let clock = Timestamp::now() + Duration::from_secs(300);
            let renewal = json!({"spec": {"renewTime": MicroTime(clock)}});
            world.leader().patch::<Lease>(AREA, LEADER_LEASE, &renewal).await;
        };
        renew().await;
        let message = within(VOUCHED, "two renewals that agree are believed", || async {
            // Closer ones do not count.
            tokio::time::sleep(PACE.renew()).await;
            renew().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            says(east, SYSTEM, ("True", "ClockSkew")).await
        })
        .await;
        assert!(message.contains(" s ahead"), "{message}");
        // It tells nothing of members, so that they watch each other's Leases.
        world.end("freeport-member-west", End::Stop).await;
        within(VOUCHED, "east misses west", || async {
            renew().await;
            let status = status(east, SYSTEM).await?;
            let misses = clusters(&status).contains(&("west", "Disconnected"));
            if misses { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
        world.start("freeport-member-west").await;
        world.launch(LEADER).await;
        world.member_says("east", CONNECTED).await;
    });
}

#[e2e::test]
fn an_id_that_is_taken_is_not_used_and_is_ours_again_when_its_holder_is_silent() {
    alone(async |world| {
        let other = json!({"spec": {"holderIdentity": "another-cluster/its-pod"}});
        world.leader().patch::<Lease>(AREA, &member_lease("east"), &other).await;
        let east = world.cluster("east");
        let taken = || says(east, SYSTEM, ("False", "DuplicateClusterID"));
        let message = within(VOUCHED, "another has the ID", taken).await;
        assert!(message.contains("another-cluster/its-pod"), "{message}");
        within(VOUCHED, "its holder is silent", || says(east, SYSTEM, CONNECTED)).await;
    });
}
