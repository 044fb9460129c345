//! What a home deletes when it leaves the ClusterSet.

use api::{cluster_set::ClusterSet, offload::namespace::NamespaceOffloading};
use e2e::{
    fixture::{SET, SYSTEM},
    forbidden::{forbid_all, permit_all},
    waiting::eventually,
    walk::{
        offloading::LEAVING,
        reported::{counted, left, noted},
    },
};
use serde_json::json;

use super::super::world::{OFFLOADING, agreed, gone, offload, peer, phase};

#[e2e::test]
fn each_deletion_that_is_refused_to_a_home_that_leaves_is_noted_and_done_when_it_is_accepted() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        peer(west, "east", json!({"incoming": {}})).await;
        let ns = world.namespace("refused-home", &["west"]).await;
        for refused in LEAVING {
            offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
            phase(world, &ns, "Ready").await;
            forbid_all(world, refused).await;
            let set: ClusterSet = west.take(SYSTEM, SET).await;
            counted(world, &[*refused]).await;
            noted(west, refused).await;
            permit_all(world, refused).await;
            left(west).await;
            west.put_back(set).await;
            world.member_says("west", ("True", "Connected")).await;
            west.delete::<NamespaceOffloading>(&ns, "offloading").await;
            gone(world, "east", &format!("{ns}-west")).await;
            eventually("the NamespaceOffloading is gone", || async {
                let left = west.api::<NamespaceOffloading>(&ns).get_opt("offloading").await.unwrap();
                left.map_or(Ok(()), |left| Err(format!("{:?}", left.status)))
            })
            .await;
        }
        world.release(&ns).await;
        agreed(world).await;
    });
}
