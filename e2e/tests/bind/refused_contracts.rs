//! Issue 38, 4: each write for a new contract is refused by the provider's API server. The leader's ClusterSet reports it, and when it is accepted
//! the contract is made, without a restart.

use api::{
    bind::{
        binding::APIServiceBinding,
        export::{APIServiceNamespace, Phase},
        offer::BindableResourcesRequest,
    },
    cluster_set::WRITES_ACCEPTED,
    label::CLUSTER_UID,
};
use cli::objects::SYSTEM;
use e2e::{
    binding::{
        BINDING, Offered, becomes, binding_says,
        provider::{contract_for, granted, offer},
    },
    cluster_set::status,
    fixture::AREA,
    forbidden::{NOT_THIS_ONE, forbid_all, permit_all},
    waiting::eventually,
    walk::{
        binding::{CONTRACTS, OF_CONSUMERS},
        reported::counted,
    },
    world::World,
};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use super::refused_writes::{bind_by, keep, says_refused};

/// Waits until the leader's ClusterSet reports, or does not report, that writes of this kind are refused.
async fn reports(world: &World, kind: &str, is_refused: bool) {
    eventually(&format!("WritesAccepted is about {kind}: {is_refused}"), || async {
        let conditions = status(world.leader(), AREA).await?.conditions;
        let said = conditions.into_iter().find(|said| said.type_.as_deref() == Some(WRITES_ACCEPTED));
        let said = said.ok_or("not reported")?;
        let message = said.message.clone().unwrap_or_default();
        let names = message.contains(kind) && message.contains(NOT_THIS_ONE);
        match (said.status.as_deref(), is_refused) {
            (Some("False"), true) if names => Ok(()),
            (Some("True"), false) => Ok(()),
            _ => Err(format!("{said:?}")),
        }
    })
    .await;
}

#[e2e::test]
fn each_write_for_a_contract_that_is_refused_is_reported_and_done_when_it_is_accepted() {
    BINDING.alone(async |world| {
        let leader = world.leader();
        let apis = ["contracts", "others"].map(|name| Offered::new(name, "Namespaced"));
        for offered in &apis {
            offer(leader, offered, json!({})).await;
        }
        let asks = leader.api::<BindableResourcesRequest>(SYSTEM);
        for (number, refused) in CONTRACTS.iter().enumerate() {
            forbid_all(world, refused).await;
            // A change is for who has a contract.
            let of = if refused.operation == "create" { (number, 0) } else { (number - 1, 1) };
            let name = format!("refused-{number}");
            let spec = json!({"clusterIdentity": {"identity": format!("refused-{}", of.0)}, "author": "me",
                "templateRef": {"name": apis[of.1].plural}});
            let _: BindableResourcesRequest =
                leader.create(SYSTEM, json!({"metadata": {"name": name}, "spec": spec})).await;
            counted(world, &[*refused]).await;
            reports(world, refused.kind, true).await;
            permit_all(world, refused).await;
            eventually(&format!("the contract is made after {refused:?}"), || async {
                let status = asks.get(&name).await.unwrap().status.unwrap_or_default();
                if status.phase == Phase::Succeeded { Ok(()) } else { Err(format!("{status:?}")) }
            })
            .await;
            reports(world, refused.kind, false).await;
        }
        for offered in &apis {
            leader.take_crd(&offered.name()).await;
        }
    });
}

#[e2e::test]
fn each_write_about_a_contract_that_is_refused_is_reported_on_its_bindings() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let api = Offered::new("consumed", "Namespaced");
        let (cns, kubeconfig) = contract_for(world, "consumes", &[&api]).await;
        granted(world, &cns, &api).await;
        keep(east, &api.plural, &kubeconfig).await;
        bind_by(east, &api, &api.plural).await;
        binding_says(world, "east", &api.plural, "Ready", "True", "").await;
        let ns = &world.namespace("bind-consumed", &["east"]).await;
        api.create(east, Some(ns), "one", json!({"spec": {"size": "l"}})).await;
        becomes("is there", &api.objects(leader, Some(&format!("{cns}-{ns}"))), "one", |_| true).await;

        for refused in OF_CONSUMERS {
            forbid_all(world, refused).await;
            if refused.resource == "apiservicenamespaces" {
                let none = json!({"metadata": {"annotations": {CLUSTER_UID: null}}});
                let _: APIServiceNamespace = leader.patch(&cns, ns, &none).await;
                // A copy shows that it is for this cluster.
                api.create(east, Some(ns), "two", json!({"spec": {"size": "l"}})).await;
            }
            counted(world, &[*refused]).await;
            let conditions = async || {
                let there =
                    Api::<APIServiceBinding>::all(east.client.clone()).get(&api.plural).await.unwrap();
                there.status.map(|status| status.conditions).unwrap_or_default()
            };
            says_refused(refused.kind, conditions, WRITES_ACCEPTED).await;
            permit_all(world, refused).await;
            binding_says(world, "east", &api.plural, WRITES_ACCEPTED, "True", "").await;
        }
        Api::<APIServiceBinding>::all(east.client.clone())
            .delete(&api.plural, &DeleteParams::default())
            .await
            .unwrap();
        eventually("the binding is gone", || async {
            let left = Api::<APIServiceBinding>::all(east.client.clone()).get_opt(&api.plural).await.unwrap();
            left.map_or(Ok(()), |left| Err(format!("{:?}", left.status)))
        })
        .await;
        world.release(ns).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&api.name()).await;
    });
}
