//! What API servers refuse to `freeport-member`, as far as it concerns a binding: the command that waits for the binding reports it and stops.

use std::time::{Duration, Instant};

use api::{bind::binding::APIServiceBinding, cluster_set::WRITES_ACCEPTED};

use crate::{Error, cluster::Cluster, refused};

/// Stops a command that has waited for the binding since `begun` where writes for it are refused.
pub(super) fn stop(
    cluster: &Cluster,
    binding: &APIServiceBinding,
    since: (Instant, Duration),
) -> Result<(), Error> {
    refused::stop(cluster, reported(binding), since, "this command finishes when you run it again")
}

/// What the binding reports as refused.
fn reported(binding: &APIServiceBinding) -> Option<String> {
    let mut conditions = binding.status.iter().flat_map(|status| &status.conditions);
    let accepted = conditions.find(|said| said.type_ == WRITES_ACCEPTED && said.status == "False")?;
    accepted.message.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_binding_that_is_refused_something_is_quoted() {
        let reported = |type_: &str, status: &str| {
            let said = json!({"type": type_, "status": status, "message": "m", "lastTransitionTime": null});
            let secret = json!({"namespace": "n", "name": "s", "key": "k"});
            let binding = json!({"metadata": {}, "spec": {"kubeconfigSecretRef": secret}, "status": {"conditions": [said]}});
            super::reported(&serde_json::from_value(binding).unwrap())
        };
        assert_eq!(reported("WritesAccepted", "False").as_deref(), Some("m"));
        assert_eq!(reported("WritesAccepted", "True"), None);
        assert_eq!(reported("Ready", "False"), None);
    }
}
