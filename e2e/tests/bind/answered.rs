//! Who asks for a contract is answered, also where there is no room for the answer at first; and the question goes when its time is over.

use api::bind::{
    export::Phase,
    offer::{BindableResourcesRequest, BindableResourcesRequestStatus},
};
use cli::objects::SYSTEM;
use e2e::{
    binding::{
        BINDING, Offered,
        provider::{contract, offer},
    },
    cluster::Cluster,
    waiting::eventually,
};
use k8s_openapi::api::core::v1::{ResourceQuota, Secret};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use super::lifecycle::goes;

/// Asks for a contract by the template of this name, under its name.
async fn ask(leader: &Cluster, name: &str, stays: Option<&str>) {
    let spec = json!({"clusterIdentity": {"identity": name}, "author": "me", "templateRef": {"name": name},
        "ttlAfterFinished": stays});
    let _: BindableResourcesRequest =
        leader.create(SYSTEM, json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn says(
    asks: &Api<BindableResourcesRequest>,
    name: &str,
    is_so: impl Fn(&BindableResourcesRequestStatus) -> bool,
) {
    eventually(&format!("BindableResourcesRequest {name} says it"), || async {
        let status = asks.get(name).await.unwrap().status.unwrap_or_default();
        if is_so(&status) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

#[e2e::test]
fn a_question_goes_with_its_answer_when_its_time_is_over_and_the_contract_stays() {
    BINDING.beside(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("brief", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let (asks, secrets) = (leader.api::<BindableResourcesRequest>(SYSTEM), leader.api::<Secret>(SYSTEM));
        ask(leader, "brief", Some("2s")).await;
        goes(&asks, "brief").await;
        goes(&secrets, "brief-binding-response").await;

        // Another question is answered from the contract that there is, and stays: it does not say for how long.
        let (cns, _) = contract(world, "brief", "brief").await;
        assert!(asks.get_opt("brief-brief").await.unwrap().is_some());
        leader.delete::<BindableResourcesRequest>(SYSTEM, "brief-brief").await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn an_answer_for_which_a_quota_has_no_room_is_given_when_there_is_some() {
    const QUOTA: &str = "no-answers";
    // Nobody else gets a Secret there meanwhile.
    BINDING.alone(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("roomless", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let (asks, secrets) = (leader.api::<BindableResourcesRequest>(SYSTEM), leader.api::<Secret>(SYSTEM));
        let quota = json!({"metadata": {"name": QUOTA}, "spec": {"hard": {"count/secrets": "0"}}});
        let _: ResourceQuota = leader.create(SYSTEM, quota).await;
        eventually("the quota holds", || async {
            let quota = leader.api::<ResourceQuota>(SYSTEM).get(QUOTA).await.map_err(|e| e.to_string())?;
            quota.status.and_then(|status| status.hard).map(drop).ok_or_else(|| "no status".to_owned())
        })
        .await;
        ask(leader, "roomless", None).await;
        says(&asks, "roomless", |status| {
            let said = &mut status.conditions.iter();
            let is_said =
                said.any(|said| said.reason == "Refused" && said.message.contains("exceeded quota"));
            status.phase == Phase::Pending && is_said
        })
        .await;
        leader.delete::<ResourceQuota>(SYSTEM, QUOTA).await;
        says(&asks, "roomless", |status| status.phase == Phase::Succeeded).await;
        let cns = asks.get("roomless").await.unwrap().status.and_then(|status| status.namespace).unwrap();
        asks.delete("roomless", &DeleteParams::default()).await.unwrap();
        goes(&secrets, "roomless-binding-response").await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}
