//! Namespaces of ours that have a twin in another cluster, and no NamespaceOffloading that says so.

use std::collections::BTreeMap;

use crate::offload::{index::ClusterEntry, knowledge::Knowledge};

/// By name, the names of the twins: keys of our map of which no NamespaceOffloading is left, though nobody is known to have deleted it. Of a
/// map that is missing it is what it said last.
pub(super) fn lost(knowledge: &Knowledge, cluster: &ClusterEntry) -> BTreeMap<String, String> {
    let wanted = cluster.wanted().map_or(&cluster.wanted_before, |spec| &spec.desired_mapping);
    let is_lost = |(namespace, _): &(&String, &String)| {
        let known = knowledge.namespaces.get(*namespace).unwrap_or_default();
        known.offloading.is_none() && known.withdrawn.is_none()
    };
    wanted.iter().filter(is_lost).map(|(namespace, twin)| (namespace.clone(), twin.clone())).collect()
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::identity::Identity;

    #[test]
    fn keys_without_a_namespace_offloading_are_lost_until_somebody_decides() {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let knowledge = Knowledge::new(us, "freeport".into(), None);
        let offloading = |namespace: &str| {
            let it = json!({"metadata": {"name": "offloading", "namespace": namespace}, "spec": {}});
            knowledge.change_offloadings(Change::Apply(serde_json::from_value(it).unwrap()));
        };
        let map = |desired: Value| {
            let spec = json!({"origin": "west", "destination": "east", "desiredMapping": desired});
            serde_json::from_value(json!({"metadata": {"name": "1.west.east"}, "spec": spec})).unwrap()
        };
        let mut east = ClusterEntry {
            own_map: map(json!({"shop": "shop-west", "web": "web"})),
            ..ClusterEntry::default()
        };
        offloading("shop");
        let web = || BTreeMap::from([("web".to_owned(), "web".to_owned())]);
        assert_eq!(lost(&knowledge, &east), web());
        (east.own_map, east.wanted_before) = (None, web());
        assert_eq!(lost(&knowledge, &east), web(), "its map vanished, too");
        offloading("web");
        assert!(lost(&knowledge, &east).is_empty());
        knowledge
            .namespaces
            .note(&"web".to_owned(), |it| (it.offloading, it.withdrawn) = (None, Some("u".to_owned())));
        assert!(lost(&knowledge, &east).is_empty(), "somebody deleted it");
    }
}
