//! Members and consumers wait in queues of their own at the leader's API server (issue 14, floods): which FlowSchema the API server uses for whom.

use e2e::{
    account::by_token,
    binding::{
        BINDING, Offered,
        provider::{contract, offer},
    },
    fixture::AREA,
    waiting::eventually,
};
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::{Api, Client, ResourceExt, client::Body};
use serde_json::json;

use crate::rights::parties::shared;

const LEVEL: &str = "freeport-members";

#[e2e::test]
fn requests_of_members_and_of_nobody_else_are_on_their_level() {
    shared(async |parties| {
        let admin = &parties.world.leader().client;
        let schema = Api::<FlowSchema>::all(admin.clone()).get(AREA).await.unwrap();
        let level = Api::<PriorityLevelConfiguration>::all(admin.clone()).get(LEVEL).await.unwrap();
        assert_eq!(schema.spec.priority_level_configuration.name, LEVEL);
        let (schema, level) = (schema.uid().unwrap(), level.uid().unwrap());
        eventually("requests of a member are on the level", || async {
            match classified(&parties.east).await {
                found if found == (schema.clone(), level.clone()) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        for other in [admin, &parties.member] {
            let (used, on) = classified(other).await;
            assert_ne!(used, schema);
            assert_ne!(on, level);
        }
    });
}

#[e2e::test]
fn requests_of_a_consumer_are_on_the_level_of_members() {
    BINDING.beside(async |world| {
        let (admin, offered) = (world.leader(), Offered::new("fairs", "Namespaced"));
        offer(admin, &offered, json!({})).await;
        let (cns, _) = contract(world, "fair", "fairs").await;
        let level = Api::<PriorityLevelConfiguration>::all(admin.client.clone()).get(LEVEL).await.unwrap();
        let consumer = by_token(world, "leader", &cns, "kube-binder").await;
        let schemas = Api::<FlowSchema>::all(admin.client.clone());
        eventually("requests of a consumer are on the level", || async {
            let schema = schemas.get(&cns).await.map_err(|error| error.to_string())?;
            let found = classified(&consumer).await;
            if found == (schema.uid().unwrap(), level.uid().unwrap()) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
        admin.release_namespace(&cns).await;
        admin.take_crd(&offered.name()).await;
    });
}

/// The uids of FlowSchema and PriorityLevelConfiguration that the API server used for a request of this client, whatever its answer.
async fn classified(client: &Client) -> (String, String) {
    let path = format!("/api/v1/namespaces/{AREA}/configmaps");
    let request = http::Request::get(path).body(Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    (header("x-kubernetes-pf-flowschema-uid"), header("x-kubernetes-pf-prioritylevel-uid"))
}
