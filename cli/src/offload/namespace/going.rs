//! Refuses Namespaces whose offloading is about to end: what would be changed goes all the same, and the twins with it.

use api::offload::{namespace::NAME, view::NamespaceOffloadingView};

use super::read;
use crate::{Error, cluster::Cluster};

/// Before anything is changed.
pub(super) async fn check(cluster: &Cluster, namespaces: &[String]) -> Result<(), Error> {
    let mut going = Vec::new();
    for namespace in namespaces {
        let there = read(cluster, namespace).await?;
        going.extend(there.filter(is_going).map(|_| namespace.as_str()));
    }
    match going.first() {
        None => Ok(()),
        Some(first) => Err(cluster.refuse(format!(
            "NamespaceOffloadings {NAME} are being deleted, and their twins go: {}; nothing was changed. `freeport unoffload namespace {first} --yes` \
             waits until they are gone; then run this again",
            going.join(", ")
        ))),
    }
}

fn is_going(offloading: &NamespaceOffloadingView) -> bool {
    offloading.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_that_waits_for_its_finalizer_is_about_to_go() {
        let is_going = |metadata| is_going(&serde_json::from_value(json!({"metadata": metadata})).unwrap());
        assert!(!is_going(json!({"name": "offloading", "finalizers": ["x"]})));
        assert!(is_going(json!({
            "name": "offloading", "finalizers": ["x"], "deletionTimestamp": "2026-11-01T12:00:00Z",
        })));
    }
}
