//! Who is there, as both sides say it.

use api::cluster_set::{ClusterSetStatus, READY};
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use serde_json::json;

use crate::fixture::{AREA, SET, SYSTEM, alone, eventually};

/// Cluster IDs with the reason of their condition `Ready`.
fn clusters(status: &ClusterSetStatus) -> Vec<(String, String)> {
    let reason = |conditions: &[api::condition::AntreaCondition]| {
        let ready = conditions.iter().find(|c| c.type_.as_deref() == Some(READY));
        ready.and_then(|c| c.reason.clone()).unwrap_or_default()
    };
    let entries = status.cluster_statuses.iter();
    entries.map(|e| (e.cluster_id.clone().unwrap_or_default(), reason(&e.conditions))).collect()
}

fn are(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(cluster, reason)| ((*cluster).to_owned(), (*reason).to_owned())).collect()
}

#[test]
fn both_sides_say_who_is_there() {
    alone(async |world| {
        let shows = async |want: &[(&str, &str)], reason: &str| {
            eventually(&format!("the leader says {want:?}"), async || {
                let status = world.leader.set_status(AREA).await?;
                let overall = status.conditions.first().and_then(|c| c.reason.clone());
                if clusters(&status) == are(want) && overall.as_deref() == Some(reason) {
                    assert_eq!(status.total_clusters, i32::try_from(want.len()).ok());
                    return Ok(());
                }
                Err(format!("{status:?}"))
            })
            .await;
        };
        shows(&[("east", "Connected"), ("leader", "Connected")], "Ready").await;
        let here = world.east.set_status(SYSTEM).await.unwrap();
        assert_eq!(
            (here.total_clusters, here.ready_clusters),
            (Some(1), Some(1)),
            "the leader, a member too"
        );
        let other = eventually("the leader's own member knows of east", async || {
            let status = world.leader.set_status(SYSTEM).await?;
            if clusters(&status).len() == 2 { Ok(status) } else { Err(format!("{status:?}")) }
        });
        assert_eq!(clusters(&other.await), are(&[("leader", "Connected"), ("east", "Connected")]));

        world.stop("freeport-member-east").await;
        shows(&[("east", "Disconnected"), ("leader", "Connected")], "SomeNotReady").await;
        world.event(&world.leader, AREA, SET, "MemberDisconnected").await;
        let said = world.leader.set_status(AREA).await.unwrap();
        world.stop("freeport-leader-leader").await;
        world.start("freeport-leader-leader").await;
        crate::fixture::always("a restart of the leader says nothing new", async || {
            let now = world.leader.set_status(AREA).await?;
            if now == said { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
        world.start("freeport-member-east").await;
        shows(&[("east", "Connected"), ("leader", "Connected")], "Ready").await;
        world.event(&world.leader, AREA, SET, "MemberConnected").await;
    });
}

#[test]
fn a_clock_that_is_wrong_is_a_warning() {
    alone(async |world| {
        world.stop("freeport-leader-leader").await;
        let begun = std::time::Instant::now();
        // Two renewals apart that agree, as another daemon with a wrong clock would write them.
        let message = loop {
            let clock = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(300);
            let renewal = json!({"spec": {"renewTime": MicroTime(clock)}});
            world.leader.patch::<Lease>(AREA, "freeport-leader", renewal).await;
            let status = world.east.set_status(SYSTEM).await.unwrap();
            let ready = &status.conditions[0];
            if ready.reason.as_deref() == Some("ClockSkew") {
                assert_eq!(ready.status.as_deref(), Some("True"));
                break ready.message.clone().unwrap();
            }
            assert!(begun.elapsed().as_secs() < 120, "{ready:?}");
            tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        };
        assert!(message.contains(" s ahead"), "{message}");
        world.start("freeport-leader-leader").await;
        world.connected().await;
    });
}

#[test]
fn an_id_that_is_taken_is_not_used_and_is_ours_again_when_its_holder_is_silent() {
    alone(async |world| {
        let other = json!({"spec": {"holderIdentity": "another-cluster/its-pod"}});
        world.leader.patch::<Lease>(AREA, "freeport-member-east", other).await;
        let message = world.says("False", "DuplicateClusterID").await;
        assert!(message.contains("another-cluster/its-pod"), "{message}");
        world.connected().await;
    });
}
