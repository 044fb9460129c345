//! Our maps: which Namespaces are asked again when one says something else, or its host does.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use api::offload::{
    map::{MappedNamespace, NamespaceMapSpec},
    view::NamespaceOffloadingView,
};
use kit::objects::Change;
use kube::ResourceExt;

use super::Knowledge;
use crate::offload::{
    index::{Asked, ClusterEntry, NAMESPACE, NODE, PEER, STATUS, TWINS},
    view::OwnMap,
};

impl Knowledge {
    /// Takes in a change of our maps. Only the Namespaces are asked again of which one says something else now.
    pub(crate) fn change_own_maps(&self, change: Change<OwnMap>) {
        let before = self.all_clusters();
        self.clusters.change(change);
        let after = self.all_clusters();
        let ids: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let none = Arc::default();
        for id in ids {
            let (before, after) = (before.get(id).unwrap_or(&none), after.get(id).unwrap_or(&none));
            if !Arc::ptr_eq(before, after) {
                self.own_map_changed(id, before, after);
            }
        }
    }

    /// Takes in a change of NamespaceOffloadings. Pods are looked at again of Namespaces of which one asks for something else: where no map
    /// says anything of a Namespace, that decides whether its Pods have ended.
    pub(crate) fn change_offloadings(&self, change: Change<NamespaceOffloadingView>) {
        let names: BTreeSet<_> = match &change {
            Change::Apply(one) | Change::Remove(one) => one.namespace().into_iter().collect(),
            Change::Reset(_) => self.namespaces.keys().into_iter().collect(),
        };
        let ask = |name: &String| {
            let entry = self.namespaces.get(name)?;
            Some((entry.offloading.as_ref()?.spec.clone(), entry.asks().is_some()))
        };
        let before: Vec<_> = names.iter().map(ask).collect();
        let is_list = matches!(change, Change::Reset(_));
        self.namespaces.change(change);
        let changed = names.iter().zip(before).filter(|(name, before)| ask(name) != *before);
        let mut changed: BTreeSet<_> = changed.map(|(name, _)| name.clone()).collect();
        if is_list {
            changed.extend(self.namespaces.keys().into_iter().filter(|name| !names.contains(name)));
        }
        for (host, entry) in self.all_clusters() {
            self.touch(&host, &changed);
            // Its OffloadPeer names those of which none is left.
            if changed.iter().any(|name| entry.twin_of(name).is_some()) {
                self.clusters.enqueue([(host.clone(), PEER)].into());
            }
            // The Node of one that is not used any more waits for the last that asked for something there.
            if !changed.is_empty() && matches!(entry.outgoing(), Asked::No) {
                self.clusters.enqueue([(host, NODE)].into());
            }
        }
    }

    /// Something else is known of the twins of these Namespaces at a host.
    fn touch(&self, host: &str, namespaces: &BTreeSet<String>) {
        if !namespaces.is_empty() {
            self.touched.with(|touched| {
                touched.entry(host.to_owned()).or_default().extend(namespaces.iter().cloned());
            });
            self.clusters.enqueue([(host.to_owned(), TWINS)].into());
        }
    }

    /// When one of our maps, or its host, said something else last.
    pub(crate) fn maps_moved(&self) -> Option<Instant> {
        self.moved.with(|moved| *moved)
    }

    /// Our map for a cluster says something else, or its host does.
    pub(crate) fn own_map_changed(&self, host: &str, before: &ClusterEntry, after: &ClusterEntry) {
        self.moved.with(|moved| *moved = Some(Instant::now()));
        let touched = differing(before, after);
        let is_asking = |name: &String| self.namespaces.get(name).is_some_and(|it| it.offloading.is_some());
        if !touched.iter().all(is_asking) {
            self.clusters.enqueue([(host.to_owned(), PEER)].into());
        }
        let known: BTreeSet<_> =
            touched.into_iter().filter(|name| self.namespaces.get(name).is_some()).collect();
        self.touch(host, &known);
        if before.own_map.is_some() != after.own_map.is_some() {
            return self.enqueue_offloaded(NAMESPACE.and(STATUS));
        }
        self.namespaces.enqueue(known.into_iter().map(|name| (name, NAMESPACE.and(STATUS))).collect());
    }

    /// Namespaces of whose twins at this host something else was said since this was asked last.
    pub(crate) fn touched(&self, host: &str) -> BTreeSet<String> {
        self.touched.with(|touched| touched.remove(host)).unwrap_or_default()
    }
}

