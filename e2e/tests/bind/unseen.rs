//! What the provider does not let the konnector see is said, and stops nothing else (C21, X8).

use api::bind::{
    binding::APIServiceBinding,
    resource::{InformerScope, Isolation},
};
use cli::objects::bind;
use e2e::{
    binding::{BINDING, Offered, becomes, bind_with, binding_says, install, vanishes},
    daemon::End,
    seen::event,
    waiting::eventually,
};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::{backend::Backend, konnector::unbind};

#[e2e::test(real)]
fn c21_x8_a_missing_right_and_an_api_that_is_not_served_are_said() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("unseens", "Namespaced");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Namespaced)).await;
        bind_with(east, "unseens", &offered, kubeconfig).await;
        let seen = world.namespace("bind-seen", &["east"]).await;
        let unseen = world.namespace("bind-unseen", &["east"]).await;
        let spec = || json!({"spec": {"size": "l"}});
        offered.create(east, Some(&seen), "foo", spec()).await;
        let there = offered.objects(leader, Some(&backend.assign(&seen).await));
        becomes("is at the provider", &there, "foo", |_| true).await;

        let role = format!("freeport-bind-{}", offered.name());
        let within = format!("{}-{seen}", backend.cluster_namespace);
        let _: RoleBinding = leader.create(&within, backend.role_binding(&role)).await;
        let rights = Api::<ClusterRoleBinding>::all(leader.client.clone());
        let right = rights.get(&format!("{role}-{}", backend.cluster_namespace)).await.unwrap();
        rights.delete(right.metadata.name.as_ref().unwrap(), &DeleteParams::default()).await.unwrap();
        offered.create(east, Some(&unseen), "bar", spec()).await;
        let hidden = offered.objects(leader, Some(&backend.assign(&unseen).await));
        binding_says(world, "east", "unseens", "Synced", "False", "NotWatched").await;
        eventually("an Event says it", || event(east, &unseen, "bar", "NotWatched")).await;
        let change = Patch::Merge(json!({"spec": {"size": "s"}}));
        let here = offered.objects(east, Some(&seen));
        here.patch("foo", &PatchParams::default(), &change).await.unwrap();
        becomes("goes on", &there, "foo", |copy| copy.data["spec"]["size"] == "s").await;
        let mut again = right;
        again.metadata.resource_version = None;
        rights.create(&Default::default(), &again).await.unwrap();
        becomes("is at the provider", &hidden, "bar", |_| true).await;
        binding_says(world, "east", "unseens", "Synced", "True", "").await;

        leader.take_crd(&offered.name()).await;
        binding_says(world, "east", "unseens", "Synced", "False", "NotServed").await;
        offered.install(leader).await;
        binding_says(world, "east", "unseens", "Synced", "True", "").await;
        becomes("is at the provider again", &there, "foo", |_| true).await;
        unbind(world, "east", &offered).await;
        for namespace in [seen, unseen] {
            world.release(&namespace).await;
        }
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

/// X8, where no watch of this konnector has ever told what is there.
#[e2e::test]
fn x8_of_an_api_that_is_not_served_when_the_konnector_starts_what_is_deleted_goes() {
    const KONNECTOR: &str = "freeport-member-east";
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "unserveds").await;
        let (here, there) = (offered.objects(east, None), offered.objects(leader, None));
        for name in ["deleted", "kept"] {
            offered.create(east, None, name, json!({"spec": {"size": "l"}})).await;
            let copy = format!("{}-{name}", backend.cluster_namespace);
            becomes("is at the provider", &there, &copy, |_| true).await;
        }
        world.end(KONNECTOR, End::Stop).await;
        here.delete("deleted", &DeleteParams::default()).await.unwrap();
        leader.take_crd(&offered.name()).await;
        world.start(KONNECTOR).await;
        binding_says(world, "east", "unserveds", "Synced", "False", "NotServed").await;
        vanishes(&here, "deleted").await;
        eventually("an Event says it", || event(east, "default", "unserveds", "CopiesMayStay")).await;
        let kept = here.get("kept").await.unwrap().metadata;
        assert!(kept.deletion_timestamp.is_none() && kept.finalizers.is_some(), "{kept:?}");
        unbind(world, "east", &offered).await;
        backend.release().await;
    });
}

