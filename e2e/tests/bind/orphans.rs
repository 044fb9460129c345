//! Copies that are to stay when what they are copies of goes.

use api::bind::{
    binding::APIServiceBinding,
    export::APIServiceNamespace,
    resource::{InformerScope, Isolation},
};
use e2e::{
    binding::{
        BINDING, CREDENTIALS, Offered, becomes, bind, bind_with, binding_says,
        provider::{contract_for, granted},
        vanishes,
    },
    cluster::Cluster,
    waiting::eventually,
    world::World,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::{
    backend::Backend,
    konnector::unbind,
    lifecycle::{goes, is_gone},
};

/// Copies are to stay when the binding goes.
async fn keep_copies(bindings: &Api<APIServiceBinding>, name: &str) {
    let annotations = json!({"multicluster.freeport.dev/deletion-policy": "Orphan"});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    bindings.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// A Namespace of the consumer goes, with its objects.
async fn release(world: &World, east: &Cluster, namespace: &str) {
    world.release(namespace).await;
    eventually("its Namespace is gone", || async {
        let going = east.namespaces_going().await?;
        if going.iter().any(|name| name.starts_with(namespace)) { Err(format!("{going:?}")) } else { Ok(()) }
    })
    .await;
}

/// The consumer binds an API of its contract and has an object `foo` in each of these Namespaces, with a copy.
async fn bound_with_copies(
    world: &World,
    (cns, kubeconfig): &(String, ByteString),
    offered: &Offered,
    namespaces: &[&String],
) {
    let (leader, east) = (world.leader(), world.cluster("east"));
    granted(world, cns, offered).await;
    bind_with(east, &offered.plural, offered, kubeconfig.clone()).await;
    for namespace in namespaces {
        offered.create(east, Some(namespace), "foo", json!({"spec": {"size": "l"}})).await;
        let there = offered.objects(leader, Some(&format!("{cns}-{namespace}")));
        becomes("is at the provider", &there, "foo", |_| true).await;
    }
}

/// Shows that the konnector has looked at what is there, and that copies of new objects go as ever.
async fn another_comes_and_goes(
    world: &World,
    offered: &Offered,
    namespace: Option<&str>,
    there: &Api<DynamicObject>,
) {
    let east = world.cluster("east");
    binding_says(world, "east", &offered.plural, "SchemaInSync", "True", "").await;
    offered.create(east, namespace, "another", json!({"spec": {"size": "l"}})).await;
    becomes("is at the provider", there, "another", |_| true).await;
    offered.objects(east, namespace).delete("another", &DeleteParams::default()).await.unwrap();
    vanishes(there, "another").await;
}

#[e2e::test]
fn copies_stay_also_where_that_is_said_right_before_the_binding_is_deleted() {
    const MANY: usize = 30;
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("lateorphans", "Namespaced");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Namespaced, InformerScope::Namespaced)).await;
        bind_with(east, "lateorphans", &offered, kubeconfig).await;
        for nth in 0..MANY {
            offered.create(east, None, &format!("o{nth}"), json!({"spec": {"size": "l"}})).await;
        }
        let there = offered.objects(leader, Some(&backend.cluster_namespace));
        let copies = async || there.list(&Default::default()).await.unwrap().items;
        eventually("all copies are there", || async {
            let is = copies().await.len();
            if is == MANY { Ok(()) } else { Err(is.to_string()) }
        })
        .await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        keep_copies(&bindings, "lateorphans").await;
        bindings.delete("lateorphans", &DeleteParams::default()).await.unwrap();
        is_gone(world, &offered).await;
        let left = copies().await;
        let live = left.iter().filter(|copy| copy.metadata.deletion_timestamp.is_none()).count();
        assert_eq!(live, MANY, "copies were deleted");
        bind(east, "lateorphans", &offered).await;
        another_comes_and_goes(world, &offered, None, &there).await;
        assert_eq!(copies().await.len(), MANY, "a binding missed objects that it never had");
        unbind(world, "east", &offered).await;
        assert_eq!(copies().await.len(), MANY);
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

/// As `kubectl delete --cascade=orphan` does: what the binding owns stays, and nothing holds it any more.
#[e2e::test]
fn a_binding_that_is_deleted_without_its_dependents_leaves_objects_and_copies() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("leftovers", "Namespaced");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Namespaced)).await;
        bind_with(east, "leftovers", &offered, kubeconfig).await;
        let ns = world.namespace("bind-leftovers", &["east"]).await;
        offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
        let there = offered.objects(leader, Some(&backend.assign(&ns).await));
        becomes("is at the provider", &there, "foo", |_| true).await;

        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        bindings.delete("leftovers", &DeleteParams::orphan()).await.unwrap();
        goes(&bindings, "leftovers").await;
        let here = offered.objects(east, Some(&ns));
        let object = here.get("foo").await.unwrap().metadata;
        assert_eq!((object.deletion_timestamp, object.finalizers), (None, None));
        assert!(there.get("foo").await.unwrap().metadata.deletion_timestamp.is_none());
        let asked = leader.api::<APIServiceNamespace>(&backend.cluster_namespace).get(&ns).await.unwrap();
        assert!(asked.metadata.deletion_timestamp.is_none(), "with it the provider would take the copy");
        here.delete("foo", &DeleteParams::default()).await.unwrap();
        vanishes(&here, "foo").await;
        east.take_crd(&offered.name()).await;
        east.delete::<Secret>(CREDENTIALS, "leftovers").await;
        backend.release().await;
        world.release(&ns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn copies_that_a_binding_left_stay_also_when_their_namespace_goes_here() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (leaves, stays) = (Offered::new("leaving", "Namespaced"), Offered::new("staying", "Namespaced"));
        let contract = contract_for(world, "leaves-east", &[&leaves, &stays]).await;
        let cns = &contract.0;
        let left = world.namespace("bind-left", &["east"]).await;
        let other = world.namespace("bind-other", &["east"]).await;
        bound_with_copies(world, &contract, &leaves, &[&left]).await;
        bound_with_copies(world, &contract, &stays, &[&other]).await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        keep_copies(&bindings, "leaving").await;
        unbind(world, "east", &leaves).await;

        // It is bound again. Its Namespace here is there, and not what the copy is of.
        let there = leaves.objects(leader, Some(&format!("{cns}-{left}")));
        bind(east, "leaving", &leaves).await;
        another_comes_and_goes(world, &leaves, Some(&left), &there).await;
        unbind(world, "east", &leaves).await;
        assert!(there.get("foo").await.unwrap().metadata.deletion_timestamp.is_none());

        // The second one shows that the konnector has looked at the first.
        let asked = leader.api::<APIServiceNamespace>(cns);
        release(world, east, &left).await;
        world.release(&other).await;
        goes(&asked, &other).await;
        assert!(asked.get(&left).await.unwrap().metadata.deletion_timestamp.is_none());
        assert!(there.get("foo").await.unwrap().metadata.deletion_timestamp.is_none());
        unbind(world, "east", &stays).await;
        assert!(
            asked.get(&left).await.unwrap().metadata.deletion_timestamp.is_none(),
            "another binding took it"
        );
        leader.release_namespace(cns).await;
        for offered in [&leaves, &stays] {
            leader.take_crd(&offered.name()).await;
        }
    });
}

