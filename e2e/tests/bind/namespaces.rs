//! Namespaces that a request names: the provider makes their APIServiceNamespaces itself, and the consumer has them.

use api::bind::{
    export::{APIServiceNamespace, Phase},
    label,
    offer::APIServiceExportTemplate,
};
use cli::objects::bind;
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says, install,
        provider::{contract, offer, request},
    },
    seen::event,
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::konnector::unbind;

#[e2e::test(real)]
fn a_namespace_that_the_provider_wants_is_made_if_the_consumer_lets_it() {
    const WANTED: &str = "bind-wanted";
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("wanting", "Namespaced");
        offer(leader, &offered, json!({})).await;
        let namespaces = json!([{"name": WANTED}]);
        let templates = Api::<APIServiceExportTemplate>::all(leader.client.clone());
        let more = Patch::Merge(json!({"spec": {"namespaces": namespaces}}));
        templates.patch("wanting", &PatchParams::default(), &more).await.unwrap();
        let (cns, kubeconfig) = contract(world, "wanting-east", "wanting").await;
        let of = |namespaces| {
            json!({"resources": [{"group": offered.resource().group, "resource": "wanting"}], "namespaces": namespaces})
        };
        let other = request(world, &cns, "other", of(json!([{"name": "kube-system"}]))).await;
        assert_eq!(other, (Phase::Failed, "NotGranted".into()));
        assert_eq!(request(world, &cns, "wanting", of(namespaces)).await, (Phase::Succeeded, String::new()));
        let asked = leader.api::<APIServiceNamespace>(&cns);
        assert_eq!(asked.get(WANTED).await.unwrap().labels()[label::OWNER], "provider");

        bind_with(east, "wanting", &offered, kubeconfig).await;
        eventually("it must not be made", || event(east, "default", "wanting", "NamespaceNotMade")).await;
        let here = Api::<Namespace>::all(east.client.clone());
        assert!(here.get_opt(WANTED).await.unwrap().is_none());
        install(east, &bind::namespaces("wanting", &[WANTED])).await;
        eventually("it is made", || async {
            let there = here.get_opt(WANTED).await.unwrap().ok_or_else(|| world.log_tail("freeport-member-east"))?;
            let owner = there.labels().get(label::OWNER).map(String::as_str);
            if owner == Some("provider") { Ok(()) } else { Err(format!("{:?}", there.metadata)) }
        })
        .await;
        offered.create(east, Some(WANTED), "foo", json!({"spec": {"size": "l"}})).await;
        let there = offered.objects(leader, Some(&format!("{cns}-{WANTED}")));
        becomes("is at the provider", &there, "foo", |_| true).await;
        binding_says(world, "east", "wanting", "Ready", "True", "").await;

        // It is the provider's to end, and what is here is the consumer's.
        unbind(world, "east", &offered).await;
        assert!(asked.get(WANTED).await.unwrap().metadata.deletion_timestamp.is_none());
        assert!(here.get(WANTED).await.unwrap().metadata.deletion_timestamp.is_none());
        leader.release_namespace(&cns).await;
        world.release(WANTED).await;
        leader.take_crd(&offered.name()).await;
    });
}
