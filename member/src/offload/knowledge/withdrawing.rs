//! Whether hosts may have a twin of a Namespace whose NamespaceOffloading is being deleted.

use std::time::{Duration, Instant};

use api::offload::view::NamespaceOffloadingView;
use jiff::Timestamp;

use super::{Knowledge, WITHOUT_LEASE};
use crate::offload::index::{
    Asked, ClusterEntry, EXCHANGE, MAP, NAMESPACE, NODE, NamespaceEntry, OWN_MAP, SHADOW, STATUS,
};

impl Knowledge {
    /// Whether a NamespaceOffloading waits for hosts before it goes.
    pub(super) fn is_withdrawing(&self) -> bool {
        let names = self.namespaces.keys().into_iter();
        let entries = names.filter_map(|name| self.namespaces.get(&name));
        entries.into_iter().any(|entry| entry.is_withdrawn())
    }

    /// Takes in why the OffloadPeer of a cluster is gone: whether somebody `decided` that.
    pub(crate) fn peer_is_gone(&self, cluster: &String, decided: bool) {
        self.clusters.note(cluster, |entry| {
            entry.peer_withdrawn = entry.peer.is_none().then_some(decided);
        });
        let readers = NODE.and(MAP).and(EXCHANGE).and(OWN_MAP);
        self.clusters.enqueue([(cluster.clone(), readers)].into());
        self.enqueue_offloaded(NAMESPACE.and(STATUS));
        self.shadows.enqueue_all(SHADOW);
    }

    /// Hosts that may have a twin of a Namespace for which nobody decided, though our map for them does not say so: it was made anew after
    /// the NamespaceOffloading had vanished. The label says that the Namespace is offloaded. Of such a host nothing is vouched for.
    pub(crate) fn hosts_of_undecided(&self) -> Vec<String> {
        let names = self.namespaces.keys().into_iter();
        let is_undecided = |name: &String| self.namespaces.get(name).is_some_and(|it| it.is_undecided());
        let undecided: Vec<_> = names.filter(is_undecided).collect();
        let lacks_one = |cluster: &ClusterEntry| {
            let wanted = cluster.wanted().map(|spec| &spec.desired_mapping);
            undecided.iter().any(|name| !wanted.is_some_and(|wanted| wanted.contains_key(name)))
        };
        let clusters = self.all_clusters().into_iter();
        clusters.filter(|(_, cluster)| lacks_one(cluster)).map(|(id, _)| id).collect()
    }

    /// The hosts that have a twin of the Namespace, or may have one. `is_overdue`: hosts have had
    /// time enough to say that it is gone.
    pub(crate) fn where_left(&self, namespace: &str, is_overdue: bool, now: Instant) -> Vec<String> {
        let known = self.namespaces.get(&namespace.to_owned()).unwrap_or_default();
        let clusters = self.all_clusters();
        let are_left = clusters.iter().filter(|(id, cluster)| {
            !(is_overdue && is_given_up(namespace, cluster))
                && is_left(namespace, &known, (id, cluster), self.missing_for(id, now))
        });
        are_left.map(|(id, _)| id.clone()).collect()
    }
}

/// How long a host that is there has to say that a twin is gone.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whether hosts have had time enough by `now` to say that the twins of a NamespaceOffloading are gone.
pub(crate) fn is_overdue(offloading: &NamespaceOffloadingView, now: Timestamp) -> bool {
    let since = offloading.metadata.deletion_timestamp.as_ref().map(|time| now.duration_since(time.0));
    since.and_then(|since| Duration::try_from(since).ok()).is_some_and(|since| since >= PATIENCE)
}

/// Whether nothing is asked of the host any more, for which somebody decided: a host that does not answer holds nobody up for ever. Its
/// twins may stay there.
fn is_given_up(namespace: &str, cluster: &ClusterEntry) -> bool {
    let is_wanted = cluster.wanted().is_some_and(|spec| spec.desired_mapping.contains_key(namespace));
    matches!(cluster.outgoing(), Asked::No) && !is_wanted
}

