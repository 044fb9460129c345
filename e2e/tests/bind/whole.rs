//! Our provider and our konnector: from the request of a consumer to the end of the contract.

use api::bind::{
    binding::APIServiceBinding,
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceNamespace, Phase},
    label,
    offer::BindableResourcesRequest,
};
use cli::objects::SYSTEM;
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract, contract_for, granted, offer, request},
        vanishes,
    },
    cluster::Cluster,
    waiting::eventually,
};
use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::konnector::unbind;

#[e2e::test]
fn b1_from_a_request_to_a_status_and_back_to_nothing() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("whole", "Namespaced");
        offer(leader, &offered, json!({})).await;
        let (cns, kubeconfig) = contract(world, "whole-east", "whole").await;
        let of = json!({"resources": [{"group": offered.resource().group, "resource": "whole"}]});
        assert_eq!(request(world, &cns, "whole", of.clone()).await, (Phase::Succeeded, String::new()));
        let export = leader.api::<APIServiceExport>(&cns).get("whole").await.unwrap();
        assert_eq!(export.spec.resources[0].versions, ["v1"], "B9");
        let refused = async |name: &str, spec: Value| request(world, &cns, name, spec).await;
        assert_eq!(refused("again", of).await, (Phase::Failed, "AlreadyBound".into()), "B16");
        let other = json!({"resources": [{"group": "other.example.com", "resource": "secrets"}]});
        assert_eq!(refused("more", other).await, (Phase::Failed, "NotGranted".into()), "Sec0");

        bind_with(east, "whole", &offered, kubeconfig).await;
        let ns = world.namespace("bind-whole", &["east"]).await;
        offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
        let there = offered.objects(leader, Some(&format!("{cns}-{ns}")));
        becomes("is at the provider", &there, "foo", |copy| copy.data["spec"]["size"] == "l").await;
        let status = Patch::Merge(json!({"status": {"phase": "Ready"}}));
        there.patch_status("foo", &PatchParams::default(), &status).await.unwrap();
        let here = offered.objects(east, Some(&ns));
        becomes("has the status", &here, "foo", |object| object.data["status"]["phase"] == "Ready").await;
        binding_says(world, "east", "whole", "Ready", "True", "").await;

        // B11: the provider takes the API back while it is bound.
        let exports = leader.api::<APIServiceExport>(&cns);
        exports.delete("whole", &DeleteParams::default()).await.unwrap();
        binding_says(world, "east", "whole", "Connected", "False", "APIServiceExportDeleted").await;
        offered.create(east, Some(&ns), "late", json!({"spec": {"size": "s"}})).await;
        here.delete("foo", &DeleteParams::default()).await.unwrap();
        vanishes(&there, "foo").await;
        vanishes(&here, "foo").await;
        assert!(there.get_opt("late").await.unwrap().is_none(), "nothing new goes up");
        assert!(exports.get_opt("whole").await.unwrap().is_some(), "the export is gone before its binding");

        unbind(world, "east", &offered).await;
        let asked = leader.api::<APIServiceNamespace>(&cns);
        let namespaces = Api::<Namespace>::all(leader.client.clone());
        eventually("export, APIServiceNamespace and its Namespace are gone", || async {
            let export = exports.get_opt("whole").await.unwrap().map(|export| export.metadata);
            let asked = asked.get_opt(&ns).await.unwrap().map(|namespace| namespace.metadata);
            let made = namespaces
                .get_opt(&format!("{cns}-{ns}"))
                .await
                .unwrap()
                .map(|ns| ns.metadata.deletion_timestamp);
            match (&export, &asked, &made) {
                (None, None, None) => Ok(()),
                _ => Err(format!(
                    "{export:?} {asked:?} {made:?}; log:\n{}",
                    world.log_tail("freeport-leader-leader")
                )),
            }
        })
        .await;
        world.release(&ns).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

/// Rights of consumers in the Namespace, by their names.
async fn rights(leader: &Cluster, namespace: &str) -> Vec<String> {
    let all = leader.api::<RoleBinding>(namespace).list(&ListParams::default()).await.unwrap();
    all.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("kube-binder-")).collect()
}

