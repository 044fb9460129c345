//! Which keys are on their way into our maps: a NamespaceOffloading that let go meanwhile would leave its twin behind.

use std::collections::{BTreeMap, BTreeSet};

use kit::index::Shared;

/// For each cluster whose map is being written the Namespaces whose keys come with that; none while it is being found out. Cloning
/// shares it.
#[derive(Clone, Default)]
pub(crate) struct Writing(Shared<BTreeMap<String, Option<BTreeSet<String>>>>);

impl Writing {
    /// Says that the map for a cluster is being looked at, until it is dropped. First: what is read before that may be older than what
    /// others decide because they see nothing on its way.
    pub(crate) fn begin(&self, cluster: &str) -> Underway {
        self.0.with(|maps| maps.insert(cluster.to_owned(), None));
        Underway { writing: self.clone(), cluster: cluster.to_owned() }
    }

    /// Whether a key of this Namespace may be on its way.
    pub(crate) fn may_have(&self, namespace: &str) -> bool {
        let may = |keys: &Option<BTreeSet<String>>| keys.as_ref().is_none_or(|keys| keys.contains(namespace));
        self.0.with(|maps| maps.values().any(may))
    }
}

/// A map that is being written.
pub(crate) struct Underway {
    writing: Writing,
    cluster: String,
}

impl Underway {
    /// Keys of these Namespaces come, and no others.
    pub(crate) fn has(&self, namespaces: impl IntoIterator<Item = String>) {
        let namespaces = namespaces.into_iter().collect();
        self.writing.0.with(|maps| maps.insert(self.cluster.clone(), Some(namespaces)));
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.writing.0.with(|maps| maps.remove(&self.cluster));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_on_its_way_until_the_map_is_written() {
        let writing = Writing::default();
        assert!(!writing.may_have("shop"));
        let east = writing.begin("east");
        assert!(writing.may_have("shop"), "it is not known yet");
        east.has(["shop".to_owned()]);
        assert!(writing.may_have("shop") && !writing.may_have("web"));
        let north = writing.begin("north");
        north.has([]);
        drop(east);
        assert!(!writing.may_have("shop"));
    }
}
