//! What is broken is said, with what to do about it, and when it is mended all goes on without a restart.

use std::fs;

use api::cluster_set::ClusterSet;
use e2e::{
    cluster_set::says,
    fixture::{AREA, SET, SYSTEM, World, alone},
    seen::event,
    waiting::eventually,
};
use fleet::Component;
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::TokenRequest,
        core::v1::{Secret, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
    },
};
use kube::api::PostParams;
use serde_json::{Map, Value, json};

use super::traces::{CONNECTED, SECRET, exchanged, imported_from_both, left};

/// Puts these keys into the Secret of `east`; `None` removes one.
async fn put_secret(world: &World, entries: &[(&str, Option<&[u8]>)]) {
    let encoded = |bytes: &[u8]| json!(ByteString(bytes.to_vec()));
    let entry =
        |(key, value): &(&str, Option<&[u8]>)| ((*key).to_owned(), value.map_or(Value::Null, encoded));
    let data: Map<_, _> = entries.iter().map(entry).collect();
    world.cluster("east").patch::<Secret>(SYSTEM, SECRET, &json!({"data": data})).await;
}

#[e2e::test(real)]
fn a_credential_that_is_missing_or_wrong_is_said_and_another_one_is_taken() {
    alone(async |world| {
        let east = world.cluster("east");
        let had: Secret = east.take(SYSTEM, SECRET).await;
        let message = world.member_says("east", ("False", "SecretMissing")).await;
        assert!(message.contains(SECRET), "{message}");
        eventually("an Event says so", || event(east, SYSTEM, SET, "SecretMissing")).await;
        east.put_back(had.clone()).await;
        world.member_says("east", CONNECTED).await;

        let data = had.data.unwrap();
        let (ca, token) = (data["ca.crt"].0.as_slice(), data["token"].0.as_slice());
        put_secret(world, &[("token", None)]).await;
        let message = world.member_says("east", ("False", "InvalidSecret")).await;
        assert!(message.contains("\"token\""), "{message}");
        put_secret(world, &[("token", Some(token)), ("ca.crt", Some(b"none"))]).await;
        eventually("the other key is named", || async {
            let message = says(east, SYSTEM, ("False", "InvalidSecret")).await?;
            if message.contains("\"ca.crt\"") { Ok(()) } else { Err(message) }
        })
        .await;

        let other = fs::read(world.real().fleet.cluster("east").unwrap().ca_certificate()).unwrap();
        put_secret(world, &[("ca.crt", Some(&other))]).await;
        let message = world.member_says("east", ("False", "CertificateUntrusted")).await;
        assert!(message.contains("ca.crt"), "{message}");
        put_secret(world, &[("ca.crt", Some(ca)), ("token", Some(b"a.b.c"))]).await;
        let message = world.member_says("east", ("False", "TokenRefused")).await;
        assert!(message.contains(SECRET), "{message}");
        put_secret(world, &[("token", Some(token))]).await;
        world.member_says("east", CONNECTED).await;
        eventually("an Event says so", || event(east, SYSTEM, SET, "Connected")).await;
    });
}

#[e2e::test(real)]
fn a_leader_that_is_away_is_said_and_found_again() {
    alone(async |world| {
        let leader = world.real().fleet.cluster("leader").unwrap();
        leader.kill(Component::ApiServer).await.unwrap();
        let message = world.member_says("east", ("False", "LeaderUnreachable")).await;
        assert!(message.contains(&leader.server()), "{message}");
        leader.start(Component::ApiServer).await.unwrap();
        world.member_says("east", CONNECTED).await;
    });
}

#[e2e::test(real)]
fn rights_that_are_missing_at_the_leader_are_named() {
    alone(async |world| {
        let had: RoleBinding = world.leader().take(AREA, "freeport-member-east").await;
        let message = world.member_says("east", ("False", "Forbidden")).await;
        assert!(message.contains(AREA) && message.contains("freeport-member-east"), "{message}");
        world.leader().put_back(had).await;
        world.member_says("east", CONNECTED).await;
    });
}