/// Whether a cluster has a twin of the Namespace, or may have one: its key is there, it says so itself, or it has not seen
/// that the key went. One that has left is not waited for: it has had no Lease for so long.
fn is_left(
    namespace: &str,
    known: &NamespaceEntry,
    (id, cluster): (&str, &ClusterEntry),
    missing: Option<Duration>,
) -> bool {
    let is_wanted = cluster.wanted().is_some_and(|spec| spec.desired_mapping.contains_key(namespace));
    let is_said = cluster.said().is_some_and(|said| said.current_mapping.contains_key(namespace));
    let was_asked = is_wanted || known.awaits(id).is_some() || known.has_asked(id);
    if is_wanted || is_said && was_asked {
        return true;
    }
    let Some(awaited) = known.awaits(id) else { return false };
    if missing.is_some_and(|missing| matches!(cluster.outgoing(), Asked::No) || missing >= WITHOUT_LEASE) {
        return false;
    }
    let Some(map) = &cluster.own_map else { return true };
    let now = map.metadata.generation.unwrap_or_default();
    let seen = cluster.said().and_then(|said| said.observed_generation).unwrap_or_default();
    seen < awaited.min(now)
}

#[cfg(test)]
mod tests {
    use api::offload::label::SCHEDULING_ENABLED;
    use kit::objects::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::identity::Identity;

    /// The NamespaceOffloading of `shop` is deleted by decision.
    fn withdrawn(status: &Value) -> NamespaceEntry {
        let metadata = json!({"name": "offloading", "uid": "u", "deletionTimestamp": "2026-11-01T12:00:00Z"});
        NamespaceEntry {
            offloading: serde_json::from_value(json!({"metadata": metadata, "spec": {}, "status": status}))
                .unwrap(),
            withdrawn: Some("u".into()),
            ..NamespaceEntry::default()
        }
    }

    /// Our map for `east` in its seventh generation.
    fn east(desired: &Value, said: &Value) -> ClusterEntry {
        let spec = json!({"origin": "west", "destination": "east", "desiredMapping": desired});
        let map = json!({"metadata": {"name": "1.west.east", "generation": 7}, "spec": spec, "status": said});
        let peer = json!({"metadata": {"name": "east"}, "spec": {"outgoing": {}}});
        ClusterEntry {
            peer: serde_json::from_value(peer).unwrap(),
            own_map: serde_json::from_value(map).unwrap(),
            ..ClusterEntry::default()
        }
    }

    fn is_left(known: &NamespaceEntry, east: &ClusterEntry) -> bool {
        super::is_left("shop", known, ("east", east), None)
    }

    #[test]
    fn a_host_in_whose_map_a_lost_key_may_be_missing_is_vouched_for_when_somebody_decided() {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let knowledge = Knowledge::new(us, "freeport".into(), None);
        let namespace = |label: &str| {
            let labels = json!({SCHEDULING_ENABLED: label});
            let shop = json!({"metadata": {"name": "shop", "labels": labels}});
            knowledge.change_namespaces(Change::Apply(serde_json::from_value(shop).unwrap()));
        };
        let map = |desired: &Value| {
            let map = east(desired, &json!({})).own_map.unwrap();
            knowledge.clusters.change(Change::Apply(map));
        };
        let (none, key) = (json!({}), json!({"shop": "shop-west"}));
        map(&none);
        namespace("true");
        assert_eq!(
            knowledge.hosts_of_undecided(),
            ["east"],
            "its NamespaceOffloading vanished, or is not there yet"
        );
        map(&key);
        assert!(knowledge.hosts_of_undecided().is_empty(), "the host knows that it is wanted");
        map(&none);
        let offloading = withdrawn(&none).offloading.unwrap();
        knowledge.namespaces.note(&"shop".to_owned(), |entry| entry.offloading = Some(offloading.clone()));
        assert!(knowledge.hosts_of_undecided().is_empty(), "what it wants is known");
        let uid = Some("u".to_owned());
        knowledge
            .namespaces
            .note(&"shop".to_owned(), |it| (it.offloading, it.withdrawn) = (None, uid.clone()));
        assert!(knowledge.hosts_of_undecided().is_empty(), "somebody deleted it");
        knowledge.namespaces.note(&"shop".to_owned(), |entry| entry.withdrawn = None);
        assert_eq!(knowledge.hosts_of_undecided(), ["east"]);
        namespace("false");
        assert!(knowledge.hosts_of_undecided().is_empty(), "somebody took the label off");
    }

