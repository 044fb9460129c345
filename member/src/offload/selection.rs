//! Which clusters a NamespaceOffloading selects, and what its twins are called: pure.

use std::collections::BTreeSet;

use api::offload::{
    label,
    selector::{self, Candidate, selects},
    twin::{TwinError, check_offloaded, twin},
    view::NamespaceOffloadingView,
};
use kube::{Resource, ResourceExt};

use crate::offload::index::{Asked, ClusterEntry};

/// What becomes of the key of a Namespace in the map for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// It has to be there.
    Want,
    /// It has to go.
    Drop,
    /// It stays as it is.
    Keep,
}

/// Why a NamespaceOffloading offloads nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// One CamelCase word.
    pub(crate) reason: &'static str,
    /// A sentence.
    pub(crate) message: String,
}

/// Name of the twins of a Namespace, if it may have any and can be understood.
pub(crate) fn name(
    offloading: &NamespaceOffloadingView,
    namespace: &str,
    home: &str,
    system: &BTreeSet<String>,
) -> Result<String, Invalid> {
    let invalid = |reason, message: String| Invalid { reason, message };
    let spec = offloading.spec.0.as_ref();
    let spec = spec.map_err(|error| invalid("InvalidSpec", format!("the spec cannot be read: {error}")))?;
    let named = check_offloaded(namespace, system).and_then(|()| twin(spec, namespace, home));
    let name = named.map_err(|error| {
        let ends = match error {
            TwinError::TooLong(_) => {
                format!("; a strategy does not change: freeport unoffload namespace {namespace} first")
            }
            _ => String::new(),
        };
        invalid(error.reason(), format!("{error}{ends}"))
    })?;
    selector::check(spec.terms())
        .map_err(|why| invalid("InvalidSelector", format!("clusterSelector: {why}")))?;
    Ok(name)
}

/// Whether a NamespaceOffloading waits for us before it goes: without that its twins could be forgotten.
pub(crate) fn is_held(offloading: &NamespaceOffloadingView) -> bool {
    offloading.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER)
}

/// What becomes of the key in the map for a cluster. Only a cluster that is to be used and has its Node can be selected; one whose Node
/// is missing, or that it is not known whether it shall be used, was not taken back.
pub(crate) fn key(offloading: &NamespaceOffloadingView, cluster: &ClusterEntry) -> Key {
    let Ok(spec) = &offloading.spec.0 else { return Key::Keep };
    let node = match (cluster.outgoing(), &cluster.node) {
        (Asked::No, _) => return Key::Drop,
        (Asked::Unknown, _) | (Asked::Yes(()), None) => return Key::Keep,
        (Asked::Yes(()), Some(node)) => node,
    };
    if node.meta().deletion_timestamp.is_some() || !node.is_ours() {
        return Key::Keep;
    }
    let (name, labels) = (node.name_any(), node.labels());
    match selects(spec.terms(), Candidate { name: &name, labels }) {
        true => Key::Want,
        false => Key::Drop,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn offloading(spec: &Value) -> NamespaceOffloadingView {
        serde_json::from_value(json!({"metadata": {"name": "offloading"}, "spec": spec})).unwrap()
    }

    fn cluster(peer: &Value, region: Option<&str>) -> ClusterEntry {
        let node = |region| {
            let labels = json!({"region": region, "app.kubernetes.io/managed-by": "freeport"});
            serde_json::from_value(json!({"metadata": {"name": "freeport-east", "labels": labels}})).unwrap()
        };
        ClusterEntry {
            peer: serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": peer})).unwrap(),
            node: region.map(node),
            ..ClusterEntry::default()
        }
    }

    #[test]
    fn a_key_goes_by_decision_only() {
        let region = |value: &str| {
            let expression = json!({"key": "region", "operator": "In", "values": [value]});
            offloading(
                &json!({"clusterSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}),
            )
        };
        let used = &json!({"outgoing": {}});
        let all = offloading(&json!({}));
        let of = key;
        assert_eq!(of(&all, &cluster(used, Some("us"))), Key::Want);
        assert_eq!(of(&region("us"), &cluster(used, Some("us"))), Key::Want);
        assert_eq!(of(&region("eu"), &cluster(used, Some("us"))), Key::Drop, "not selected");
        assert_eq!(of(&all, &cluster(used, None)), Key::Keep, "the Node vanished");
        assert_eq!(of(&all, &cluster(&json!({}), Some("us"))), Key::Drop, "it is not used any more");
        assert_eq!(of(&all, &cluster(&json!({"outgoing": 7}), Some("us"))), Key::Keep, "it does not decode");
        let mut gone = cluster(&json!({}), Some("us"));
        gone.peer = None;
        assert_eq!(of(&all, &gone), Key::Keep, "it is not known why the OffloadPeer is gone");
        assert_eq!(of(&offloading(&json!("odd")), &cluster(&json!({}), None)), Key::Keep);
    }

    #[test]
    fn what_cannot_be_offloaded_says_why() {
        let system = BTreeSet::from(["freeport".to_owned()]);
        let named = |spec: &Value, namespace: &str| name(&offloading(spec), namespace, "west", &system);
        assert_eq!(named(&json!({}), "shop"), Ok("shop-west".to_owned()));
        for (spec, namespace, reason) in [
            (json!({}), "kube-system", "NotOffloadable"),
            (json!({}), "freeport", "NotOffloadable"),
            (json!({"namespaceMappingStrategy": "SelectedName"}), "shop", "NameInvalid"),
            (json!("odd"), "shop", "InvalidSpec"),
            (json!({"clusterSelector": {"nodeSelectorTerms": [{}]}}), "shop", "InvalidSelector"),
        ] {
            assert_eq!(named(&spec, namespace).unwrap_err().reason, reason);
        }
        let long = "n".repeat(60);
        let why = named(&json!({}), &long).unwrap_err().message;
        assert!(why.ends_with(&format!("freeport unoffload namespace {long} first")), "{why}");
    }
}
