//! A provider that is frozen: connections to it stay open, or are accepted, and nothing answers.

use api::bind::binding::APIServiceBinding;
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract_for, granted},
    },
    waiting::{FROZEN, within},
};
use kube::Api;
use serde_json::json;

use super::konnector::unbind;

#[e2e::test(real)]
fn a_provider_that_is_frozen_is_said_and_when_it_goes_on_so_do_objects() {
    BINDING.alone(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        let offered = Offered::new("icicles", "Namespaced");
        let (cns, kubeconfig) = contract_for(world, "iced-west", &[&offered]).await;
        granted(world, &cns, &offered).await;
        bind_with(west, "icicles", &offered, kubeconfig).await;
        let ns = world.namespace("bind-iced", &["west"]).await;
        let there = offered.objects(leader, Some(&format!("{cns}-{ns}")));
        offered.create(west, Some(&ns), "before", json!({"spec": {"size": "l"}})).await;
        becomes("is at the provider", &there, "before", |_| true).await;
        binding_says(world, "west", "icicles", "Heartbeating", "True", "").await;

        let server = world.real().fleet.cluster("leader").unwrap();
        server.pause().await.unwrap();
        let bindings = Api::<APIServiceBinding>::all(west.client.clone());
        within(FROZEN, "that nobody answers is said", || async {
            let said = bindings.get("icicles").await.unwrap().status.unwrap_or_default().conditions;
            let is_so = |type_: &str, reason: &str| {
                said.iter().any(|said| said.type_ == type_ && said.reason.as_deref() == Some(reason))
            };
            let all_is_said = is_so("Connected", "ProviderUnavailable")
                && is_so("Heartbeating", "ClusterBindingUpdateFailed");
            if all_is_said { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        offered.create(west, Some(&ns), "meanwhile", json!({"spec": {"size": "l"}})).await;
        server.resume().await.unwrap();
        binding_says(world, "west", "icicles", "Connected", "True", "").await;
        becomes("is at the provider", &there, "meanwhile", |_| true).await;
        unbind(world, "west", &offered).await;
        world.release(&ns).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}
