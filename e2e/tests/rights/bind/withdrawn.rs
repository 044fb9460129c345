//! What the leader takes back.

use api::bind::{
    export::{APIServiceExport, Phase},
    label,
};
use api::label::LEADER;
use cli::objects::bind;
use e2e::{
    account::by_token,
    binding::{
        BINDING, GROUP, Offered, install,
        provider::{contract, offer, request},
    },
    fixture::SYSTEM,
    waiting::eventually,
};
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::RoleBinding};
use serde_json::{Value, json};

use super::{Consumer, attempt, is_wrong, leader::gives, passes};
use crate::rights::{
    attempt::{Do, EVERYWHERE, try_all},
    samples::{bindings, namespaces},
};

/// An API that is not offered any more: what was given of it can be taken back.
#[e2e::test]
fn what_was_given_of_an_api_is_taken_back_when_it_is_not_offered_any_more() {
    BINDING.beside(async |world| {
        let (admin, offered) = (world.leader(), Offered::new("withdrawns", "Namespaced"));
        offered.install(admin).await;
        let offer = bind::offer(&offered.resource(), Default::default());
        install(admin, &offer).await;
        let (namespace, role) = ("withdrawn-adopted", format!("freeport-bind-withdrawns.{GROUP}"));
        let adopt = json!({"metadata": {"name": namespace, "annotations": {label::ADOPT: "true"}}});
        let _: Namespace = admin.create_cluster_wide(adopt).await;
        let leader = by_token(world, "leader", SYSTEM, LEADER).await;
        let given = gives("kube-binder-some-x", &role, "some");
        passes(&leader, namespace, &bindings(), Do::Create(given)).await;
        for object in offer.iter().filter(|object| object.resource.kind.starts_with("ClusterRole")) {
            let gone = Do::Delete(object.name.clone());
            gone.by(&admin.client, EVERYWHERE, &object.resource).await.unwrap();
        }
        let gone = Do::Delete("kube-binder-some-x".into());
        gone.by(&leader, namespace, &bindings()).await.unwrap();
        assert!(admin.api::<RoleBinding>(namespace).get_opt("kube-binder-some-x").await.unwrap().is_none());
        admin.release_namespace(namespace).await;
        admin.take_crd(&offered.name()).await;
    });
}

/// Go's konnector watches the whole cluster also where all its objects are in its cluster namespace.
#[e2e::test]
fn a_consumer_reads_all_objects_of_a_converted_api_as_long_as_its_contract_is_marked() {
    BINDING.beside(async |world| {
        let (admin, offered) = (world.leader(), Offered::new("converteds", "Namespaced"));
        offer(admin, &offered, json!({label::ISOLATION: "Namespaced"})).await;
        let (cns, _) = contract(world, "converted", "converteds").await;
        let of = json!({"resources": [{"group": GROUP, "resource": "converteds"}]});
        assert_eq!(request(world, &cns, "converteds", of).await.0, Phase::Succeeded);
        let us = Consumer { client: by_token(world, "leader", &cns, "kube-binder").await, cns: cns.clone() };
        let kind = offered.api_resource();
        passes(&us.client, &cns, &kind, Do::Create(us.object("foo"))).await;
        let reading = [
            attempt("read all", &kind, Do::List, ""),
            attempt("write elsewhere", &kind, Do::Create(us.object("bar")), ""),
        ];
        try_all(&us.client, "default", &reading, is_wrong).await;

        let mark = |value: Value| json!({"metadata": {"annotations": {label::READS_ALL: value}}});
        let marked = |value| Do::Patch(cns.clone(), mark(value));
        marked(json!("true")).by(&admin.client, EVERYWHERE, &namespaces()).await.unwrap();
        passes(&us.client, EVERYWHERE, &kind, Do::List).await;
        try_all(&us.client, "default", &reading[1..], is_wrong).await;
        marked(Value::Null).by(&admin.client, EVERYWHERE, &namespaces()).await.unwrap();
        eventually("the right is taken back", || async {
            match Do::List.by(&us.client, EVERYWHERE, &kind).await {
                Err(refusal) if refusal.is_deliberate() => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        passes(&us.client, &cns, &kind, Do::List).await;
        admin.delete::<APIServiceExport>(&cns, "converteds").await;
        admin.release_namespace(&cns).await;
        admin.take_crd(&offered.name()).await;
    });
}