/// Namespaces about which a map, or its host, says something else.
fn differing(before: &ClusterEntry, after: &ClusterEntry) -> BTreeSet<String> {
    fn wants<'a>(entry: &'a ClusterEntry, name: &str) -> (Option<&'a String>, bool) {
        let of =
            |spec: &'a NamespaceMapSpec| (spec.desired_mapping.get(name), spec.withdrawn.contains_key(name));
        entry.wanted().map(of).unwrap_or_default()
    }
    fn says<'a>(entry: &'a ClusterEntry, name: &str) -> Option<&'a MappedNamespace> {
        entry.said()?.current_mapping.get(name)
    }
    let wanted = [before, after].into_iter().filter_map(ClusterEntry::wanted);
    let said = [before, after].into_iter().filter_map(ClusterEntry::said);
    let names = wanted
        .flat_map(|spec| spec.desired_mapping.keys().chain(spec.withdrawn.keys()))
        .chain(said.flat_map(|status| status.current_mapping.keys()));
    let differs =
        |name: &&String| wants(before, name) != wants(after, name) || says(before, name) != says(after, name);
    names.filter(differs).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{identity::Identity, offload::index::EXCHANGE};
    use kit::index::Part;

    fn entry(desired: &Value, said: &Value) -> ClusterEntry {
        let spec = json!({"origin": "west", "destination": "east", "desiredMapping": desired});
        let map =
            json!({"metadata": {"name": "1.west.east"}, "spec": spec, "status": {"currentMapping": said}});
        ClusterEntry { own_map: serde_json::from_value(map).unwrap(), ..ClusterEntry::default() }
    }

    #[test]
    fn only_namespaces_of_which_a_map_says_something_else_are_asked_again() {
        let accepted = json!({"remoteNamespace": "shop-west", "phase": "Accepted"});
        let before = entry(&json!({"shop": "shop-west", "web": "web-west"}), &json!({"shop": accepted}));
        assert_eq!(differing(&before, &before), BTreeSet::new());
        let said = entry(&json!({"shop": "shop-west", "web": "web-west"}), &json!({}));
        assert_eq!(differing(&before, &said), ["shop".to_owned()].into());
        let wanted = entry(&json!({"shop": "shop-west", "db": "db-west"}), &json!({"shop": accepted}));
        assert_eq!(differing(&before, &wanted), ["db".to_owned(), "web".to_owned()].into());
        let mut withdrawn = before.clone();
        let map = withdrawn.own_map.as_mut().unwrap();
        map.spec.0.as_mut().unwrap().as_mut().unwrap().withdrawn = [("web".to_owned(), 1)].into();
        assert_eq!(differing(&before, &withdrawn), ["web".to_owned()].into());
        let vanished = differing(&before, &ClusterEntry::default());
        assert_eq!(vanished, ["shop".to_owned(), "web".to_owned()].into());
    }

    #[test]
    fn what_a_host_says_of_a_twin_concerns_its_pods_alone() {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let known = Knowledge::new(us, "freeport".into(), None);
        for name in ["shop", "web"] {
            let namespace = json!({"metadata": {"name": name}});
            known.change_namespaces(Change::Apply(serde_json::from_value(namespace).unwrap()));
        }
        let desired = json!({"shop": "shop-west", "web": "web-west"});
        let map = |said: &Value| entry(&desired, said).own_map.unwrap();
        known.change_own_maps(Change::Apply(map(&json!({}))));
        assert_eq!(known.touched("east"), ["shop".to_owned(), "web".to_owned()].into());
        let accepted = json!({"shop": {"remoteNamespace": "shop-west", "phase": "Accepted"}});
        known.change_own_maps(Change::Apply(map(&accepted)));
        assert_eq!(known.touched("east"), ["shop".to_owned()].into());
        assert_eq!(known.touched("east"), BTreeSet::new(), "once");
        known.change_own_maps(Change::Apply(map(&json!("garbled"))));
        assert_eq!(known.touched("east"), ["shop".to_owned()].into());

        let mut cluster = ClusterEntry::default();
        let mut garbled = map(&json!({}));
        garbled.status = serde_json::from_value(json!(7)).unwrap();
        let all = [map(&json!({})), map(&accepted), garbled, map(&json!({}))];
        let all = all.map(|map| map.put(&mut cluster).has(EXCHANGE));
        assert_eq!(all, [true, false, true, true], "it came, says something else, cannot be read, can again");
    }
}