/// A token that the leader's API server knows, and that may do all that a member does, everywhere.
async fn visitor(world: &World) -> String {
    let leader = world.leader();
    let meta = json!({"name": "visitor"});
    let _: ServiceAccount = leader.create("default", json!({"metadata": meta})).await;
    let role = json!({
        "metadata": meta,
        "rules": [{
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "list", "watch", "create", "patch"],
        }],
    });
    leader.create_cluster_wide::<ClusterRole>(role).await;
    let binding = json!({
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "visitor"},
        "subjects": [{"kind": "ServiceAccount", "name": "visitor", "namespace": "default"}],
    });
    leader.create_cluster_wide::<ClusterRoleBinding>(binding).await;
    let accounts = leader.api::<ServiceAccount>("default");
    let (how, request) = (PostParams::default(), TokenRequest::default());
    let answer = accounts.create_token_request("visitor", &how, &request).await.unwrap();
    answer.status.unwrap().token.unwrap()
}

#[e2e::test(real)]
fn a_common_area_that_is_not_there_is_named() {
    alone(async |world| {
        let (ns, east) = ("nowhere", world.cluster("east"));
        exchanged(world, ns).await;
        let mut set: ClusterSet = east.take(SYSTEM, SET).await;
        left(world, ns).await;
        let token = visitor(world).await;
        let had = east.api::<Secret>(SYSTEM).get(SECRET).await.unwrap().data.unwrap();
        put_secret(world, &[("token", Some(token.as_bytes()))]).await;
        set.spec.namespace = Some("nowhere-to-be-found".into());
        east.put_back(set).await;
        let message = world.member_says("east", ("False", "CommonAreaMissing")).await;
        assert!(message.contains("nowhere-to-be-found") && message.contains("freeport init"), "{message}");
        east.patch::<ClusterSet>(SYSTEM, SET, &json!({"spec": {"namespace": AREA}})).await;
        put_secret(world, &[("token", Some(&had["token"].0))]).await;
        world.member_says("east", CONNECTED).await;
        imported_from_both(world, ns).await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn a_crd_that_is_gone_is_named_with_its_cluster() {
    alone(async |world| {
        for (cluster, crd, kind, named) in [
            ("east", "serviceexports.multicluster.x-k8s.io", "ServiceExport", "this cluster"),
            ("leader", "resourceimports.multicluster.crd.antrea.io", "ResourceImport", "leader"),
        ] {
            let had = world.cluster(cluster).take_crd(crd).await;
            let message = world.member_says("east", ("False", "CRDMissing")).await;
            assert!(message.contains(kind) && message.contains(named), "{message}");
            world.cluster(cluster).put_back_crd(had).await;
            world.member_says("east", CONNECTED).await;
        }
    });
}

#[e2e::test]
fn r2_who_we_are_cannot_be_changed_in_place() {
    alone(async |world| {
        let east = world.cluster("east");
        east.patch::<ClusterSet>(SYSTEM, SET, &json!({"spec": {"namespace": "elsewhere"}})).await;
        let message = world.member_says("east", ("False", "IdentityChanged")).await;
        assert!(message.contains(AREA) && message.contains("freeport leave"), "{message}");
        east.patch::<ClusterSet>(SYSTEM, SET, &json!({"spec": {"namespace": AREA}})).await;
        world.member_says("east", CONNECTED).await;
    });
}

#[e2e::test]
fn a_second_cluster_set_is_refused_and_the_first_goes_on() {
    alone(async |world| {
        let east = world.cluster("east");
        let mut set = east.api::<ClusterSet>(SYSTEM).get(SET).await.unwrap();
        set.metadata.name = Some("second".into());
        east.put_back(set).await;
        eventually("the second one is refused", || async {
            let second = east.api::<ClusterSet>(SYSTEM).get("second").await.unwrap();
            let ready = second.status.and_then(|status| status.conditions.into_iter().next());
            let ready = ready.ok_or("it says nothing")?;
            let message = ready.message.clone().unwrap_or_default();
            if ready.reason.as_deref() == Some("AnotherClusterSet") && message.contains(SET) {
                return Ok(());
            }
            Err(format!("{ready:?}"))
        })
        .await;
        world.member_says("east", CONNECTED).await;
        east.delete::<ClusterSet>(SYSTEM, "second").await;
    });
}
