//! What clusters that have left leave behind, and whether something still depends on it: pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::offload::{names, view::NamespaceMapView};
use kube::ResourceExt;

/// Clusters that records are of and that have no Lease.
pub(super) struct Absent {
    /// For so long they have to have none. In a Common Area that was emptied a cluster has one again in less; one that is merely silent
    /// keeps its own.
    patience: Duration,
    /// By ID, when that was noticed.
    since: BTreeMap<String, Instant>,
}

impl Absent {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, since: BTreeMap::new() }
    }

    /// These clusters have no Lease now, and no others.
    pub(super) fn look<'a>(&mut self, absent: impl Iterator<Item = &'a str>, now: Instant) {
        let absent: BTreeSet<_> = absent.map(str::to_owned).collect();
        self.since.retain(|id, _| absent.contains(id));
        for id in absent {
            self.since.entry(id).or_insert(now);
        }
    }

    /// It is not known who has a Lease: what was noticed means nothing.
    pub(super) fn forget(&mut self) {
        self.since.clear();
    }

    /// Whether the cluster has had no Lease for long.
    pub(super) fn has_left(&self, id: &str, now: Instant) -> bool {
        self.since.get(id).is_some_and(|since| now.saturating_duration_since(*since) >= self.patience)
    }
}

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

    #[test]
    fn a_cluster_has_left_when_it_had_no_lease_for_long_and_nobody_looked_away() {
        let (mut absent, start) = (Absent::new(Duration::from_secs(300)), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        absent.look(["west"].into_iter(), at(0));
        absent.look(["west", "east"].into_iter(), at(200));
        assert!(!absent.has_left("west", at(299)) && absent.has_left("west", at(300)));
        assert!(!absent.has_left("east", at(300)));
        absent.look(["east"].into_iter(), at(310));
        absent.look(["west", "east"].into_iter(), at(320));
        assert!(!absent.has_left("west", at(600)), "it was back meanwhile");
        assert!(absent.has_left("east", at(600)));
        absent.forget();
        assert!(!absent.has_left("east", at(900)));
    }
}
