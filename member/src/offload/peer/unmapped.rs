//! Twins here that no NamespaceMap of their home names: nobody decided that they go, and nobody asks for them any more.

use std::collections::BTreeMap;

use api::offload::{names, peer::UNMAPPED_MAX};
use kube::ResourceExt;

use crate::offload::{index::ClusterEntry, knowledge::Knowledge};

/// Returns, by name, the Namespaces at home of twins that the map of cluster `home` neither desires nor withdraws, or whose map is missing:
/// the first [`UNMAPPED_MAX`] of them. `None` where the map cannot be read.
pub(super) fn unmapped(
    knowledge: &Knowledge,
    home: &str,
    entry: &ClusterEntry,
) -> Option<BTreeMap<String, String>> {
    let spec = entry.asked_here();
    if spec.is_none() && entry.map.is_some() {
        return None;
    }
    let record = names::namespace_map(home, &knowledge.us.cluster);
    let is_named = |original: &str| {
        spec.is_some_and(|spec| spec.desired_mapping.contains_key(original) || spec.withdraws(original))
    };
    let mut unmapped = BTreeMap::new();
    for name in knowledge.namespaces.keys() {
        let known = knowledge.namespaces.get(&name);
        let twin = known.as_ref().and_then(|known| known.namespace.as_ref());
        let Some(twin) = twin.filter(|twin| twin.is_made_here() && !twin.is_going()) else { continue };
        match twin.twin_of(&record) {
            Some((of, original)) if of == home && !is_named(original) => {
                unmapped.insert(twin.name_any(), original.to_owned());
            }
            _ => {}
        }
    }
    Some(unmapped.into_iter().take(UNMAPPED_MAX).collect())
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::identity::Identity;

    #[test]
    fn a_twin_that_its_home_neither_desires_nor_withdraws_is_named() {
        let us = Identity { cluster: "east".into(), common_area: "area".into() };
        let knowledge = Knowledge::new(us, "freeport".into(), None);
        let twin = |original: &str, manager: &str| {
            let metadata = json!({
                "name": format!("{original}-west"),
                "labels": {"app.kubernetes.io/managed-by": "freeport", "liqo.io/remote-cluster-id": "west"},
                "annotations": {"liqo.io/managed-by-namespace-map": "1.west.east", "liqo.io/original-name": original},
                "managedFields": [{"manager": manager, "operation": "Update"}],
            });
            let twin = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
            knowledge.change_namespaces(Change::Apply(twin));
        };
        twin("evil", "freeport-member");
        twin("shop", "freeport-member");
        twin("copy", "kubectl");
        let unmapped = |map: Option<Value>| {
            let map = map.map(|spec| {
                let metadata = json!({"name": "1.west.east", "namespace": "area"});
                serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
            });
            let named = unmapped(&knowledge, "west", &ClusterEntry { map, ..ClusterEntry::default() })?;
            Some(named.into_values().collect::<Vec<_>>())
        };
        let spec = |desired: Value, withdrawn: Value| {
            Some(
                json!({"origin": "west", "destination": "east", "desiredMapping": desired, "withdrawn": withdrawn}),
            )
        };
        let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(unmapped(None), named(&["evil", "shop"]), "the map is missing");
        assert_eq!(unmapped(spec(json!({"shop": "shop-west"}), json!({}))), named(&["evil"]));
        assert_eq!(unmapped(spec(json!({"shop": "shop-west"}), json!({"evil": 1}))), named(&[]));
        assert_eq!(unmapped(Some(json!(7))), None, "nothing is known");
    }
}
