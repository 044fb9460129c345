//! The provider ends a contract while its APIs are used (B15).

use api::bind::{bound_schema::BoundSchema, export::APIServiceNamespace};
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract, granted, offer},
        vanishes,
    },
    cluster::Cluster,
    waiting::eventually,
};
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::ClusterRoleBinding};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;

use super::commands::freeport;

/// What is left of a consumer at the provider: Namespaces, and rights on the whole cluster.
pub(super) async fn left(leader: &Cluster, cns: &str) -> Vec<String> {
    let all = ListParams::default();
    let namespaces = Api::<Namespace>::all(leader.client.clone()).list(&all).await.unwrap();
    let namespaces = namespaces.iter().map(ResourceExt::name_any).filter(|name| name.starts_with(cns));
    let rights = Api::<ClusterRoleBinding>::all(leader.client.clone()).list(&all).await.unwrap();
    let is_theirs = |binding: &&ClusterRoleBinding| {
        binding.subjects.iter().flatten().any(|subject| subject.namespace.as_deref() == Some(cns))
    };
    namespaces.chain(rights.iter().filter(is_theirs).map(ResourceExt::name_any)).collect()
}

/// What a consumer may try in order to stay, were it not refused: a finalizer of its own, and more metadata than anybody reads.
async fn hold_on(leader: &Cluster, cns: &str, ns: &str) {
    let namespaces = leader.api::<APIServiceNamespace>(cns);
    let mut finalizers = namespaces.get(ns).await.unwrap().metadata.finalizers.unwrap_or_default();
    finalizers.push("example.com/stay".into());
    let owner = |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x".repeat(200), "uid": format!("00000000-0000-4000-8000-{n:012}")});
    let metadata =
        json!({"finalizers": finalizers, "ownerReferences": (0..40).map(owner).collect::<Vec<_>>()});
    let _: APIServiceNamespace = leader.patch(cns, ns, &json!({"metadata": metadata})).await;
}

#[e2e::test(real)]
fn b15_a_consumer_that_is_evicted_leaves_nothing_at_the_provider_and_is_told() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (near, far) = (Offered::new("evictnears", "Namespaced"), Offered::new("evictfars", "Cluster"));
        let mut credential = None;
        for offered in [&near, &far] {
            offer(leader, offered, json!({})).await;
            let (cns, kubeconfig) = contract(world, "evict-east", &offered.plural).await;
            granted(world, &cns, offered).await;
            bind_with(east, &offered.plural, offered, kubeconfig).await;
            credential = Some(cns);
        }
        let cns = credential.unwrap();
        let ns = world.namespace("bind-evict", &["east"]).await;
        near.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
        far.create(east, None, "foo", json!({"spec": {"size": "l"}})).await;
        let copy = format!("{cns}-foo");
        becomes("is at the provider", &near.objects(leader, Some(&format!("{cns}-{ns}"))), "foo", |_| true)
            .await;
        becomes("is at the provider", &far.objects(leader, None), &copy, |_| true).await;
        assert!(left(leader, &cns).await.len() > 2, "two Namespaces, and rights");

        hold_on(leader, &cns, &ns).await;
        leader.delete::<BoundSchema>(&cns, &far.name()).await;
        leader.release_namespace(&cns).await;
        for offered in [&near, &far] {
            binding_says(world, "east", &offered.plural, "Connected", "False", "Evicted").await;
        }
        eventually("nothing is left of the consumer", || async {
            let left = left(leader, &cns).await;
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        vanishes(&far.objects(leader, None), &copy).await;
        for (offered, ns) in [(&near, Some(ns.as_str())), (&far, None)] {
            let object = offered.objects(east, ns).get("foo").await.unwrap();
            assert_eq!(object.metadata.deletion_timestamp, None, "what the consumer has is its own");
            freeport(world, &format!("remove {} --context east --force", offered.plural)).await.succeeded();
            assert!(east.crds().get_opt(&offered.name()).await.unwrap().is_none());
        }
        world.release(&ns).await;
        for offered in [&near, &far] {
            leader.take_crd(&offered.name()).await;
        }
    });
}
