//! What administrators of the provider do, and what consumers ask of it.

use api::bind::{
    export::{APIServiceExportRequest, Phase},
    label,
    offer::{APIServiceExportTemplate, BindableResourcesRequest},
    resource::Isolation,
};
use cli::objects::{SYSTEM, bind};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use serde_json::{Value, json};

use super::{Offered, install};
use crate::{cluster::Cluster, waiting::eventually, world::World};

/// The provider offers the API by a template of its name.
pub async fn offer(leader: &Cluster, offered: &Offered, annotations: Value) {
    offered.install(leader).await;
    let without_prefix = annotations[label::ISOLATION] == "None";
    let isolation = if without_prefix { Isolation::None } else { Isolation::default() };
    install(leader, &bind::offer(&offered.resource(), isolation)).await;
    let _: APIServiceExportTemplate = leader
        .create_cluster_wide(json!({
            "metadata": {"name": offered.plural, "annotations": annotations},
            "spec": {"scope": offered.crd.spec.scope, "resources": [offered.resource()]},
        }))
        .await;
}

/// Somebody becomes a consumer: the cluster namespace, and the kubeconfig.
pub async fn contract(world: &World, identity: &str, template: &str) -> (String, ByteString) {
    contract_by(world, SYSTEM, identity, template).await
}

/// The same, of whoever answers in Namespace `place`.
pub async fn contract_by(world: &World, place: &str, identity: &str, template: &str) -> (String, ByteString) {
    let (leader, name) = (world.leader(), format!("{identity}-{template}"));
    let spec =
        json!({"clusterIdentity": {"identity": identity}, "author": "me", "templateRef": {"name": template}});
    let _: BindableResourcesRequest =
        leader.create(place, json!({"metadata": {"name": name}, "spec": spec})).await;
    let asked = leader.api::<BindableResourcesRequest>(place);
    let status = eventually("the request is answered", || async {
        let status = asked.get(&name).await.unwrap().status.unwrap_or_default();
        match status.phase {
            Phase::Succeeded => Ok(status),
            _ => Err(format!("{status:?}; its log:\n{}", world.log_tail("freeport-leader-leader"))),
        }
    })
    .await;
    assert_eq!(status.conditions[0].reason, "SecretReady");
    let at = status.kubeconfig_secret_ref.unwrap();
    let secret = leader.api::<Secret>(place).get(&at.name).await.unwrap();
    let answer: Value = serde_json::from_slice(&secret.data.unwrap()[&at.key].0).unwrap();
    assert_eq!(answer["kind"], "BindingResourceResponse");
    (status.namespace.unwrap(), serde_json::from_value(answer["kubeconfig"].clone()).unwrap())
}

/// Asks for the API in the cluster namespace; how it ended.
pub async fn request(world: &World, cluster_namespace: &str, name: &str, spec: Value) -> (Phase, String) {
    let leader = world.leader();
    let _: APIServiceExportRequest =
        leader.create(cluster_namespace, json!({"metadata": {"name": name}, "spec": spec})).await;
    let asked = leader.api::<APIServiceExportRequest>(cluster_namespace);
    eventually(&format!("request {name} is judged"), || async {
        let status = asked.get(name).await.unwrap().status.unwrap_or_default();
        let condition = status.conditions.iter().find(|condition| condition.type_ == "Ready").cloned();
        let reason = condition.and_then(|condition| condition.reason).unwrap_or_default();
        match status.phase {
            Phase::Pending => {
                Err(format!("{status:?}; its log:\n{}", world.log_tail("freeport-leader-leader")))
            }
            phase => Ok((phase, reason)),
        }
    })
    .await
}

/// The provider offers these APIs, and somebody becomes a consumer of all of them: the cluster namespace, and the kubeconfig.
pub async fn contract_for(world: &World, identity: &str, apis: &[&Offered]) -> (String, ByteString) {
    let mut contract = None;
    for offered in apis {
        offer(world.leader(), offered, json!({})).await;
        contract = Some(self::contract(world, identity, &offered.plural).await);
    }
    contract.unwrap()
}

/// Asks for the API in the cluster namespace, and gets it.
pub async fn granted(world: &World, cluster_namespace: &str, offered: &Offered) {
    // With versions, without which Go's backend grants nothing.
    let of = json!({"resources": [offered.resource()]});
    let (phase, reason) = request(world, cluster_namespace, &offered.plural, of).await;
    assert_eq!(phase, Phase::Succeeded, "{reason}");
}