#[e2e::test]
fn what_an_export_brought_goes_with_it_and_an_adopted_namespace_stays_without_rights() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (ends, stays) = (Offered::new("endings", "Namespaced"), Offered::new("stayings", "Namespaced"));
        let (cns, kubeconfig) = contract_for(world, "ends-east", &[&ends, &stays]).await;
        let ns = world.namespace("bind-ends", &["east"]).await;
        let adopted = format!("{cns}-{ns}");
        let annotations = json!({label::ADOPT: "true"});
        let _: Namespace = leader
            .create_cluster_wide(json!({"metadata": {"name": adopted, "annotations": annotations}}))
            .await;
        for offered in [&ends, &stays] {
            granted(world, &cns, offered).await;
            bind_with(east, &offered.plural, offered, kubeconfig.clone()).await;
            offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
            becomes("is at the provider", &offered.objects(leader, Some(&adopted)), "foo", |_| true).await;
        }
        assert_eq!(rights(leader, &adopted).await.len(), 2);

        leader.api::<APIServiceExport>(&cns).delete("endings", &DeleteParams::default()).await.unwrap();
        unbind(world, "east", &ends).await;
        let schemas = leader.api::<BoundSchema>(&cns);
        eventually("what the export brought is gone", || async {
            let (rights, schema) =
                (rights(leader, &adopted).await, schemas.get_opt(&ends.name()).await.unwrap());
            match (&rights[..], &schema) {
                ([one], None) if one.contains("stayings") => Ok(()),
                _ => Err(format!("{rights:?} {:?}", schema.map(|schema| schema.metadata))),
            }
        })
        .await;
        let change = Patch::Merge(json!({"spec": {"size": "s"}}));
        stays.objects(east, Some(&ns)).patch("foo", &PatchParams::default(), &change).await.unwrap();
        let there = stays.objects(leader, Some(&adopted));
        becomes("is changed", &there, "foo", |copy| copy.data["spec"]["size"] == "s").await;

        // A missing APIServiceNamespace deletes nothing, and is asked for again.
        let asked = leader.api::<APIServiceNamespace>(&cns);
        let before = asked.get(&ns).await.unwrap();
        asked.delete(&ns, &DeleteParams::default()).await.unwrap();
        eventually("the Namespace is asked for again", || async {
            match asked.get_opt(&ns).await.unwrap() {
                Some(now) if now.uid() != before.uid() && now.status.is_some() => Ok(()),
                now => Err(format!("{:?}; its log:\n{}", now, world.log_tail("freeport-member-east"))),
            }
        })
        .await;
        let change = Patch::Merge(json!({"spec": {"size": "m"}}));
        stays.objects(east, Some(&ns)).patch("foo", &PatchParams::default(), &change).await.unwrap();
        becomes("is changed again", &there, "foo", |copy| copy.data["spec"]["size"] == "m").await;

        world.release(&ns).await;
        vanishes(&there, "foo").await;
        eventually("the consumer has no rights there", || async {
            match &rights(leader, &adopted).await[..] {
                [] => Ok(()),
                rights => Err(format!("{rights:?}; log:\n{}", world.log_tail("freeport-leader-leader"))),
            }
        })
        .await;
        let there = Api::<Namespace>::all(leader.client.clone()).get(&adopted).await.unwrap();
        assert!(there.metadata.deletion_timestamp.is_none(), "it was there before");
        unbind(world, "east", &stays).await;
        for namespace in [&cns, &adopted] {
            leader.release_namespace(namespace).await;
        }
        for offered in [&ends, &stays] {
            leader.take_crd(&offered.name()).await;
        }
    });
}

/// Whoever may ask must not be able to have a Secret that Freeport installed overwritten.
async fn a_secret_of_freeport_is_no_answer(leader: &Cluster) {
    let labels = json!({"app.kubernetes.io/managed-by": "freeport"});
    let _: Secret = leader.create(SYSTEM, json!({"metadata": {"name": "no-answer", "labels": labels}})).await;
    let spec = json!({"clusterIdentity": {"identity": "turned-west"}, "author": "me", "templateRef": {"name": "turned"},
        "kubeconfigSecretRef": {"name": "no-answer", "key": "kubeconfig"}});
    let _: BindableResourcesRequest =
        leader.create(SYSTEM, json!({"metadata": {"name": "no-answer"}, "spec": spec})).await;
    let asked = leader.api::<BindableResourcesRequest>(SYSTEM);
    eventually("the request fails", || async {
        let status = asked.get("no-answer").await.unwrap().status.unwrap_or_default();
        let said: Vec<_> = status.conditions.iter().map(|condition| condition.reason.clone()).collect();
        let is_refused = status.phase == Phase::Failed && json!(said) == json!(["AnswerRefused"]);
        if is_refused { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    assert_eq!(leader.api::<Secret>(SYSTEM).get("no-answer").await.unwrap().data, None);
    leader.delete::<Secret>(SYSTEM, "no-answer").await;
    leader.delete::<BindableResourcesRequest>(SYSTEM, "no-answer").await;
}

#[e2e::test(real)]
fn a_template_can_convert_its_api_and_the_same_identity_is_the_same_consumer() {
    BINDING.beside(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        let offered = Offered::new("turned", "Namespaced");
        offer(leader, &offered, json!({label::ISOLATION: "Namespaced"})).await;
        let (cns, _) = contract(world, "turned-west", "turned").await;
        let second = Offered::new("second", "Cluster");
        offer(leader, &second, json!({})).await;
        let (again, kubeconfig) = contract(world, "turned-west", "second").await;
        assert_eq!(cns, again);
        a_secret_of_freeport_is_no_answer(leader).await;
        for offered in [&offered, &second] {
            granted(world, &cns, offered).await;
            bind_with(west, &offered.plural, offered, kubeconfig.clone()).await;
        }
        offered.create(west, None, "foo", json!({"spec": {"size": "l"}})).await;
        second.create(west, None, "foo", json!({"spec": {"size": "s"}})).await;
        let there = offered.objects(leader, Some(&cns));
        becomes("is in the cluster namespace", &there, "foo", |copy| copy.data["spec"]["size"] == "l").await;
        let name = format!("{cns}-foo");
        becomes("has a prefix", &second.objects(leader, None), &name, |copy| {
            copy.data["spec"]["size"] == "s"
        })
        .await;
        for offered in [&offered, &second] {
            binding_says(world, "west", &offered.plural, "Ready", "True", "").await;
            unbind(world, "west", offered).await;
        }
        let bindings = Api::<APIServiceBinding>::all(west.client.clone());
        assert!(bindings.list(&Default::default()).await.unwrap().iter().all(|b| b.name_any() != "turned"));
        leader.release_namespace(&cns).await;
        for offered in [&offered, &second] {
            leader.take_crd(&offered.name()).await;
        }
    });
}
