//! What a member says about itself, by ClusterProperties of the About API.

use std::collections::BTreeMap;

use api::{
    about::{CLUSTER_ID, CLUSTER_SET, ClusterProperty},
    cluster_set::ClusterSet,
};
use e2e::{
    cluster::Cluster,
    fixture::{SET, SYSTEM, alone},
    waiting::eventually,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::traces::{CONNECTED, exchanged, imported_from_both, left};

fn properties(cluster: &Cluster) -> Api<ClusterProperty> {
    Api::all(cluster.client.clone())
}

async fn delete(cluster: &Cluster, name: &str) {
    properties(cluster).delete(name, &DeleteParams::default()).await.unwrap();
}

async fn say(cluster: &Cluster, name: &str, value: &str) {
    let patch = Patch::Merge(json!({"spec": {"value": value}}));
    properties(cluster).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until the cluster says just this about itself.
async fn says(cluster: &Cluster, want: &[(&str, &str)]) {
    let want: BTreeMap<_, _> =
        want.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    eventually(&format!("{} says {want:?}", cluster.name), || async {
        let there =
            properties(cluster).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let there: BTreeMap<_, _> =
            there.into_iter().map(|property| (property.name_any(), property.spec.value)).collect();
        if there == want { Ok(()) } else { Err(format!("{there:?}")) }
    })
    .await;
}

#[e2e::test]
fn r59_r73_r74_r75_r77_a_member_says_who_it_is_and_where_it_belongs_as_long_as_it_does() {
    alone(async |world| {
        let (ns, east) = ("about", world.cluster("east"));
        exchanged(world, ns).await;
        let both = [(CLUSTER_ID, "east"), (CLUSTER_SET, SET)];
        says(east, &both).await;
        delete(east, CLUSTER_ID).await;
        say(east, CLUSTER_SET, "changed").await;
        says(east, &both).await;

        let set: ClusterSet = east.take(SYSTEM, SET).await;
        left(world, ns).await;
        says(east, &[]).await;

        let theirs = json!({"metadata": {"name": CLUSTER_ID}, "spec": {"value": "north"}});
        east.create_cluster_wide::<ClusterProperty>(theirs).await;
        east.put_back(set).await;
        let message = world.member_says("east", ("False", "ClusterPropertyConflict")).await;
        assert!(message.contains("\"north\"") && message.contains("\"east\""), "{message}");
        says(east, &[(CLUSTER_ID, "north")]).await;

        say(east, CLUSTER_ID, "east").await;
        world.member_says("east", CONNECTED).await;
        imported_from_both(world, ns).await;
        says(east, &both).await;
        say(east, CLUSTER_ID, "north").await;
        world.member_says("east", ("True", "ClusterPropertyConflict")).await;
        imported_from_both(world, ns).await;
        say(east, CLUSTER_ID, "east").await;
        world.member_says("east", CONNECTED).await;

        let set: ClusterSet = east.take(SYSTEM, SET).await;
        left(world, ns).await;
        says(east, &[(CLUSTER_ID, "east")]).await;
        delete(east, CLUSTER_ID).await;
        east.put_back(set).await;
        imported_from_both(world, ns).await;
        says(east, &both).await;
        world.release(ns).await;
    });
}
