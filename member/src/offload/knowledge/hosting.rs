//! What matters to Pods of other clusters that run here, and to the twins they run in.

use api::offload::{label, view::OffloadPeerView};
use kit::{
    index::{Part, Readers},
    objects::Change,
};
use kube::ResourceExt;

use super::Knowledge;
use crate::offload::{
    index::{Asked, ClusterEntry, MAP, NamespaceEntry, SHADOW},
    room::Due,
    view::{Namespace, PeerPod, TwinAccount, TwinBinding},
};

impl Knowledge {
    /// Takes in a change of OffloadPeers: Pods of those that are accepted now may come.
    pub(crate) fn change_peers(&self, change: Change<OffloadPeerView>) {
        self.change(change);
        let is_accepted = |entry: &ClusterEntry| matches!(entry.incoming(), Asked::Yes(_));
        let accepted = self.all_clusters().into_iter().filter(|(_, entry)| is_accepted(entry));
        self.have_read(self.room.accept(accepted.map(|(home, _)| home).collect()));
        self.shadows.enqueue_all(SHADOW);
    }

    /// Takes in a change of what other clusters want to run here, as far as there is room; whether all has to be listed again.
    pub(crate) fn change_records(&self, change: Change<PeerPod>) -> bool {
        let admitted = self.room.admit(change);
        if let Some(change) = admitted.change {
            self.shadows.change(change);
        }
        self.have_read(admitted.due);
        admitted.wants_list
    }

    /// Has the records read that have room now.
    fn have_read(&self, due: Vec<Due>) {
        for (place, record) in due {
            self.shadows.note(&place, |entry| entry.make_due(&record));
            self.shadows.enqueue([(place, SHADOW)].into());
        }
    }

    /// Takes in a change of what lets us make Pods in twins. The controller that writes it is asked again, but not
    /// for its own writes.
    pub(crate) fn change_bindings(&self, change: Change<TwinBinding>) {
        self.change_in_twins(change, |entry| entry.binding.clone());
    }

    /// Takes in a change of the ServiceAccounts by which Namespaces take Pods.
    pub(crate) fn change_accounts(&self, change: Change<TwinAccount>) {
        self.change_in_twins(change, |entry| entry.has_account);
    }

    /// Takes in a change of what is in Namespaces, of which entries say `what`. Those who want them as twins are asked again.
    fn change_in_twins<P, T>(&self, change: Change<P>, what: fn(&NamespaceEntry) -> T)
    where
        P: Part<String, NamespaceEntry>,
        T: PartialEq,
    {
        let twins = match &change {
            Change::Apply(object) | Change::Remove(object) => object.namespace().into_iter().collect(),
            Change::Reset(_) => self.namespaces.keys(),
        };
        let all = || -> Vec<_> {
            twins.iter().map(|twin| self.namespaces.get(twin).map(|entry| what(&entry))).collect()
        };
        let before = all();
        self.namespaces.change(change);
        let changed = twins.iter().zip(before.into_iter().zip(all())).filter(|(_, (was, is))| was != is);
        let home = |twin: &String| self.namespace(twin)?.label(label::REMOTE_CLUSTER_ID).map(str::to_owned);
        let homes =
            changed.filter_map(|(twin, _)| home(twin)).filter(|home| self.clusters.get(home).is_some());
        self.clusters.enqueue(homes.map(|home| (home, MAP)).collect());
    }

    /// Homes that want a twin of the name that is free now, or taken.
    pub(super) fn homes_waiting(&self, name: &str) -> Vec<String> {
        let wants = |entry: &ClusterEntry| {
            entry.asked_here().is_some_and(|spec| spec.desired_mapping.values().any(|twin| twin == name))
        };
        let homes = self.all_clusters().into_iter().filter(|(_, entry)| wants(entry));
        homes.map(|(home, _)| home).collect()
    }

    /// Asks those again that want a Pod in one of these Namespaces, or in any.
    pub(super) fn enqueue_hosted(&self, namespace: Option<&str>) {
        let is_there = |place: &String| {
            namespace.is_none_or(|name| place.split_once('/').is_some_and(|(namespace, _)| namespace == name))
        };
        let places = self.shadows.keys().into_iter().filter(is_there);
        self.shadows.enqueue(places.map(|place| (place, Readers::ALL)).collect());
    }

