//! What API servers refuse to `freeport-member`, as far as it concerns what a command waits for: the command reports it and stops.

use std::time::{Duration, Instant};

use api::{
    cluster_set::WRITES_ACCEPTED,
    condition::AntreaCondition,
    offload::{
        map::{DELETION_REFUSED, TERMINATING},
        names,
        namespace::{NamespaceOffloadingStatus, READY},
        view::NamespaceOffloadingView,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;

use super::condition;
use crate::{Error, cluster::Cluster, view::NodeView};

/// What the object with these conditions reports as refused.
pub(super) fn reported(conditions: &[Condition]) -> Option<String> {
    let accepted = condition(conditions, WRITES_ACCEPTED).filter(|accepted| accepted.status == "False")?;
    Some(accepted.message.clone())
}

/// What keeps twins from being deleted: here, or at a host, in its words.
pub(super) fn keeps_twins(status: &NamespaceOffloadingStatus) -> Option<String> {
    reported(&status.conditions).or_else(|| keeps_twin_at_host(status))
}

/// What keeps a twin from being deleted at a host, in its words.
pub(crate) fn keeps_twin_at_host(status: &NamespaceOffloadingStatus) -> Option<String> {
    let mut hosts = status.remote_namespaces_conditions.iter();
    hosts.find_map(|(cluster, conditions)| keeps_twin_at(cluster, conditions))
}

fn keeps_twin_at(cluster: &str, conditions: &[Condition]) -> Option<String> {
    let ready = condition(conditions, READY).filter(|ready| ready.reason == TERMINATING)?;
    let (twin, words) = ready.message.split_once(&format!(": {DELETION_REFUSED}: "))?;
    Some(format!("the API server of cluster {cluster} refuses to delete Namespace {twin}: {words}"))
}

/// Returns what keeps the virtual Node of the other cluster from being deleted: what the Node reports as refused, or the deletion of a twin
/// that the other cluster refuses. The OffloadPeer may be deleted already.
pub(super) async fn keeps_node(cluster: &Cluster, peer: &str) -> Result<Option<String>, Error> {
    let name = names::virtual_node(peer);
    let nodes = Api::<NodeView>::all(cluster.client.clone());
    let node = cluster.request(format!("read Node {name}"), nodes.get_opt(&name)).await?;
    if let Some(refused) = node.and_then(|node| reported_by_node(&node)) {
        return Ok(Some(refused));
    }
    let offloadings = Api::<NamespaceOffloadingView>::all(cluster.client.clone());
    let offloadings = cluster.all(&offloadings, "").await?;
    let at_peer = |offloading: &NamespaceOffloadingView| {
        let status = offloading.status.0.as_ref().ok()?;
        keeps_twin_at(peer, status.remote_namespaces_conditions.get(peer)?)
    };
    Ok(offloadings.iter().find_map(at_peer))
}

/// What the virtual Node reports as refused.
pub(super) fn reported_by_node(node: &NodeView) -> Option<String> {
    let mut conditions = node.status.0.as_ref().ok()?.conditions.iter();
    let is_refused = |said: &&AntreaCondition| {
        said.type_.as_deref() == Some(WRITES_ACCEPTED) && said.status.as_deref() == Some("False")
    };
    conditions.find(is_refused)?.message.clone()
}

/// Stops a command that has waited since `begun` where this is refused.
pub(super) fn stop(
    cluster: &Cluster,
    refused: Option<String>,
    begun: Instant,
    limit: Duration,
) -> Result<(), Error> {
    crate::refused::stop(cluster, refused, (begun, limit), "this needs no further command")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_that_may_not_delete_its_twin_is_quoted() {
        let status = |message: &str| -> NamespaceOffloadingStatus {
            let ready = json!({"type": "Ready", "status": "False", "reason": "Terminating", "message": message,
                "lastTransitionTime": "2026-11-01T12:00:00Z"});
            serde_json::from_value(json!({"remoteNamespacesConditions": {"east": [ready]}})).unwrap()
        };
        assert_eq!(
            keeps_twins(&status("shop-west: DeletionRefused: not this one: ever")).as_deref(),
            Some("the API server of cluster east refuses to delete Namespace shop-west: not this one: ever")
        );
        assert_eq!(keeps_twins(&status("shop-west")), None);
    }

    #[test]
    fn a_node_whose_end_is_refused_is_quoted() {
        let node = |type_: &str, status: &str| -> NodeView {
            let said = json!({"type": type_, "status": status, "reason": "R", "message": "m"});
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [said]}})).unwrap()
        };
        assert_eq!(reported_by_node(&node("WritesAccepted", "False")).as_deref(), Some("m"));
        assert_eq!(reported_by_node(&node("WritesAccepted", "True")), None);
        assert_eq!(reported_by_node(&node("Ready", "False")), None);
    }
}
