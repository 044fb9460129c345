//! The leader's cluster itself is restored or replaced.

use api::name;
use e2e::{
    daemon::End,
    fixture::{CLUSTERS, alone},
};

use crate::kept::Kept;

#[test]
fn a_hub_restored_from_an_older_backup_takes_nothing_away() {
    alone(async |world| {
        let backup = world.back_up().await;
        // The leader's own cluster forgets its Namespace with the rest.
        let kept = Kept::set_up(world, "restored", &["east", "west"]).await;
        world.restore(&backup).await;
        world.vouches(name::LEADER_LEASE).await;
        world.vouches(&name::member_lease("west")).await;
        kept.nothing_went("the hub is of before the exports").await;
        world.leader().create_namespace(kept.namespace()).await;
        world.settled().await;
        kept.nothing_went("all came back").await;
        kept.converges(world).await;
        world.release(kept.namespace()).await;
    });
}

#[test]
fn a_hub_restored_with_old_endpoints_and_a_member_down_takes_nothing_away() {
    alone(async |world| {
        let earlier = Kept::set_up(world, "restored-old", &[]).await;
        let (ns, ports) = (earlier.namespace(), [("http", 8080)]);
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.replace_slice(ns, "web", "web-1", &["10.1.0.66"], &ports).await;
        e2e::waiting::eventually("what will be old", || async {
            e2e::seen::right(e2e::seen::imported(west, ns, "web").await, |seen| {
                seen.addresses("east") == ["10.1.0.66:8080"]
            })
        })
        .await;
        let backup = world.back_up().await;
        east.replace_slice(ns, "web", "web-1", &["10.1.0.1"], &ports).await;
        let kept = earlier.watch(world, &["east", "west"]).await;
        world.end("freeport-member-east", End::Crash).await;
        world.restore(&backup).await;
        world.vouches(name::LEADER_LEASE).await;
        world.vouches(&name::member_lease("west")).await;
        kept.nothing_went("the hub has old endpoints of east, which is down").await;
        world.start("freeport-member-east").await;
        world.settled().await;
        kept.nothing_went("all came back").await;
        kept.converges(world).await;
        world.release(kept.namespace()).await;
    });
}

#[test]
fn a_hub_replaced_by_an_empty_one_takes_nothing_away() {
    alone(async |world| {
        let kept = Kept::set_up(world, "replaced", &["east", "west"]).await;
        world.replace_hub().await;
        kept.nothing_went("the hub is empty").await;
        world.end("freeport-member-east", End::Crash).await;
        world.set_up_again().await;
        world.vouches(name::LEADER_LEASE).await;
        world.vouches(&name::member_lease("west")).await;
        kept.nothing_went("west has joined the new hub, east has not").await;
        world.start("freeport-member-east").await;
        world.leader().create_namespace(kept.namespace()).await;
        world.settled().await;
        kept.nothing_went("all came back").await;
        kept.converges(world).await;
        world.release(kept.namespace()).await;
    });
}

#[test]
fn a_new_hub_is_believed_where_nobody_is_missing() {
    alone(async |world| {
        let kept = Kept::set_up(world, "again", &CLUSTERS).await;
        kept.nothing_went("after all that came before").await;
        kept.converges(world).await;
        world.release(kept.namespace()).await;
    });
}