/// The binding whose copies are to stay lives on, and its objects are gone.
#[e2e::test]
fn copies_that_are_left_stay_when_another_binding_or_their_namespace_here_goes() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (leaves, ends) = (Offered::new("keepers", "Namespaced"), Offered::new("enders", "Namespaced"));
        let contract = contract_for(world, "keeps-east", &[&leaves, &ends]).await;
        let cns = &contract.0;
        let left = world.namespace("bind-keeps", &["east"]).await;
        let both = world.namespace("bind-shared", &["east"]).await;
        let others =
            [world.namespace("bind-goes", &["east"]).await, world.namespace("bind-unused", &["east"]).await];
        let there =
            |offered: &Offered, namespace: &str| offered.objects(leader, Some(&format!("{cns}-{namespace}")));
        bound_with_copies(world, &contract, &leaves, &[&left, &both]).await;
        bound_with_copies(world, &contract, &ends, &[&both, &others[0], &others[1]]).await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        keep_copies(&bindings, "keepers").await;
        for namespace in [&left, &both] {
            let here = leaves.objects(east, Some(namespace));
            here.delete("foo", &DeleteParams::default()).await.unwrap();
            vanishes(&here, "foo").await;
        }
        let asked = leader.api::<APIServiceNamespace>(cns);
        let stays = async |namespace: &str| {
            let asked = asked.get(namespace).await.unwrap().metadata;
            assert!(asked.deletion_timestamp.is_none(), "with it the provider takes the copy in {namespace}");
            let copy = there(&leaves, namespace).get("foo").await.unwrap().metadata;
            assert!(copy.deletion_timestamp.is_none(), "{copy:?}");
        };

        release(world, east, &left).await;
        // What has no copies goes, and shows that the konnector has looked at the other one.
        world.release(&others[0]).await;
        goes(&asked, &others[0]).await;
        stays(&left).await;
        unbind(world, "east", &ends).await;
        goes(&asked, &others[1]).await;
        stays(&both).await;

        unbind(world, "east", &leaves).await;
        for namespace in [&both, &others[1]] {
            world.release(namespace).await;
        }
        leader.release_namespace(cns).await;
        for offered in [&leaves, &ends] {
            leader.take_crd(&offered.name()).await;
        }
    });
}

/// It has no Namespace that would keep it.
#[e2e::test]
fn a_copy_outside_of_namespaces_that_a_binding_left_stays_and_is_taken_over_by_its_object() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("widows", "Cluster");
        let contract = contract_for(world, "widows-east", &[&offered]).await;
        bound_with_copies(world, &contract, &offered, &[]).await;
        let spec = || json!({"spec": {"size": "l"}});
        offered.create(east, None, "foo", spec()).await;
        let (there, copy) = (offered.objects(leader, None), format!("{}-foo", contract.0));
        let before = becomes("is at the provider", &there, &copy, |_| true).await.metadata;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        keep_copies(&bindings, "widows").await;
        unbind(world, "east", &offered).await;

        bind(east, "widows", &offered).await;
        binding_says(world, "east", "widows", "Ready", "True", "").await;
        offered.create(east, None, "other", spec()).await;
        becomes("is at the provider", &there, &format!("{}-other", contract.0), |_| true).await;
        let left = there.get(&copy).await.unwrap().metadata;
        assert_eq!((left.uid, left.deletion_timestamp), (before.uid.clone(), None));
        offered.create(east, None, "foo", spec()).await;
        becomes("is its copy again", &there, &copy, |copy| {
            let [had, has] = [&before, &copy.metadata]
                .map(|of| of.annotations.as_ref().and_then(|all| all.get("kube-bind.io/consumer-uid")));
            copy.metadata.uid == before.uid && has.is_some() && had != has
        })
        .await;
        unbind(world, "east", &offered).await;
        vanishes(&there, &copy).await;
        leader.release_namespace(&contract.0).await;
        leader.take_crd(&offered.name()).await;
    });
}
