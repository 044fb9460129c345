//! Who we are where the ClusterSet does not say it: ClusterClaims do.

use api::{
    cluster_claim::{self, ClusterClaim, ClusterClaimFields},
    cluster_set::ClusterSet,
};
use serde_json::json;

use crate::fixture::{SET, SYSTEM, alone};

fn claim(name: &str, value: &str) -> ClusterClaim {
    let mut claim = ClusterClaim::new(name, ClusterClaimFields { value: value.into() });
    claim.metadata.namespace = Some(SYSTEM.into());
    claim
}

#[test]
fn claims_say_who_we_are_where_the_cluster_set_does_not() {
    alone(async |world| {
        let east = &world.east;
        world.exchanged("claims").await;
        let said: ClusterSet = east.delete(SYSTEM, SET).await;
        world.left("claims").await;

        let mut silent = said.clone();
        silent.spec.cluster_id = String::new();
        east.create(silent).await;
        let message = world.says("False", "InvalidSpec").await;
        assert!(message.contains("clusterID") && message.contains(cluster_claim::ID), "{message}");
        east.create(claim(cluster_claim::ID, "east")).await;
        world.connected().await;
        world.imported("claims").await;

        east.patch::<ClusterClaim>(SYSTEM, cluster_claim::ID, json!({"value": "other"})).await;
        let message = world.says("False", "IdentityChanged").await;
        assert!(message.contains("as east"), "{message}");
        east.patch::<ClusterClaim>(SYSTEM, cluster_claim::ID, json!({"value": "east"})).await;
        world.connected().await;

        east.create(claim(cluster_claim::CLUSTER_SET, "another")).await;
        let message = world.says("False", "InvalidSpec").await;
        assert!(message.contains("another"), "{message}");
        east.delete::<ClusterClaim>(SYSTEM, cluster_claim::CLUSTER_SET).await;
        world.connected().await;

        east.delete::<ClusterSet>(SYSTEM, SET).await;
        world.left("claims").await;
        east.delete::<ClusterClaim>(SYSTEM, cluster_claim::ID).await;
        east.create(said).await;
        world.imported("claims").await;
    });
}
