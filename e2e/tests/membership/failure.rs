//! What is broken is said, with what to do about it, and when it is mended all goes on without a restart.

use std::fs;

use api::cluster_set::ClusterSet;
use fleet::Component;
use k8s_openapi::api::{core::v1::Secret, rbac::v1::RoleBinding};
use serde_json::json;

use crate::fixture::{AREA, SECRET, SET, SYSTEM, alone};

#[test]
fn a_credential_that_is_missing_or_wrong_is_said_and_another_one_is_taken() {
    alone(async |world| {
        let east = &world.east;
        let had: Secret = east.delete(SYSTEM, SECRET).await;
        let message = world.says("False", "SecretMissing").await;
        assert!(message.contains(SECRET), "{message}");
        world.event(east, SYSTEM, SET, "SecretMissing").await;
        east.create(had.clone()).await;
        world.connected().await;

        let data = had.data.unwrap();
        let (ca, token) = (data["ca.crt"].0.as_slice(), data["token"].0.as_slice());
        east.put_secret(&[("token", None)]).await;
        let message = world.says("False", "InvalidSecret").await;
        assert!(message.contains("\"token\""), "{message}");
        east.put_secret(&[("token", Some(token)), ("ca.crt", Some(b"none"))]).await;
        let says_ca = async || {
            let message = world.says("False", "InvalidSecret").await;
            if message.contains("\"ca.crt\"") { Ok(()) } else { Err(message) }
        };
        crate::fixture::eventually("the other key is named", says_ca).await;

        let other = fs::read(world.fleet.cluster("east").unwrap().ca_certificate()).unwrap();
        east.put_secret(&[("ca.crt", Some(&other))]).await;
        let message = world.says("False", "CertificateUntrusted").await;
        assert!(message.contains("ca.crt"), "{message}");
        east.put_secret(&[("ca.crt", Some(ca)), ("token", Some(b"a.b.c"))]).await;
        let message = world.says("False", "TokenRefused").await;
        assert!(message.contains(SECRET), "{message}");
        east.put_secret(&[("token", Some(token))]).await;
        world.connected().await;
        world.event(east, SYSTEM, SET, "Connected").await;
    });
}

#[test]
fn a_leader_that_is_away_is_said_and_found_again() {
    alone(async |world| {
        let leader = world.fleet.cluster("leader").unwrap();
        leader.stop(Component::ApiServer).await.unwrap();
        let message = world.says("False", "LeaderUnreachable").await;
        assert!(message.contains(&leader.server()), "{message}");
        leader.start(Component::ApiServer).await.unwrap();
        world.connected().await;
    });
}

#[test]
fn rights_that_are_missing_at_the_leader_are_named() {
    alone(async |world| {
        let had: RoleBinding = world.leader.delete(AREA, "freeport-member-east").await;
        let message = world.says("False", "Forbidden").await;
        assert!(message.contains(AREA) && message.contains("leases"), "{message}");
        world.leader.create(had).await;
        world.connected().await;
    });
}

#[test]
fn a_crd_that_is_gone_is_named_with_its_cluster() {
    alone(async |world| {
        let crd = world.east.delete_crd("serviceexports.multicluster.x-k8s.io").await;
        let message = world.says("False", "CRDMissing").await;
        assert!(message.contains("ServiceExport") && message.contains("this cluster"), "{message}");
        world.east.create_crd(crd).await;
        world.connected().await;

        let crd = world.leader.delete_crd("resourceimports.multicluster.crd.antrea.io").await;
        let message = world.says("False", "CRDMissing").await;
        assert!(message.contains("ResourceImport") && message.contains("leader"), "{message}");
        world.leader.create_crd(crd).await;
        world.connected().await;
    });
}

#[test]
fn who_we_are_cannot_be_changed_in_place() {
    alone(async |world| {
        world.east.patch::<ClusterSet>(SYSTEM, SET, json!({"spec": {"namespace": "elsewhere"}})).await;
        let message = world.says("False", "IdentityChanged").await;
        assert!(message.contains(AREA) && message.contains("freeport leave"), "{message}");
        world.east.patch::<ClusterSet>(SYSTEM, SET, json!({"spec": {"namespace": AREA}})).await;
        world.connected().await;
    });
}
