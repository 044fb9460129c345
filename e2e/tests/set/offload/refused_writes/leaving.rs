//! What a home deletes when it leaves the ClusterSet.

use api::{cluster_set::ClusterSet, label, membership, offload::namespace::NamespaceOffloading};
use e2e::{
    fixture::{SET, SYSTEM},
    forbidden::{NOT_THIS_ONE, forbid_all, permit_all},
    waiting::eventually,
    walk::offloading::LEAVING,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;

use super::{
    super::world::{OFFLOADING, agreed, gone, offload, peer, phase},
    said::all_counted,
};

#[e2e::test]
fn each_deletion_that_is_refused_to_a_home_that_leaves_is_noted_and_done_when_it_is_accepted() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        let notes = west.api::<ConfigMap>(SYSTEM);
        agreed(world).await;
        peer(west, "east", json!({"incoming": {}})).await;
        let ns = world.namespace("refused-home", &["west"]).await;
        for refused in LEAVING {
            offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
            phase(world, &ns, "Ready").await;
            forbid_all(world, refused).await;
            let set: ClusterSet = west.take(SYSTEM, SET).await;
            eventually("the refusal is counted", || all_counted(world, std::slice::from_ref(refused))).await;
            eventually(&format!("the note names {}", refused.kind), || async {
                let note = notes.get(membership::NAME).await.map_err(|error| error.to_string())?;
                let said = note.annotations().get(label::REFUSED).cloned().unwrap_or_default();
                let names = [refused.kind, "delete", NOT_THIS_ONE].iter().all(|part| said.contains(part));
                if names { Ok(()) } else { Err(format!("{said:?}")) }
            })
            .await;
            permit_all(world, refused).await;
            eventually("west has left", || async {
                let note = notes.get_opt(membership::NAME).await.map_err(|error| error.to_string())?;
                note.map_or(Ok(()), |note| Err(format!("{:?}", note.metadata)))
            })
            .await;
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