/// Whoever agreed to the API in the consumer's cluster takes that back.
#[e2e::test(real)]
fn a_right_that_is_taken_back_here_is_said_and_everything_goes_on_with_it() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "takebacks").await;
        binding_says(world, "east", "takebacks", "Ready", "True", "").await;
        let rights = Api::<ClusterRoleBinding>::all(east.client.clone());
        rights.delete(&format!("freeport-bound-{}", offered.name()), &Default::default()).await.unwrap();
        // It is asked once a minute, and when something is refused.
        offered.create(east, None, "foo", json!({"spec": {"size": "l"}})).await;
        binding_says(world, "east", "takebacks", "InformersSynced", "False", "NotPermitted").await;
        binding_says(world, "east", "takebacks", "Ready", "False", "NotPermitted").await;
        eventually("an Event says it", || event(east, "default", "takebacks", "NotPermitted")).await;
        install(east, &bind::bound(&offered.resource())).await;
        binding_says(world, "east", "takebacks", "Ready", "True", "").await;
        let copy = format!("{}-foo", backend.cluster_namespace);
        becomes("is at the provider", &offered.objects(leader, None), &copy, |_| true).await;
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

/// The copy is still there, in another version than the one that is kept in step.
#[e2e::test]
fn x8_of_an_api_that_is_served_in_another_version_what_is_deleted_takes_its_copy_along() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "supersedes").await;
        let (here, there) = (offered.objects(east, None), offered.objects(leader, None));
        offered.create(east, None, "foo", json!({"spec": {"size": "l"}})).await;
        let copy = format!("{}-foo", backend.cluster_namespace);
        becomes("is at the provider", &there, &copy, |_| true).await;

        let had = leader.crd_versions(&offered.name()).await;
        let (mut old, mut new) = (had[0].clone(), had[0].clone());
        (old["served"], old["storage"], new["name"]) = (json!(false), json!(false), json!("v2"));
        leader.install_crd_versions(&offered.name(), &json!([old, new])).await;
        let mut resource = offered.api_resource();
        (resource.version, resource.api_version) = ("v2".into(), format!("{}/v2", resource.group));
        let newer = Api::<DynamicObject>::all_with(leader.client.clone(), &resource);
        eventually("the provider serves the new version alone", || async {
            let copy = newer.get(&copy).await.map_err(|error| error.to_string())?;
            there.get(&copy.name_any()).await.map_or(Ok(()), |copy| Err(format!("{copy:?}")))
        })
        .await;
        here.delete("foo", &DeleteParams::default()).await.unwrap();
        vanishes(&here, "foo").await;
        vanishes(&newer, &copy).await;
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn what_waits_for_a_namespace_of_a_provider_that_gives_none_is_said() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("unassigneds", "Namespaced");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Namespaced)).await;
        bind_with(east, "unassigneds", &offered, kubeconfig).await;
        let ns = world.namespace("bind-unassigned", &["east"]).await;
        for name in ["a", "b", "c", "d"] {
            offered.create(east, Some(&ns), name, json!({"spec": {"size": "l"}})).await;
        }
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        let names = ["a", "b", "c"].map(|name| format!("{ns}/{name}")).join(", ");
        eventually("the binding says how many, and names some", || async {
            let said = bindings.get("unassigneds").await.unwrap().status.unwrap_or_default().conditions;
            let synced = said.into_iter().find(|said| said.type_ == "Synced").unwrap_or_default();
            let message = synced.message.clone().unwrap_or_default();
            let is_said = synced.reason.as_deref() == Some("NotAssigned")
                && message.starts_with(&format!("4 not in step: {names} and 1 more"));
            if is_said { Ok(()) } else { Err(format!("{synced:?}")) }
        })
        .await;
        eventually("an Event says it", || event(east, &ns, "d", "NotAssigned")).await;
        let there = offered.objects(leader, Some(&backend.assign(&ns).await));
        becomes("is at the provider", &there, "d", |_| true).await;
        binding_says(world, "east", "unassigneds", "Synced", "True", "").await;
        unbind(world, "east", &offered).await;
        world.release(&ns).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}
