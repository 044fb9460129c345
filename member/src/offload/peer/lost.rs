//! Namespaces of ours that have a twin in another cluster, and no NamespaceOffloading.
//!
//! The OffloadPeer keeps them in `status.lostOffloadings`, for two purposes:
//!
//! * `freeport status` and `freeport offload status` name these Namespaces and the command that offloads or ends each of them.
//! * If the NamespaceMap is missing as well (both CRDs were deleted), this list alone tells which twins the cluster has. `freeport unoffload`
//!   creates a NamespaceOffloading and deletes it; the member then writes the withdrawal into a new map, because the list names the twin
//!   (`own_map/keys`), and waits until the host reports that the twin is gone (`knowledge/withdrawing`). A line for users, computed from the
//!   map when a command runs, could not do that.

use std::collections::BTreeMap;

use api::offload::map::NamespaceMapSpec;

use crate::offload::{index::ClusterEntry, knowledge::Knowledge};

/// By name, the names of the twins: keys of our map, and what the host says, of which no NamespaceOffloading is left, though nobody is known
/// to have deleted it. Of what a host alone says, only Namespaces count that are here.
pub(super) fn lost(
    knowledge: &Knowledge,
    cluster: &ClusterEntry,
    spec: &NamespaceMapSpec,
) -> BTreeMap<String, String> {
    let said = cluster.said().into_iter().flat_map(|said| said.current_mapping.keys());
    let said = said.filter(|name| knowledge.namespace(name).is_some());
    let is_lost = |namespace: &&String| {
        let known = knowledge.namespaces.get(*namespace).unwrap_or_default();
        known.offloading.is_none() && known.withdrawn.is_none() && !spec.withdraws(namespace)
    };
    let lost = spec.desired_mapping.keys().chain(said).filter(is_lost);
    lost.filter_map(|namespace| Some((namespace.clone(), cluster.twin_of(namespace)?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::identity::Identity;

    #[test]
    fn twins_without_a_namespace_offloading_are_lost_until_somebody_decides() {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let knowledge = Knowledge::new(us, "freeport".into(), None);
        let offloading = |namespace: &str| {
            let it = json!({"metadata": {"name": "offloading", "namespace": namespace}, "spec": {}});
            knowledge.change_offloadings(Change::Apply(serde_json::from_value(it).unwrap()));
        };
        let east = |desired: Value, withdrawn: Value| {
            let spec = json!({"origin": "west", "destination": "east", "desiredMapping": desired, "withdrawn": withdrawn});
            let said = json!({"web": {"remoteNamespace": "web", "phase": "Accepted"}});
            let map = json!({"metadata": {"name": "1.west.east"}, "spec": spec, "status": {"currentMapping": said}});
            ClusterEntry { own_map: serde_json::from_value(map).unwrap(), ..ClusterEntry::default() }
        };
        let none = || json!({});
        let lost = |cluster: ClusterEntry| lost(&knowledge, &cluster, cluster.wanted().unwrap());
        offloading("shop");
        let web = || BTreeMap::from([("web".to_owned(), "web".to_owned())]);
        assert_eq!(lost(east(json!({"shop": "shop-west", "web": "web"}), none())), web());
        assert!(lost(east(none(), none())).is_empty(), "the host says it, of a Namespace that is not here");
        let here = json!({"metadata": {"name": "web"}});
        knowledge.change_namespaces(Change::Apply(serde_json::from_value(here).unwrap()));
        assert_eq!(lost(east(none(), none())), web(), "the map was made anew without it");
        assert!(lost(east(none(), json!({"web": 1}))).is_empty(), "it is withdrawn");
        offloading("web");
        assert!(lost(east(none(), none())).is_empty());
        knowledge
            .namespaces
            .note(&"web".to_owned(), |it| (it.offloading, it.withdrawn) = (None, Some("u".to_owned())));
        assert!(lost(east(none(), none())).is_empty(), "somebody deleted it");
    }
}
