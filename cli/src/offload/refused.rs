//! What API servers refuse to `freeport-member`, as far as it concerns what a command waits for: the command reports it and stops.

use std::time::{Duration, Instant};

use api::{
    cluster_set::WRITES_ACCEPTED,
    offload::{
        map::{DELETION_REFUSED, TERMINATING},
        names,
        namespace::{NamespaceOffloadingStatus, READY},
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{condition, own_set};
use crate::{Error, cluster::Cluster, objects::area};

/// Time for which a command waits at least: a refusal that is reported when it starts may be over in a moment.
const SECOND_LOOK: Duration = Duration::from_secs(10);

/// What the object with these conditions reports as refused.
pub(super) fn reported(conditions: &[Condition]) -> Option<String> {
    let accepted = condition(conditions, WRITES_ACCEPTED).filter(|accepted| accepted.status == "False")?;
    Some(accepted.message.clone())
}

/// What keeps twins from being deleted: here, or at a host, in its words.
pub(super) fn keeps_twins(status: &NamespaceOffloadingStatus) -> Option<String> {
    let at_a_host = || {
        status.remote_namespaces_conditions.iter().find_map(|(cluster, conditions)| {
            let ready = condition(conditions, READY).filter(|ready| ready.reason == TERMINATING)?;
            let (twin, words) = ready.message.split_once(&format!(": {DELETION_REFUSED}: "))?;
            Some(format!("the API server of cluster {cluster} refuses to delete Namespace {twin}: {words}"))
        })
    };
    reported(&status.conditions).or_else(at_a_host)
}

/// What the ClusterSet of this cluster reports as refused, if it names the Node of the other cluster, or the NamespaceMap for it. The
/// OffloadPeer may be deleted already.
pub(super) async fn keeps_node(cluster: &Cluster, peer: &str) -> Result<Option<String>, Error> {
    let Some(set) = own_set(cluster).await? else { return Ok(None) };
    let map = set
        .cluster_id()
        .map(|us| format!("NamespaceMap {}/{}", area::name(&set.name_any()), names::namespace_map(us, peer)));
    let objects: Vec<_> = map.into_iter().chain([format!("Node {}", names::virtual_node(peer))]).collect();
    let accepted = set.condition(WRITES_ACCEPTED).filter(|said| said.status.as_deref() == Some("False"));
    let message = accepted.and_then(|accepted| accepted.message.clone());
    Ok(message.filter(|message| objects.iter().any(|object| is_named(message, object))))
}

fn is_named(message: &str, object: &str) -> bool {
    let ends = |after: &str| after.starts_with([',', ':', ' ']);
    message.match_indices(object).any(|(at, _)| message.get(at + object.len()..).is_some_and(ends))
}

/// Stops a command that has waited since `begun` where this is refused.
pub(super) fn stop(
    cluster: &Cluster,
    refused: Option<String>,
    begun: Instant,
    limit: Duration,
) -> Result<(), Error> {
    let Some(refused) = refused.filter(|_| begun.elapsed() >= SECOND_LOOK.min(limit)) else { return Ok(()) };
    let reason = format!(
        "{refused}. Change the policy, webhook, quota or right that refuses it: freeport-member goes on by itself, and this needs no further \
         command"
    );
    Err(Error::WriteRefused { cluster: cluster.name.clone(), reason })
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
    fn an_object_is_named_as_a_whole() {
        let message = "the API server of this cluster refuses to delete Node freeport-east-2, delete Node freeport-north: \"no\"";
        assert!(is_named(message, "Node freeport-east-2") && is_named(message, "Node freeport-north"));
        assert!(!is_named(message, "Node freeport-east"));
    }
}
