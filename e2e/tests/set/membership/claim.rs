//! Who we are where the ClusterSet does not say it: ClusterClaims do.

use api::{
    cluster_claim::{self, ClusterClaim},
    cluster_set::ClusterSet,
};
use e2e::fixture::{SET, SYSTEM, alone};
use serde_json::json;

use super::traces::{CONNECTED, exchanged, imported_from_both, left};

#[e2e::test]
fn claims_say_who_we_are_where_the_cluster_set_does_not() {
    alone(async |world| {
        let (ns, east) = ("claims", world.cluster("east"));
        let claim = async |name: &str, value: &str| {
            let claim = json!({"metadata": {"name": name}, "value": value});
            east.create::<ClusterClaim>(SYSTEM, claim).await
        };
        exchanged(world, ns).await;
        let said: ClusterSet = east.take(SYSTEM, SET).await;
        left(world, ns).await;

        let mut silent = said.clone();
        silent.spec.cluster_id = String::new();
        east.put_back(silent).await;
        let message = world.member_says("east", ("False", "InvalidSpec")).await;
        assert!(message.contains("clusterID") && message.contains(cluster_claim::ID), "{message}");
        claim(cluster_claim::ID, "east").await;
        world.member_says("east", CONNECTED).await;
        imported_from_both(world, ns).await;

        east.patch::<ClusterClaim>(SYSTEM, cluster_claim::ID, &json!({"value": "other"})).await;
        let message = world.member_says("east", ("False", "IdentityChanged")).await;
        assert!(message.contains("as east"), "{message}");
        east.patch::<ClusterClaim>(SYSTEM, cluster_claim::ID, &json!({"value": "east"})).await;
        world.member_says("east", CONNECTED).await;

        claim(cluster_claim::CLUSTER_SET, "another").await;
        let message = world.member_says("east", ("False", "InvalidSpec")).await;
        assert!(message.contains("another"), "{message}");
        east.delete::<ClusterClaim>(SYSTEM, cluster_claim::CLUSTER_SET).await;
        world.member_says("east", CONNECTED).await;

        east.delete::<ClusterSet>(SYSTEM, SET).await;
        left(world, ns).await;
        east.delete::<ClusterClaim>(SYSTEM, cluster_claim::ID).await;
        east.put_back(said).await;
        imported_from_both(world, ns).await;
        world.release(ns).await;
    });
}
