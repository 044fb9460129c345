//! What the member may do to CRDs of its cluster: those of APIs that were agreed to, under a binding.

use api::{bind::binding::APIServiceBinding, label::MEMBER};
use cli::objects::bind;
use e2e::{
    account::by_token,
    binding::{BINDING, CREDENTIALS, Offered, install},
    fixture::SYSTEM,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams},
};
use serde_json::{Value, json};

use super::{attempt, is_wrong, note, passes, until_refused};
use crate::rights::attempt::{Do, EVERYWHERE, try_all};

/// The CRD as the member makes it for this binding.
fn crd(offered: &Offered, binding: &APIServiceBinding) -> Value {
    let mut crd = json!(offered.crd);
    crd["metadata"]["ownerReferences"] = json!([owner(binding)]);
    crd
}

fn owner(binding: &APIServiceBinding) -> Value {
    json!({
        "apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": binding.name_any(),
        "uid": binding.uid().unwrap(), "controller": true,
    })
}

#[e2e::test]
fn a_provider_brings_only_apis_that_were_agreed_to() {
    BINDING.beside(async |world| {
        let east = world.cluster("east");
        let (agreed, other) = (Offered::new("approveds", "Namespaced"), Offered::new("others", "Namespaced"));
        // Without its Secret the daemon installs nothing for it.
        let secret = json!({"namespace": CREDENTIALS, "name": "approveds", "key": "kubeconfig"});
        let binding: APIServiceBinding = east
            .create_cluster_wide(
                json!({"metadata": {"name": "approveds"}, "spec": {"kubeconfigSecretRef": secret}}),
            )
            .await;
        let member = by_token(world, "east", SYSTEM, MEMBER).await;
        let kind = ApiResource::erase::<CustomResourceDefinition>(&());
        let not_agreed = Do::DryCreate(crd(&other, &binding));
        until_refused(&member, EVERYWHERE, &kind, not_agreed.clone(), "is not agreed to").await;
        install(east, &bind::bound(&agreed.resource())).await;
        passes(&member, EVERYWHERE, &kind, Do::Create(crd(&agreed, &binding))).await;

        let mut nobodys = crd(&agreed, &binding);
        nobodys["metadata"]["ownerReferences"][0]["controller"] = json!(false);
        let services = || "serviceexports.multicluster.x-k8s.io".to_owned();
        let ours = || agreed.name();
        let controlled = json!({"metadata": {"ownerReferences": [owner(&binding)]}});
        let freed = json!({"metadata": {"ownerReferences": null}});
        let (uncontrolled, says) =
            ("no APIServiceBinding controls it", "must be controlled by an APIServiceBinding");
        let attempts = [
            attempt(
                "an API that nobody agreed to",
                &kind,
                not_agreed,
                "freeport-member may not create others.provider.example.com",
            ),
            attempt("a CRD of no binding", &kind, Do::DryCreate(json!(agreed.crd)), says),
            attempt("one that a binding does not control", &kind, Do::DryCreate(nobodys), says),
            attempt("change a CRD of Freeport's", &kind, Do::Patch(services(), note()), uncontrolled),
            attempt("make it the binding's", &kind, Do::Patch(services(), controlled), uncontrolled),
            attempt("delete it with its objects", &kind, Do::Delete(services()), uncontrolled),
            attempt("take the binding off", &kind, Do::Patch(ours(), freed), says),
        ];
        try_all(&member, EVERYWHERE, &attempts, is_wrong).await;
        for todo in [Do::Patch(ours(), note()), Do::Delete(ours())] {
            let done = todo.by(&member, EVERYWHERE, &kind).await;
            assert!(done.is_ok(), "{todo:?}: {done:?}");
        }
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        bindings.delete("approveds", &DeleteParams::default()).await.unwrap();
    });
}
