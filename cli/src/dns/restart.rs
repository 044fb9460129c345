//! Restarting CoreDNS, which reads its Corefile and looks for ServiceImports when it starts.

use std::time::{Duration, Instant};

use k8s_openapi::{
    api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Namespaced;
use crate::{Error, cluster::Cluster, eraser::Say, install::MANAGER, rollout};

/// Annotation of the Deployment: [`reason`] of the last restart. Without it, one that came to nothing would not be seen.
const RESTARTED_FOR: &str = "multicluster.freeport.dev/dns";
/// Annotation of a Pod template by which `kubectl rollout restart` does it.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
const PAUSE: Duration = Duration::from_millis(500);

/// What CoreDNS has to know when it starts: our lines, and the kind of this uid. Of a kind that came later it may hear late.
pub(super) fn reason(lines: &str, kind: &str) -> String {
    let hash = Sha256::digest(format!("{kind} {lines}"));
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The reason of the last restart.
pub(super) fn last_reason(deployment: &ObjectMeta) -> Option<&str> {
    deployment.annotations.as_ref()?.get(RESTARTED_FOR).map(String::as_str)
}

/// Has all Pods replaced, as `kubectl rollout restart` does, and notes why.
pub(super) async fn restart(cluster: &Cluster, name: &Namespaced, reason: Option<&str>) -> Result<(), Error> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &name.namespace);
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    let patch = Patch::Merge(patch(reason, &Timestamp::now().to_string()));
    let restart = deployments.patch(&name.name, &params, &patch);
    cluster.request(format!("restart Deployment {name}"), restart).await.map(drop)
}

fn patch(reason: Option<&str>, now: &str) -> Value {
    json!({
        "metadata": {"annotations": {RESTARTED_FOR: reason}},
        "spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: now}}}},
    })
}

/// Waits until the Pods are those of now, telling what is missing. `next` ends the message when time is up.
pub(super) async fn rolled_out(
    cluster: &Cluster,
    name: &Namespaced,
    limit: Duration,
    next: &str,
    say: Say<'_>,
) -> Result<(), Error> {
    let (begun, mut told) = (Instant::now(), String::new());
    while let Some(message) = rollout::missing(cluster, &name.namespace, &name.name).await? {
        if message != told {
            say(&format!("{}: waiting for CoreDNS: {message}", cluster.name));
            told.clone_from(&message);
        }
        if begun.elapsed() >= limit {
            let (cluster, next) = (cluster.name.clone(), next.to_owned());
            return Err(Error::NotRolledOut { cluster, message, limit, next });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lines_and_another_kind_are_reasons() {
        let one = reason("a", "1");
        assert_eq!((one.len(), &one), (16, &reason("a", "1")));
        assert!(one != reason("b", "1") && one != reason("a", "2"));
    }

    #[test]
    fn nothing_is_left_of_a_reason_that_is_taken_back() {
        let patch = patch(None, "2026-11-01T12:00:00Z");
        assert!(patch["metadata"]["annotations"][RESTARTED_FOR].is_null());
        assert_eq!(
            patch["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT],
            "2026-11-01T12:00:00Z"
        );
    }
}
