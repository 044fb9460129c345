//! The hub is restored from a backup that knows less than the clusters do.

use api::offload::namespace::NamespaceOffloading;
use e2e::{
    daemon::End,
    fixture::World,
    waiting::{always, eventually},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;

use super::world::{OFFLOADING, agreed, gone, offload, phase};

/// uid of a Namespace of `east` that stays.
async fn twin(world: &World, name: &str) -> Result<String, String> {
    let namespaces = Api::<Namespace>::all(world.cluster("east").client.clone());
    let twin = namespaces.get(name).await.map_err(|error| error.to_string())?;
    match twin.metadata.deletion_timestamp {
        None => Ok(twin.metadata.uid.unwrap_or_default()),
        Some(_) => Err(format!("{name} is being deleted")),
    }
}

#[e2e::test]
fn twins_that_a_restored_hub_does_not_know_stay_when_their_host_starts_first() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let known = world.namespace("hub-knows", &["west"]).await;
        offload(world, &known, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &known, "Ready").await;
        let backup = world.back_up("leader").await;
        let unknown = world.namespace("hub-forgot", &["west"]).await;
        offload(world, &unknown, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &unknown, "Ready").await;
        let uid = twin(world, "hub-forgot-west").await.unwrap();

        for member in ["freeport-member-west", "freeport-member-east"] {
            world.end(member, End::Crash).await;
        }
        world.restore(&backup).await;
        world.start("freeport-member-east").await;
        always("the twin stays", async || twin(world, "hub-forgot-west").await.map(drop)).await;
        world.start("freeport-member-west").await;
        agreed(world).await;
        eventually("the twin is the same", || async {
            phase(world, &unknown, "Ready").await;
            match twin(world, "hub-forgot-west").await? == uid {
                true => Ok(()),
                false => Err("another one".to_owned()),
            }
        })
        .await;
        for namespace in [&known, &unknown] {
            world.cluster("west").delete::<NamespaceOffloading>(namespace, "offloading").await;
            gone(world, "east", &format!("{namespace}-west")).await;
            world.release(namespace).await;
        }
    });
}
