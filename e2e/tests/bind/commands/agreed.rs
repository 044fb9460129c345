//! What a provider exports beyond what somebody agreed to.

use api::bind::{binding::APIServiceBinding, export::Phase};
use e2e::{
    binding::{
        BINDING, GROUP, Offered, binding_says,
        provider::{contract, request},
    },
    cluster::Cluster,
};
use kube::Api;
use serde_json::json;

use super::{daemons, freeport, has_right, has_role};

const IDENTITY: &str = "west-agrees";
/// The member's right on the Namespaces that are asked for.
const NAMESPACES: &str = "freeport-bind-namespaces-agreeds";

/// Whether the consumer's member has rights on the APIs.
async fn have_rights(west: &Cluster, apis: [&Offered; 2]) -> [bool; 2] {
    [has_right(west, apis[0]).await, has_right(west, apis[1]).await]
}

#[e2e::test(real)]
fn an_export_with_more_than_was_agreed_to_is_refused_by_name_until_somebody_agrees() {
    BINDING.beside(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        let (agreed, more) = (Offered::new("agreeds", "Cluster"), Offered::new("mores", "Cluster"));
        for offered in [&agreed, &more] {
            offered.install(leader).await;
        }
        let (one, both) = (agreed.name(), format!("{} --resource {}", agreed.name(), more.name()));
        for (template, apis) in [("agreeds", one), ("agreeds-and-more", both)] {
            let offer = format!("offer {template} --context leader --resource {apis}");
            freeport(world, &offer).await.succeeded();
        }
        let (cns, kubeconfig) = contract(world, IDENTITY, "agreeds").await;
        contract(world, IDENTITY, "agreeds-and-more").await;
        // The provider grants more, and asks for it in the consumer's place.
        let all = json!({"resources": [agreed.resource(), more.resource()]});
        assert_eq!(request(world, &cns, "agreeds", all).await, (Phase::Succeeded, String::new()));

        // What its half says to the consumer has one API.
        let spec = json!({"resources": [agreed.resource()], "namespaces": [{"name": "bind-agreed"}]});
        let asked = json!({"spec": spec});
        let answer =
            json!({"kind": "BindingResourceResponse", "kubeconfig": kubeconfig, "requests": [asked]});
        let file = world.real().fleet.cluster("west").unwrap().dir().join("agreed.yaml");
        std::fs::write(&file, answer.to_string()).unwrap();
        let file = file.display();
        let consumer =
            format!("apiservice agreeds --only consumer -f {file} --context west {}", daemons(world, "west"));
        let named = format!("\"mores\" of group {GROUP:?}");
        freeport(world, &consumer).await.refused(&[&named, "--agree"]);
        assert_eq!(have_rights(west, [&agreed, &more]).await, [false, false]);
        let bindings = Api::<APIServiceBinding>::all(west.client.clone());
        assert!(bindings.get_opt("agreeds").await.unwrap().is_none());

        freeport(world, &format!("{consumer} --agree {}", more.name())).await.succeeded();
        binding_says(world, "west", "agreeds", "Ready", "True", "").await;
        assert!(has_role(west, NAMESPACES).await);
        for offered in [&agreed, &more] {
            assert!(west.crds().get_opt(&offered.name()).await.unwrap().is_some());
        }
        // What was agreed to once need not be said again.
        freeport(world, &consumer).await.succeeded();
        assert_eq!(have_rights(west, [&agreed, &more]).await, [true, true]);
        freeport(world, "remove agreeds --context west").await.succeeded();
        assert!(!has_role(west, NAMESPACES).await);
        assert_eq!(have_rights(west, [&agreed, &more]).await, [false, false]);
        leader.release_namespace(&cns).await;
        for offered in [&agreed, &more] {
            leader.take_crd(&offered.name()).await;
        }
    });
}
