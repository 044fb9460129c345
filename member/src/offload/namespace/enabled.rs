//! The label by which a user asks for a NamespaceOffloading with the defaults: pure.

use api::{
    label as general,
    offload::{
        label,
        namespace::{NAME, NamespaceOffloading, NamespaceOffloadingSpec},
        view::NamespaceOffloadingView,
    },
};
use kube::ResourceExt;

use crate::offload::index::NamespaceEntry;

/// What the label asks for and is not so.
#[derive(Debug, PartialEq)]
pub(super) enum Change<'a> {
    Make,
    /// The label that asked for it was taken off.
    Delete(&'a NamespaceOffloadingView),
}

/// What the label of a Namespace asks for that is not so. One that somebody made is left alone.
pub(super) fn change(entry: &NamespaceEntry) -> Option<Change<'_>> {
    let namespace = entry.namespace.as_ref().filter(|namespace| !namespace.is_going())?;
    let is_asked_for = namespace.label(label::ENABLED) == Some(general::TRUE);
    let was_made = |offloading: &&NamespaceOffloadingView| {
        let by = offloading.annotations().get(label::RESOURCE_CONTROLLED_BY);
        by.is_some_and(|by| by == label::BY_NAMESPACE_CONTROLLER)
            && offloading.metadata.deletion_timestamp.is_none()
    };
    match (&entry.offloading, is_asked_for) {
        (None, true) => Some(Change::Make),
        (Some(offloading), false) => Some(offloading).filter(was_made).map(Change::Delete),
        (None, false) | (Some(_), true) => None,
    }
}

/// The NamespaceOffloading that the label asks for.
pub(super) fn made(namespace: &str) -> NamespaceOffloading {
    let mut made = NamespaceOffloading::new(NAME, NamespaceOffloadingSpec::default());
    made.metadata.namespace = Some(namespace.to_owned());
    let note = (label::RESOURCE_CONTROLLED_BY.to_owned(), label::BY_NAMESPACE_CONTROLLER.to_owned());
    made.metadata.annotations = Some([note].into());
    made
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(labels: &Value, offloading: Option<&NamespaceOffloading>) -> NamespaceEntry {
        let namespace = json!({"metadata": {"name": "shop", "labels": labels}});
        let offloading = offloading.map(|made| serde_json::from_value(json!(made)).unwrap());
        let namespace = serde_json::from_value(namespace).unwrap();
        NamespaceEntry { namespace, offloading, ..NamespaceEntry::default() }
    }

    #[test]
    fn only_what_the_label_asked_for_goes_with_it() {
        let (on, off) = (json!({"liqo.io/enabled": "true"}), json!({}));
        let made = made("shop");
        let users = NamespaceOffloading::new(NAME, NamespaceOffloadingSpec::default());
        assert_eq!(change(&entry(&on, None)), Some(Change::Make));
        assert_eq!(change(&entry(&on, Some(&made))), None);
        assert_eq!(change(&entry(&off, None)), None);
        assert!(matches!(change(&entry(&off, Some(&made))), Some(Change::Delete(_))));
        assert_eq!(change(&entry(&off, Some(&users))), None);
        assert_eq!(change(&NamespaceEntry::default()), None);
    }
}
