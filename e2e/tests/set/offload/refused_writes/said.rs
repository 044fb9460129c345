//! Where users read what is refused.

use api::{
    cluster_set::WRITES_ACCEPTED,
    offload::{
        namespace::{NamespaceOffloading, NamespaceOffloadingStatus},
        peer::OffloadPeer,
        pod_status::ACCEPTED,
    },
};
use e2e::{
    cluster_set::status,
    fixture::{SYSTEM, World},
    waiting::eventually,
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Condition};
use kube::Api;

use super::super::commands::says;

/// The message of this condition, if it is False.
fn refused(conditions: &[Condition], type_: &str) -> Result<String, String> {
    let said = conditions.iter().find(|said| said.type_ == type_ && said.status == "False");
    said.map(|said| said.message.clone()).ok_or_else(|| format!("{conditions:?}"))
}

async fn offloading(world: &World, namespace: &str) -> Result<NamespaceOffloadingStatus, String> {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(namespace);
    let read = offloadings.get("offloading").await.map_err(|error| error.to_string())?;
    Ok(read.status.unwrap_or_default())
}

/// What is refused as the NamespaceOffloading reports it.
pub(super) async fn of_namespace(world: &World, namespace: &str) -> Result<String, String> {
    of_pods(world, namespace, WRITES_ACCEPTED).await
}

pub(super) async fn of_pods(world: &World, namespace: &str, type_: &str) -> Result<String, String> {
    refused(&offloading(world, namespace).await?.conditions, type_)
}

/// Whether the NamespaceOffloading quotes its host with that.
pub(super) async fn of_host(world: &World, namespace: &str, part: &str) -> Result<(), String> {
    let conditions = offloading(world, namespace).await?.remote_namespaces_conditions;
    let mut said = conditions.get("east").into_iter().flatten();
    match said.any(|said| said.message.contains(part)) {
        true => Ok(()),
        false => Err(format!("{conditions:?}")),
    }
}

/// What is refused as the OffloadPeer reports it.
pub(super) async fn of_peer(world: &World, cluster: &str, other: &str) -> Result<String, String> {
    let peers = Api::<OffloadPeer>::all(world.cluster(cluster).client.clone());
    let peer = peers.get(other).await.map_err(|error| error.to_string())?;
    refused(&peer.status.unwrap_or_default().conditions, WRITES_ACCEPTED)
}

/// What is refused as the ClusterSet reports it.
pub(super) async fn of_set(world: &World, cluster: &str) -> Result<String, String> {
    let conditions = status(world.cluster(cluster), SYSTEM).await?.conditions;
    let said = conditions.into_iter().find(|said| said.type_.as_deref() == Some(WRITES_ACCEPTED));
    let said = said.ok_or("not reported")?;
    match said.status.as_deref() {
        Some("False") => Ok(said.message.unwrap_or_default()),
        _ => Err(format!("{said:?}")),
    }
}

/// Waits until nothing is reported as refused any more.
pub(super) async fn nothing_refused(world: &World) {
    for (cluster, other) in [("west", "east"), ("east", "west")] {
        eventually(&format!("ClusterSet of {cluster} says that nothing is refused"), || async {
            of_set(world, cluster).await.map_or(Ok(()), Err)
        })
        .await;
        eventually(&format!("OffloadPeer {other} of {cluster} says nothing of it"), || async {
            of_peer(world, cluster, other).await.map_or(Ok(()), Err)
        })
        .await;
    }
}

/// Commands report it, and the one that waits for this Namespace stops.
pub(super) async fn by_commands(world: &World, namespace: &str) {
    for cluster in ["west", "east"] {
        says(world, &format!("freeport status --context {cluster}"), "WritesAccepted is False").await;
        says(world, &format!("freeport offload status --context {cluster}"), "tries again within a minute")
            .await;
    }
    let unoffload = format!("freeport unoffload namespace {namespace} --yes --context west --timeout 500");
    says(world, &unoffload, "refuses to delete Namespace").await;
}

/// Whether the Pod at home reports that its host has it.
pub(super) async fn accepted(world: &World, namespace: &str) -> Result<(), String> {
    let pod =
        world.cluster("west").api::<Pod>(namespace).get("web").await.map_err(|error| error.to_string())?;
    let status = pod.status.unwrap_or_default();
    let refused = |type_: &str, is: &str| type_ == ACCEPTED && is == "False";
    match status.conditions.iter().flatten().any(|said| refused(&said.type_, &said.status)) {
        true => Err(format!("{status:?}")),
        false => Ok(()),
    }
}
