//! Whether the Pods of a Namespace may run at a host: pure.

use api::offload::{map::ACCEPTED, phase::in_words, view::NamespaceOffloadingView};
use kube::Resource;

use crate::offload::{
    index::ClusterEntry,
    selection::{Key, key},
};

/// How it stands with the twin of a Namespace at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Twin<'a> {
    /// It is wanted, and there, by this name.
    There(&'a str),
    /// It is not there, or not wanted any more and not gone yet; or nothing is known of it. In a sentence.
    NotThere(String),
    /// Somebody decided that there shall be none, and there is none.
    Unwanted,
}

/// The twin of `namespace` at `host`. Only a map that is there and can be read says that there is none, and only if the NamespaceOffloading
/// does not ask for one: a map that was restored from a backup may be older than that.
pub(crate) fn twin<'a>(
    host: &str,
    cluster: &'a ClusterEntry,
    namespace: &str,
    offloading: Option<&NamespaceOffloadingView>,
) -> Twin<'a> {
    let (Some(wanted), Some(said)) = (cluster.wanted(), cluster.said()) else {
        return Twin::NotThere(format!(
            "it is not known whether Namespace {namespace} has a twin in cluster {host}"
        ));
    };
    let is_withdrawn = wanted.withdraws(namespace);
    let (wanted, said) = (wanted.desired_mapping.get(namespace), said.current_mapping.get(namespace));
    match (wanted, said) {
        (Some(name), Some(said)) if said.phase == ACCEPTED && said.remote_namespace == *name => {
            Twin::There(name)
        }
        (Some(name), Some(said)) => {
            Twin::NotThere(format!("the twin {name} in cluster {host}: {}", in_words(said)))
        }
        (Some(name), None) => Twin::NotThere(format!("cluster {host} has not made the twin {name} yet")),
        (None, Some(_)) if is_withdrawn => {
            Twin::NotThere(format!("the twin in cluster {host} is being deleted"))
        }
        (None, Some(_)) => {
            Twin::NotThere(format!("the NamespaceMap for cluster {host} does not name Namespace {namespace}"))
        }
        (None, None) if is_asked_for(cluster, offloading) => {
            Twin::NotThere(format!("cluster {host} has not been asked for a twin of {namespace} yet"))
        }
        (None, None) => Twin::Unwanted,
    }
}

fn is_asked_for(cluster: &ClusterEntry, offloading: Option<&NamespaceOffloadingView>) -> bool {
    offloading.is_some_and(|offloading| {
        offloading.meta().deletion_timestamp.is_none() && key(offloading, cluster) != Key::Drop
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::offload::{
        arrivals::{Known, Looks, events, seen},
        knowledge::Knowledge,
    };

    fn cluster(desired: &Value, current: &Value) -> ClusterEntry {
        let spec = json!({"origin": "west", "destination": "east", "desiredMapping": desired});
        let map =
            json!({"metadata": {"name": "1.west.east"}, "spec": spec, "status": {"currentMapping": current}});
        let labels = json!({"app.kubernetes.io/managed-by": "freeport"});
        ClusterEntry {
            own_map: serde_json::from_value(map).unwrap(),
            peer: serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {"outgoing": {}}}))
                .unwrap(),
            node: serde_json::from_value(json!({"metadata": {"name": "freeport-east", "labels": labels}}))
                .unwrap(),
            ..ClusterEntry::default()
        }
    }

    #[test]
    fn only_a_decision_makes_a_twin_unwanted() {
        let says = |phase: &str| json!({"shop": {"remoteNamespace": "shop-west", "phase": phase}});
        let (wanted, none) = (json!({"shop": "shop-west"}), json!({}));
        let of = |cluster: &ClusterEntry| match twin("east", cluster, "shop", None) {
            Twin::There(name) => name.to_owned(),
            Twin::NotThere(_) => "not there".to_owned(),
            Twin::Unwanted => "unwanted".to_owned(),
        };
        assert_eq!(of(&cluster(&wanted, &says("Accepted"))), "shop-west");
        assert_eq!(of(&cluster(&json!({"shop": "other"}), &says("Accepted"))), "not there", "another one");
        assert_eq!(of(&cluster(&wanted, &says("Terminating"))), "not there");
        assert_eq!(of(&cluster(&wanted, &none)), "not there");
        assert_eq!(of(&cluster(&none, &says("Accepted"))), "not there", "it is being taken back");
        assert_eq!(of(&cluster(&none, &none)), "unwanted");
        assert_eq!(of(&ClusterEntry::default()), "not there", "the map vanished");
        assert_eq!(of(&cluster(&json!(7), &none)), "not there", "it does not decode");
    }

    /// How it stands with all twins at a host, in words.
    fn look(known: &Known, host: &str) -> BTreeMap<String, String> {
        let namespaces = ["shop", "web"].map(str::to_owned);
        namespaces.iter().map(|namespace| look_at(known, host, namespace)).collect()
    }

    /// The same of those of which something else was said.
    fn look_again(known: &Known, host: &str) -> BTreeMap<String, String> {
        let touched = known.all.touched(host).into_iter();
        touched.map(|namespace| look_at(known, host, &namespace)).collect()
    }

    fn look_at(known: &Known, host: &str, namespace: &String) -> (String, String) {
        let is_host = |cluster: &Arc<ClusterEntry>| cluster.own_map.is_some() || cluster.node.is_some();
        let cluster = known.all.clusters.get(&host.to_owned()).filter(is_host);
        let entry = known.all.namespaces.get(namespace).unwrap_or_default();
        let twin = |cluster: Arc<ClusterEntry>| {
            format!("{:?}", twin(host, &cluster, namespace, entry.offloading.as_ref()))
        };
        (format!("{namespace} at {host}"), cluster.map(twin).unwrap_or_default())
    }

    proptest! {
        #[test]
        fn whoever_sends_pods_has_seen_the_last_of_their_twins(events in events()) {
            let keys = |known: &Knowledge| known.clusters.keys();
            let all = Looks { queue: |known| known.clusters.queue(3), keys, at: look };
            let some = Looks { queue: |known| known.clusters.queue(6), keys, at: look_again };
            let [last, now] = seen(&events, &all, &[some]);
            prop_assert_eq!(last, now);
        }
    }

    #[test]
    fn a_map_that_is_behind_makes_no_twin_unwanted() {
        let offloading =
            |metadata: Value| serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
        let (behind, mut unused) = (cluster(&json!({}), &json!({})), cluster(&json!({}), &json!({})));
        let asked = offloading(json!({"name": "offloading"}));
        assert!(matches!(twin("east", &behind, "shop", Some(&asked)), Twin::NotThere(_)));
        let going = offloading(json!({"name": "offloading", "deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(twin("east", &behind, "shop", Some(&going)), Twin::Unwanted);
        unused.peer = serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}})).unwrap();
        assert_eq!(twin("east", &unused, "shop", Some(&asked)), Twin::Unwanted);
    }
}
