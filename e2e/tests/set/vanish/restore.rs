//! The leader's cluster itself is restored or replaced; a member's cluster is restored.

use api::{mcs::ServiceExport, name::member_lease};
use e2e::{
    daemon::End,
    fixture::{SYSTEM, alone},
    seen::{event, imported, not_imported, right},
    waiting::{VOUCHED, always, eventually, within},
};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::kept::{Kept, time_goes_by};

#[e2e::test]
fn a_leader_restored_from_an_older_backup_takes_nothing_away() {
    alone(async |world| {
        let earlier = Kept::set_up(world, "restored", &[]).await;
        let (ns, ports) = (earlier.namespace().to_owned(), [("http", 8080)]);
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let east_is = async |address: &str| {
            eventually("west follows", || async {
                right(imported(west, &ns, "web").await, |seen| {
                    seen.addresses("east") == [format!("{address}:8080")]
                })
            })
            .await
        };
        east.replace_slice(&ns, "web", "web-1", &["10.1.0.66"], &ports).await;
        east_is("10.1.0.66").await;
        let backup = world.back_up("leader").await;
        east.replace_slice(&ns, "web", "web-1", &["10.1.0.1"], &ports).await;
        east_is("10.1.0.1").await;
        east.exported(&ns, "late", &["10.1.0.2"]).await;
        let late = eventually("exported after the backup", || async {
            right(imported(west, &ns, "late").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        let kept = earlier.watch(world, &["east", "west"]).await;

        world.end("freeport-member-east", End::Crash).await;
        world.restore(&backup).await;
        time_goes_by(world).await;
        kept.nothing_went("the leader has old endpoints of east, which is down").await;
        always("what the leader knows nothing of", || async {
            right(imported(west, &ns, "late").await, |seen| *seen == late).map(drop)
        })
        .await;
        world.start("freeport-member-east").await;
        kept.converges(world).await;
    });
}

/// Issue 14, A7.
#[e2e::test]
fn a7_a_members_cluster_restored_from_an_older_backup_takes_nothing_away_and_hears_again() {
    alone(async |world| {
        let kept = Kept::set_up(world, "home-restored", &[]).await;
        let ns = world.namespace_everywhere("home-restored-late").await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let is_there = async |name: &str| {
            eventually(&format!("{name} is imported"), || async {
                right(imported(west, &ns, name).await, |seen| seen.endpoints.len() == 1)
            })
            .await
        };
        let backup = world.back_up("east").await;
        east.exported(&ns, "late", &["10.1.0.2"]).await;
        let late = is_there("late").await;
        // Watches that go on at the version they were at hear nothing of the next events.
        for number in 0..150 {
            let filler = json!({"metadata": {"name": format!("filler-{number}")}});
            let _: ConfigMap = east.create(&ns, filler).await;
        }
        let kept = kept.watch(world, &["west"]).await;
        world.restore(&backup).await;

        eventually("east says so", || event(east, SYSTEM, "freeport-member", "ClusterRestored")).await;
        east.exported(&ns, "new", &["10.1.0.3"]).await;
        is_there("new").await;
        world.vouches(&member_lease("east")).await;
        kept.nothing_went("east's cluster is as it was before").await;
        let now = imported(west, &ns, "late").await;
        assert_eq!(now.as_ref(), Ok(&late), "nobody took it back");
        // As the message says.
        east.exported(&ns, "late", &["10.1.0.2"]).await;
        east.delete::<ServiceExport>(&ns, "late").await;
        eventually("late is taken back", || not_imported(west, &ns, "late")).await;
        world.release(&ns).await;
        kept.converges(world).await;
    });
}

/// Issue 14, A7: the machine started again, and with it the member.
#[e2e::test]
fn a7_a_member_that_starts_in_its_restored_cluster_takes_back_nothing_that_the_backup_lacks() {
    alone(async |world| {
        let kept = Kept::set_up(world, "home-restarted", &[]).await;
        let ns = world.namespace_everywhere("home-restarted-late").await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let backup = world.back_up("east").await;
        // In the backup the daemon may have run for one more renewal.
        world.vouches(&member_lease("east")).await;
        east.exported(&ns, "late", &["10.1.0.2"]).await;
        let late = eventually("late is imported", || async {
            right(imported(west, &ns, "late").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        let kept = kept.watch(world, &["west"]).await;
        for again in ["at once", "later, too"] {
            world.end("freeport-member-east", End::Crash).await;
            if again == "at once" {
                world.restore(&backup).await;
            }
            world.start("freeport-member-east").await;
            world.vouches(&member_lease("east")).await;
            kept.nothing_went("east's cluster is as it was before").await;
            assert_eq!(imported(west, &ns, "late").await.as_ref(), Ok(&late), "nobody took it back: {again}");
        }
        east.exported(&ns, "late", &["10.1.0.2"]).await;
        world.settled().await;
        east.unexport(&ns, "late").await;
        within(VOUCHED, "its owner may end it", || not_imported(west, &ns, "late")).await;
        world.release(&ns).await;
        kept.converges(world).await;
    });
}

#[e2e::test]
fn r61_a_leader_replaced_by_an_empty_one_takes_nothing_away() {
    alone(async |world| {
        let kept = Kept::set_up(world, "replaced", &["east", "west"]).await;
        world.replace_leader().await;
        kept.nothing_went("the leader is empty").await;
        world.end("freeport-member-east", End::Crash).await;
        world.set_up_again().await;
        time_goes_by(world).await;
        kept.nothing_went("west has joined the new leader, east has not").await;
        world.start("freeport-member-east").await;
        world.leader().create_namespace(kept.namespace()).await;
        kept.converges(world).await;
    });
}