    #[test]
    fn a_host_is_waited_for_until_it_has_seen_that_the_key_went() {
        let (none, key) = (json!({}), json!({"shop": "shop-west"}));
        let mut known = withdrawn(&none);
        assert!(!is_left(&known, &east(&none, &none)), "it never had to know of it");
        assert!(is_left(&known, &east(&key, &none)));
        known.awaited.insert("east".into(), 6);
        for (seen, is_left_there) in
            [(json!({}), true), (json!(5), true), (json!(6), false), (json!(7), false)]
        {
            let said = json!({"observedGeneration": seen.as_i64()});
            assert_eq!(is_left(&known, &east(&none, &said)), is_left_there, "{seen}");
        }
        let entry = json!({"remoteNamespace": "shop-west", "phase": "Terminating"});
        let said = json!({"observedGeneration": 7, "currentMapping": {"shop": entry}});
        assert!(is_left(&known, &east(&none, &said)));
        known.awaited.insert("east".into(), 20);
        assert!(!is_left(&known, &east(&none, &json!({"observedGeneration": 7}))), "of before a restore");

        let vanished = ClusterEntry { own_map: None, ..east(&none, &none) };
        assert!(is_left(&known, &vanished), "it is put back, for the host to see");
        let left = |missing| super::is_left("shop", &known, ("east", &vanished), Some(missing));
        assert!(left(Duration::ZERO) && !left(WITHOUT_LEASE), "it has no Lease");
        let unused = serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}})).unwrap();
        let left = ClusterEntry { peer: Some(unused), ..vanished.clone() };
        assert!(!super::is_left("shop", &known, ("east", &left), Some(Duration::ZERO)), "it has left");
    }

    #[test]
    fn a_host_that_does_not_answer_is_given_up_by_decision_when_it_had_time() {
        let known = withdrawn(&json!({}));
        let offloading = known.offloading.as_ref().unwrap();
        let at = |time: &str| is_overdue(offloading, time.parse().unwrap());
        assert!(!at("2026-11-01T12:04:59Z") && at("2026-11-01T12:05:00Z") && !at("2026-11-01T11:00:00Z"));
        let entry = json!({"remoteNamespace": "shop-west", "phase": "Accepted"});
        let silent = east(&json!({}), &json!({"currentMapping": {"shop": entry}}));
        let unused = serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}})).unwrap();
        let removed = ClusterEntry { peer: Some(unused), ..silent.clone() };
        assert!(!is_given_up("shop", &silent) && is_given_up("shop", &removed));
        let wanted =
            ClusterEntry { own_map: east(&json!({"shop": "shop-west"}), &json!({})).own_map, ..removed };
        assert!(!is_given_up("shop", &wanted), "its key has not gone yet");
    }

    #[test]
    fn who_was_not_asked_holds_nobody_up() {
        let entry = json!({"remoteNamespace": "shop-west", "phase": "Accepted"});
        let said = json!({"currentMapping": {"shop": entry}});
        assert!(!is_left(&withdrawn(&json!({})), &east(&json!({}), &said)));
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-01T12:00:00Z"})
        };
        let asked = json!({"remoteNamespaceName": "shop-west", "remoteNamespacesConditions": {
            "east": [condition("OffloadingRequired", "True"), condition("Ready", "True")],
        }});
        assert!(is_left(&withdrawn(&asked), &east(&json!({}), &said)), "as the status says");
        assert!(is_left(&withdrawn(&asked), &east(&json!({}), &json!({}))), "after a restart");
    }
}
