//! An object that is being deleted, and what keeps it. Pure.

use api::{
    bind::{
        binding::APIServiceBinding,
        label::{BIND_FINALIZER, FINALIZER},
    },
    label::{LEADER, MEMBER},
};
use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{Resource, api::ObjectMeta};

/// Finalizer of the API server, on a CRD.
const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A deletion that has not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deletion {
    pub(crate) since: Timestamp,
    finalizers: Vec<String>,
    /// What Kubernetes says of a Namespace that does not go.
    words: Vec<String>,
}

impl Deletion {
    /// None where nobody deletes it.
    pub(crate) fn of(metadata: &ObjectMeta) -> Option<Self> {
        let since = metadata.deletion_timestamp.as_ref()?.0;
        let finalizers = metadata.finalizers.clone().unwrap_or_default();
        Some(Self { since, finalizers, words: Vec::new() })
    }

    /// Of a Namespace, which stays until it is empty.
    pub(crate) fn of_namespace(namespace: &Namespace) -> Option<Self> {
        let deletion = Self::of(&namespace.metadata)?;
        let status = namespace.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let said = conditions.filter(|condition| condition.status == "True");
        Some(Self { words: said.filter_map(|condition| condition.message.clone()).collect(), ..deletion })
    }

    /// Whether one of its finalizers is neither Freeport's nor the API server's: nobody here takes that off.
    pub(crate) fn is_held_by_others(&self) -> bool {
        let known = [FINALIZER, BIND_FINALIZER, CRD_FINALIZER];
        self.finalizers.iter().any(|held| !known.contains(&held.as_str()))
    }

    /// What holds an object of this kind, and what has to happen.
    pub(crate) fn held_by(&self, kind: &str) -> String {
        let held = self.finalizers.iter().map(|finalizer| {
            let ends = end_of(kind, finalizer);
            format!("finalizer {finalizer} ({ends})")
        });
        let all: Vec<_> = held.chain(self.words.iter().cloned()).collect();
        match all.is_empty() {
            true => "no finalizer: it is about to go".to_owned(),
            false => all.join(", "),
        }
    }
}

/// When a finalizer goes.
fn end_of(kind: &str, finalizer: &str) -> String {
    match finalizer {
        FINALIZER => "its copy at the provider has to go first".to_owned(),
        BIND_FINALIZER => {
            let daemon = if kind == APIServiceBinding::kind(&()) { MEMBER } else { LEADER };
            format!("{daemon} removes it when what belongs to the object is gone")
        }
        CRD_FINALIZER => "its objects have to go first".to_owned(),
        _ => "not Freeport's: whoever added it removes it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SINCE: &str = "2026-11-01T12:00:00Z";

    fn going(finalizers: &[&str]) -> Deletion {
        let metadata = json!({"name": "x", "deletionTimestamp": SINCE, "finalizers": finalizers});
        Deletion::of(&serde_json::from_value(metadata).unwrap()).unwrap()
    }

    #[test]
    fn each_finalizer_is_said_with_its_end() {
        let held = going(&[FINALIZER, "example.com/hold"]);
        assert!(held.is_held_by_others() && held.since == SINCE.parse().unwrap());
        let said = held.held_by("Mangodb");
        assert!(said.contains("kubebind.io/syncer (its copy at the provider"), "{said}");
        assert!(said.contains("example.com/hold (not Freeport's"), "{said}");
        let ours = going(&[BIND_FINALIZER]);
        assert!(!ours.is_held_by_others());
        assert!(ours.held_by("APIServiceBinding").contains("freeport-member removes it"));
        assert!(ours.held_by("APIServiceExport").contains("freeport-leader removes it"));
        assert!(going(&[CRD_FINALIZER]).held_by("CustomResourceDefinition").contains("its objects"));
        assert!(going(&[]).held_by("Mangodb").contains("about to go"));
    }

    #[test]
    fn nothing_is_deleted_that_nobody_deletes() {
        let held: ObjectMeta = serde_json::from_value(json!({"finalizers": [FINALIZER]})).unwrap();
        assert_eq!(Deletion::of(&held), None);
    }

    #[test]
    fn a_namespace_is_held_by_what_is_in_it() {
        let condition = |type_: &str, status: &str, message: &str| -> Value {
            json!({"type": type_, "status": status, "message": message, "lastTransitionTime": SINCE})
        };
        let namespace = json!({
            "metadata": {"name": "n", "deletionTimestamp": SINCE},
            "status": {"conditions": [
                condition("NamespaceFinalizersRemaining", "True", "Some content has finalizers remaining: example.com/hold"),
                condition("NamespaceDeletionDiscoveryFailure", "False", "All resources were discovered"),
            ]},
        });
        let deletion = Deletion::of_namespace(&serde_json::from_value(namespace).unwrap()).unwrap();
        assert_eq!(deletion.held_by("Namespace"), "Some content has finalizers remaining: example.com/hold");
    }
}
