//! A twin ends when its owner says so, whoever was away meanwhile.

use api::offload::{label::SCHEDULING_ENABLED, map::NamespaceMap, namespace::NamespaceOffloading};
use e2e::{
    daemon::End,
    fixture::{AREA, World},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{
    vanish::{stays, twin},
    world::{OFFLOADING, agreed, gone, offload, phase},
};

const HOST: &str = "freeport-member-east";

/// Waits until the NamespaceOffloading of `west` is gone.
async fn comes_home(world: &World, namespace: &str) {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(namespace);
    eventually(&format!("the deletion of NamespaceOffloading {namespace} completes"), || async {
        match offloadings.get_opt("offloading").await.unwrap() {
            None => Ok(()),
            Some(there) => Err(format!("{:?} {:?}", there.metadata.finalizers, there.status)),
        }
    })
    .await;
}

#[e2e::test]
fn a_twin_that_is_withdrawn_while_its_host_is_away_goes_when_the_host_is_back() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("withdrawn", &["west"]).await;
        let beside = world.namespace("withdrawn-beside", &["west"]).await;
        for ns in [&ns, &beside] {
            offload(world, ns, json!({"podOffloadingStrategy": "Local"})).await;
            phase(world, ns, "Ready").await;
        }
        let before = twin(world, "withdrawn-beside-west").await.unwrap();
        // As it is left on a Namespace whose NamespaceOffloading is missing.
        let labelled = world.namespace("withdrawn-label", &["west"]).await;
        let label = json!({"metadata": {"labels": {SCHEDULING_ENABLED: "true"}}});
        let namespaces = Api::<Namespace>::all(west.client.clone());
        namespaces.patch(&labelled, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();

        world.end(HOST, End::Stop).await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        let maps = world.leader().api::<NamespaceMap>(AREA);
        eventually("the home does not want it any more", || async {
            let spec = maps.get("1.west.east").await.map_err(|error| error.to_string())?.spec;
            if spec.desired_mapping.contains_key(&ns) { Err(format!("{spec:?}")) } else { Ok(()) }
        })
        .await;
        world.start(HOST).await;
        gone(world, "east", "withdrawn-west").await;
        comes_home(world, &ns).await;
        stays(world, "withdrawn-beside-west", &before).await;

        west.delete::<NamespaceOffloading>(&beside, "offloading").await;
        gone(world, "east", "withdrawn-beside-west").await;
        for ns in [&ns, &beside, &labelled] {
            world.release(ns).await;
        }
    });
}