    /// Whether the Namespace was made for cluster `home`, be it that it stays or goes.
    pub(crate) fn is_of_home(&self, namespace: &str, home: &str) -> bool {
        self.namespace(namespace).is_some_and(|there| there.home().is_some_and(|(of, _)| of == home))
    }

    /// The Namespace, if it is a twin that cluster `home` asked for, and stays.
    pub(crate) fn twin(&self, namespace: &str, home: &str) -> Option<Namespace> {
        let record = api::offload::names::namespace_map(home, &self.us.cluster);
        let is_twin = |namespace: &Namespace| {
            !namespace.is_going() && namespace.twin_of(&record).is_some_and(|(of, _)| of == home)
        };
        self.namespace(namespace).filter(is_twin)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        identity::Identity,
        offload::{room::RECORDS_MAX, view::PeerMap},
    };

    fn known(metadata: &Value) -> Knowledge {
        let us = Identity { cluster: "east".into(), common_area: "area".into() };
        let known = Knowledge::new(us, "freeport".into(), None);
        let namespace = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        known.change_namespaces(Change::Apply(namespace));
        known
    }

    #[test]
    fn a_record_that_has_room_now_is_to_be_read() {
        let known = known(&json!({"name": "shop-west"}));
        let peer = |spec: Value| {
            let peer = json!({"metadata": {"name": "west"}, "spec": spec});
            known.change_peers(Change::Apply(serde_json::from_value(peer).unwrap()));
        };
        peer(json!({"incoming": {}}));
        let record = |number: usize| -> PeerPod {
            let spec = json!({
                "origin": "west", "destination": "east", "namespace": "shop-west", "pod": format!("web-{number}"),
                "uid": format!("u{number}"), "sealed": "content",
            });
            let metadata = json!({"name": format!("1.west.east.u{number}"), "namespace": "area"});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        let of = |number: usize| {
            let entry = known.shadows.get(&format!("shop-west/web-{number}")).unwrap();
            entry.records.values().next().unwrap().clone()
        };
        for number in 0..=RECORDS_MAX {
            assert!(!known.change_records(Change::Apply(record(number))));
        }
        assert!(of(RECORDS_MAX).is_over() && of(RECORDS_MAX).asked().unwrap().sealed.is_empty());
        known.change_records(Change::Remove(record(0)));
        assert!(of(RECORDS_MAX).is_due() && !of(RECORDS_MAX).is_over());
        peer(json!({}));
        known.change_records(Change::Remove(record(1)));
        known.change_records(Change::Apply(record(1)));
        assert!(of(1).is_over() && !of(1).is_due(), "its home is not accepted");
        peer(json!({"incoming": {}}));
        assert!(of(1).is_due());
    }

    #[test]
    fn a_name_that_is_free_is_used_at_once() {
        let known = known(&json!({"name": "shop-west"}));
        let spec = json!({"origin": "west", "destination": "east", "desiredMapping": {"shop": "shop-west"}});
        let map: PeerMap =
            serde_json::from_value(json!({"metadata": {"name": "1.west.east"}, "spec": spec})).unwrap();
        known.clusters.change(Change::Apply(map));
        assert_eq!(known.homes_waiting("other"), Vec::<String>::new());
        assert_eq!(known.homes_waiting("shop-west"), ["west"]);
    }

    #[test]
    fn a_twin_is_of_one_home_and_stays() {
        let labels = json!({"app.kubernetes.io/managed-by": "freeport", "liqo.io/remote-cluster-id": "west"});
        let annotations =
            json!({"liqo.io/managed-by-namespace-map": "1.west.east", "liqo.io/original-name": "shop"});
        let mut twin = json!({"name": "shop-west", "labels": labels, "annotations": annotations});
        assert!(known(&twin).twin("shop-west", "west").is_some());
        assert!(known(&twin).twin("shop-west", "north").is_none(), "another's");
        assert!(known(&twin).twin("shop", "west").is_none());
        twin["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
        assert!(known(&twin).twin("shop-west", "west").is_none(), "it goes");
        assert!(known(&twin).is_of_home("shop-west", "west"), "it is still its own");
        assert!(!known(&twin).is_of_home("shop-west", "north"));
        assert!(!known(&twin).is_of_home("shop", "west"));
        assert!(known(&json!({"name": "shop-west"})).twin("shop-west", "west").is_none(), "somebody's");
    }
}
