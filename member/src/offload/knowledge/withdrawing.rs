//! Whether hosts may have a twin of a Namespace whose NamespaceOffloading is being deleted.

use std::time::{Duration, Instant};

use api::offload::view::NamespaceOffloadingView;
use jiff::Timestamp;

use super::{Knowledge, WITHOUT_LEASE};
use crate::offload::index::{
    Asked, ClusterEntry, EXCHANGE, MAP, NAMESPACE, NODE, NamespaceEntry, OWN_MAP, SHADOW, STATUS,
};

impl Knowledge {
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

/// Whether a cluster has a twin of the Namespace, or may have one: its key is there, it has not carried out the withdrawal yet, it says so
/// itself, or the map is missing. A cluster without a Lease is waited for until that has been so for [`WITHOUT_LEASE`], and only while it is
/// used: if it comes back later, it deletes the twin by the withdrawal.
fn is_left(
    namespace: &str,
    known: &NamespaceEntry,
    (id, cluster): (&str, &ClusterEntry),
    missing: Option<Duration>,
) -> bool {
    let wanted = cluster.wanted();
    let is_withdrawn = wanted.is_some_and(|spec| spec.withdrawn.contains_key(namespace));
    let is_said = cluster.said().is_some_and(|said| said.current_mapping.contains_key(namespace));
    if wanted.is_some_and(|spec| spec.desired_mapping.contains_key(namespace))
        || is_said && (is_withdrawn || known.has_asked(id) || cluster.has_lost(namespace))
    {
        return true;
    }
    let is_away =
        missing.is_some_and(|missing| matches!(cluster.outgoing(), Asked::No) || missing >= WITHOUT_LEASE);
    let had_one = known.is_withdrawn() && (known.had(id).is_some() || cluster.has_lost(namespace));
    !is_away && (is_withdrawn || wanted.is_none() && had_one)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
    fn a_host_is_waited_for_until_it_has_carried_out_the_withdrawal() {
        let (none, key) = (json!({}), json!({"shop": "shop-west"}));
        let known = withdrawn(&none);
        assert!(!is_left(&known, &east(&none, &none)), "it never had to know of it");
        assert!(is_left(&known, &east(&key, &none)));
        let mut asked = east(&none, &none);
        set_withdrawn(&mut asked);
        assert!(is_left(&known, &asked), "it was only just asked");
        let entry = json!({"remoteNamespace": "shop-west", "phase": "Terminating"});
        let mut going = east(&none, &json!({"observedGeneration": 7, "currentMapping": {"shop": entry}}));
        set_withdrawn(&mut going);
        assert!(is_left(&known, &going));

        let had = json!({"remoteNamespaceName": "shop-west", "remoteNamespacesConditions": {"east": [
            {"type": "OffloadingRequired", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-01T12:00:00Z"},
        ]}});
        let missing = ClusterEntry { own_map: None, ..east(&none, &none) };
        assert!(is_left(&withdrawn(&had), &missing), "the map is written again, for the host to see");
        assert!(!is_left(&known, &missing), "the host never had a twin");
        let left = |entry: &ClusterEntry, since| super::is_left("shop", &known, ("east", entry), Some(since));
        assert!(left(&asked, Duration::ZERO) && !left(&asked, WITHOUT_LEASE), "it has no Lease");
        let unused = serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}})).unwrap();
        let unused = ClusterEntry { peer: Some(unused), ..asked };
        assert!(!left(&unused, Duration::ZERO), "it has left");
    }

    fn set_withdrawn(east: &mut ClusterEntry) {
        let map = east.own_map.as_mut().unwrap();
        map.spec.0.as_mut().unwrap().as_mut().unwrap().withdrawn = [("shop".to_owned(), 6)].into();
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
    }
}
