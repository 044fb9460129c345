//! Vectors of the reference (section 6) that need API servers.

use api::bind::{
    binding::ClusterBinding,
    resource::{InformerScope, Isolation},
};
use e2e::{
    binding::{BINDING, CREDENTIALS, Offered, becomes, bind_with, binding_says, kubeconfig, vanishes},
    seen::event,
    waiting::{always, eventually},
};
use k8s_openapi::{
    ByteString, api::core::v1::Secret,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{backend::Backend, konnector::unbind};

/// An API that is kept in step in a version without the subresource `status`; users have another version besides.
fn two_versions() -> Offered {
    let mut offered = Offered::new("doubles", "Cluster");
    let first = &mut offered.crd.spec.versions[0];
    first.subresources = None;
    let second = CustomResourceDefinitionVersion { name: "v2".into(), storage: false, ..first.clone() };
    offered.crd.spec.versions.push(second);
    offered
}

#[e2e::test]
fn t11_t20_a_status_without_a_subresource_and_users_of_another_version() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = two_versions();
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Cluster)).await;
        bind_with(east, "doubles", &offered, kubeconfig).await;
        binding_says(world, "east", "doubles", "Ready", "True", "").await;
        let second = ApiResource {
            version: "v2".into(),
            api_version: offered.api_resource().api_version.replace("v1", "v2"),
            ..offered.api_resource()
        };
        let here = Api::<DynamicObject>::all_with(east.client.clone(), &second);
        let object =
            DynamicObject { data: json!({"spec": {"size": "l"}}), ..DynamicObject::new("foo", &second) };
        here.create(&PostParams::default(), &object).await.unwrap();
        let (there, copy) = (offered.objects(leader, None), format!("{}-foo", backend.cluster_namespace));
        becomes("is at the provider", &there, &copy, |copy| copy.data["spec"]["size"] == "l").await;
        let status = Patch::Merge(json!({"status": {"phase": "Ready", "n": null}}));
        there.patch(&copy, &PatchParams::default(), &status).await.unwrap();
        becomes("has the status", &here, "foo", |object| object.data["status"]["phase"] == "Ready").await;
        let change = Patch::Merge(json!({"spec": {"size": "s"}}));
        here.patch("foo", &PatchParams::default(), &change).await.unwrap();
        let changed = becomes("is changed", &there, &copy, |copy| copy.data["spec"]["size"] == "s").await;
        assert_eq!(changed.data["status"]["phase"], "Ready");
        here.delete("foo", &DeleteParams::default()).await.unwrap();
        vanishes(&there, &copy).await;
        vanishes(&here, "foo").await;
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

/// The largest text, of some, with which the consumer's API server takes the object.
async fn as_large_as_can_be(here: &Api<DynamicObject>, offered: &Offered) {
    // What an object may have, and what it has besides its text.
    let mut length = (3 << 19) - 600;
    loop {
        let text = "x".repeat(length);
        let object = offered.object("large", json!({"spec": {"free": {"text": text}}}));
        match here.create(&PostParams::default(), &object).await {
            Ok(_) => return,
            Err(error) => e2e::note!("{length}: {error}"),
        }
        length -= 50;
    }
}

