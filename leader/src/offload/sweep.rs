//! Whether something still depends on what a cluster that has left leaves behind: pure.

use api::offload::{names, view::NamespaceMapView};
use kube::ResourceExt;

/// Whether no twin depends on the map of a home that has left: nothing is wanted, and its host has seen that and has nothing left, or has
/// left, too. One that wants something or cannot be read stays: what merely vanishes takes no twin along, and would keep it for ever.
pub(super) fn has_ended(map: &NamespaceMapView, has_left: impl Fn(&str) -> bool) -> bool {
    let Ok(Some(spec)) = &map.spec.0 else { return false };
    if spec.name() != map.name_any() || !spec.desired_mapping.is_empty() {
        return false;
    }
    let is_seen = map.status.0.as_ref().is_ok_and(|status| {
        status.current_mapping.is_empty() && status.observed_generation >= map.metadata.generation
    });
    let host = names::of_namespace_map(&spec.name()).map(|(_, host)| has_left(host));
    is_seen || host == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn map(desired: &Value, status: &Value) -> NamespaceMapView {
        let spec = json!({"origin": "west", "destination": "east", "desiredMapping": desired});
        let metadata = json!({"name": "1.west.east", "generation": 4});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn a_map_goes_when_its_host_has_nothing_left_or_has_left_too() {
        let (none, key) = (json!({}), json!({"shop": "shop-west"}));
        let entry = json!({"remoteNamespace": "shop-west", "phase": "Terminating"});
        let there = |id: &str| id == "west";
        let seen = json!({"observedGeneration": 4, "currentMapping": {}});
        assert!(has_ended(&map(&none, &seen), there));
        assert!(!has_ended(&map(&key, &seen), there), "it was not emptied");
        assert!(
            !has_ended(&map(&none, &json!({"observedGeneration": 3})), there),
            "the host has not seen it"
        );
        assert!(!has_ended(&map(&none, &none), there), "the host does not run");
        let left = json!({"observedGeneration": 4, "currentMapping": {"shop": entry}});
        assert!(!has_ended(&map(&none, &left), there), "a twin goes there");
        assert!(has_ended(&map(&none, &left), |_| true), "the host has left");
        assert!(!has_ended(&map(&key, &left), |_| true), "nobody has taken that back");
        assert!(!has_ended(&map(&json!(7), &seen), there), "it does not decode");
        let mut other = map(&none, &seen);
        other.metadata.name = Some("1.west.north".into());
        assert!(!has_ended(&other, there), "it is not named as what it says");
    }
}
