//! Which Namespace of the provider stands for which of ours: pure.

use std::collections::{BTreeMap, BTreeSet};

use api::bind::export::APIServiceNamespace;
use kube::ResourceExt;

use super::Contract;

/// All that a provider says of that.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Assigned {
    /// The provider's Namespaces, by ours; in place of some its words why there is none.
    by_ours: BTreeMap<String, Result<String, String>>,
    by_theirs: BTreeMap<String, Vec<String>>,
    /// Ours for which the provider asked itself, as it says.
    wanted_by_provider: BTreeSet<String>,
    /// Ours for which there is an APIServiceNamespace.
    there: BTreeSet<String>,
}

impl Assigned {
    pub(super) fn of<'a>(namespaces: impl Iterator<Item = &'a APIServiceNamespace>) -> Self {
        let mut all = Self::default();
        for namespace in namespaces {
            let ours = namespace.name_any();
            all.there.insert(ours.clone());
            if Contract::is_providers(namespace) {
                all.wanted_by_provider.insert(ours.clone());
            }
            if let Some(theirs) = assigned(namespace) {
                all.by_theirs.entry(theirs.clone()).or_default().push(ours.clone());
                all.by_ours.insert(ours, Ok(theirs));
            } else if let Some(words) = not_assigned(namespace) {
                all.by_ours.insert(ours, Err(words));
            }
        }
        all
    }

    /// Whether we asked for one of theirs for this one of ours, or the provider does not say that it did.
    pub(crate) fn is_asked_for(&self, ours: &str) -> bool {
        !self.wanted_by_provider.contains(ours)
    }

    /// Whether as much is said of one of ours: what was not answered may be gone without that.
    pub(crate) fn says_as(&self, before: &Self, ours: &str) -> bool {
        self.get(ours) == before.get(ours) && self.there.contains(ours) == before.there.contains(ours)
    }

    /// What is said of one of ours.
    pub(crate) fn get(&self, ours: &str) -> Option<&Result<String, String>> {
        self.by_ours.get(ours)
    }

    /// Ours, for which one of theirs stands.
    pub(crate) fn ours(&self, theirs: &str) -> &[String] {
        self.by_theirs.get(theirs).map_or(&[], Vec::as_slice)
    }

    /// Ours for which one of theirs stands, and which.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&String, &String)> {
        self.by_ours.iter().filter_map(|(ours, theirs)| Some((ours, theirs.as_ref().ok()?)))
    }
}

/// The provider's Namespace for one of ours.
pub(super) fn assigned(namespace: &APIServiceNamespace) -> Option<String> {
    namespace.status.as_ref()?.namespace.clone().filter(|name| !name.is_empty())
}

/// Condition `Assigned` is Freeport's: Go's backend never says no.
pub(super) fn not_assigned(namespace: &APIServiceNamespace) -> Option<String> {
    let conditions = &namespace.status.as_ref()?.conditions;
    let no = conditions.iter().find(|said| said.type_ == "Assigned" && said.status == "False")?;
    let (reason, message) = (no.reason.clone().unwrap_or_default(), no.message.clone().unwrap_or_default());
    assigned(namespace).is_none().then(|| format!("{reason}: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(name: &str, status: &serde_json::Value) -> APIServiceNamespace {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {}, "status": status})).unwrap()
    }

    #[test]
    fn what_a_provider_says_of_a_namespace_that_it_does_not_give_is_told() {
        let of = |status| namespace("default", &status);
        let no = json!([{"type": "Assigned", "status": "False", "lastTransitionTime": null, "reason": "SystemNamespace",
            "message": "default is a Namespace of the system"}]);
        let said = not_assigned(&of(json!({"conditions": no})));
        assert_eq!(said.as_deref(), Some("SystemNamespace: default is a Namespace of the system"));
        assert_eq!(not_assigned(&of(json!({"namespace": "there", "conditions": no}))), None);
        assert_eq!(not_assigned(&of(json!({}))), None);
    }

    #[test]
    fn one_that_goes_before_it_was_answered_is_news() {
        let (asked, gone) = (Assigned::of([namespace("a", &json!({}))].iter()), Assigned::default());
        assert!(!gone.says_as(&asked, "a") && gone.says_as(&asked, "b") && asked.says_as(&asked, "a"));
        assert!(gone != asked, "nobody would look");
    }

    #[test]
    fn it_is_known_both_ways() {
        let all = [("a", json!({"namespace": "x"})), ("b", json!({"namespace": "x"})), ("c", json!({}))];
        let all: Vec<_> = all.iter().map(|(name, status)| namespace(name, status)).collect();
        let assigned = Assigned::of(all.iter());
        assert_eq!(assigned.get("a"), Some(&Ok("x".to_owned())));
        assert_eq!(
            (assigned.ours("x"), assigned.ours("y"), assigned.get("c")),
            (&["a".to_owned(), "b".to_owned()][..], &[][..], None)
        );
        assert_eq!(assigned.given().count(), 2);
    }
}