#[e2e::test(real)]
fn t15_what_is_too_large_for_the_provider_is_said_and_the_others_go_on() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "larges").await;
        binding_says(world, "east", "larges", "Ready", "True", "").await;
        let here = offered.objects(east, None);
        as_large_as_can_be(&here, &offered).await;
        binding_says(world, "east", "larges", "Synced", "False", "Refused").await;
        eventually("an Event says it", || event(east, "default", "large", "Refused")).await;
        offered.create(east, None, "small", json!({"spec": {"size": "l"}})).await;
        let there = offered.objects(leader, None);
        let copy = |name: &str| format!("{}-{name}", backend.cluster_namespace);
        becomes("goes up meanwhile", &there, &copy("small"), |_| true).await;
        here.delete("large", &DeleteParams::default()).await.unwrap();
        vanishes(&here, "large").await;
        binding_says(world, "east", "larges", "Synced", "True", "").await;
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn x4_an_object_that_is_made_again_waits_for_the_end_of_the_old_copy() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "remades").await;
        offered.create(east, None, "foo", json!({"spec": {"size": "l"}})).await;
        let (here, there) = (offered.objects(east, None), offered.objects(leader, None));
        let copy = format!("{}-foo", backend.cluster_namespace);
        let old = becomes("is at the provider", &there, &copy, |_| true).await;
        becomes("knows its copy", &here, "foo", |object| {
            object.annotations().contains_key("kube-bind.io/provider-uid")
        })
        .await;
        let hold = Patch::Merge(json!({"metadata": {"finalizers": ["operator/f"]}}));
        there.patch(&copy, &PatchParams::default(), &hold).await.unwrap();
        here.delete("foo", &DeleteParams::default()).await.unwrap();
        becomes("is being deleted", &there, &copy, |copy| copy.metadata.deletion_timestamp.is_some()).await;
        let force = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        here.patch("foo", &PatchParams::default(), &force).await.unwrap();
        offered.create(east, None, "foo", json!({"spec": {"size": "s"}})).await;
        always("the old copy is left alone", || async {
            let is = there.get(&copy).await.map_err(|error| error.to_string())?;
            let is_old = is.uid() == old.uid() && is.data["spec"]["size"] == "l";
            is_old.then_some(()).ok_or_else(|| json!(is).to_string())
        })
        .await;
        there.patch(&copy, &PatchParams::default(), &force).await.unwrap();
        let new =
            becomes("has a copy of its own", &there, &copy, |copy| copy.data["spec"]["size"] == "s").await;
        assert_ne!(new.uid(), old.uid());
        assert_eq!(
            Some(&new.annotations()["kube-bind.io/consumer-uid"]),
            here.get("foo").await.unwrap().uid().as_ref()
        );
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn b12_a_credential_is_replaced_on_change_and_never_by_one_that_cannot_be_used() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("rotated", "Cluster");
        offered.install(leader).await;
        let (backend, first) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Cluster)).await;
        let cns = backend.cluster_namespace.as_str();
        bind_with(east, "rotated", &offered, first.clone()).await;
        binding_says(world, "east", "rotated", "Ready", "True", "").await;
        let ours = east.api::<Secret>(CREDENTIALS);
        let theirs = async |kubeconfig: &[u8]| {
            let data = json!({"data": {"kubeconfig": ByteString(kubeconfig.to_vec())}});
            let _: Secret = leader.patch(cns, "kubeconfig", &data).await;
        };
        let have = async || ours.get("rotated").await.unwrap();
        let before = have().await;
        let mut elsewhere: Value = serde_json::from_slice(&first.0).unwrap();
        elsewhere["contexts"][0]["context"]["namespace"] = json!("default");
        // Nobody listens there.
        let mut nowhere: Value = serde_json::from_slice(&first.0).unwrap();
        nowhere["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:9");
        let wrong = [elsewhere.to_string(), nowhere.to_string()].map(String::into_bytes);
        for wrong in [b"nothing".to_vec()].into_iter().chain(wrong).chain([first.0.clone()]) {
            theirs(&wrong).await;
            always("ours stays", || async {
                let is = have().await.metadata.resource_version;
                if is == before.metadata.resource_version { Ok(()) } else { Err(format!("{is:?}")) }
            })
            .await;
        }
        let second = kubeconfig(world, cns, "kube-binder").await;
        assert_ne!(second, first);
        theirs(&second.0).await;
        eventually("ours is the new one", || async {
            let is = have().await.data.unwrap_or_default()["kubeconfig"] == second;
            is.then_some(()).ok_or_else(|| world.log_tail("freeport-member-east"))
        })
        .await;
        offered.create(east, None, "foo", json!({"spec": {"size": "l"}})).await;
        let there = offered.objects(leader, None);
        becomes("goes up by the new one", &there, &format!("{cns}-foo"), |_| true).await;
        let beat = leader.api::<ClusterBinding>(cns).get("cluster").await.unwrap().status.unwrap();
        assert_eq!(beat.consumer_secret_ref.unwrap().name, "rotated");
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}
