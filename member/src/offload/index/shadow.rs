//! What is known of each Pod that another cluster wants to run here, or that runs here for one: by Namespace and
//! name, since one Pod may be there under a name, whoever asks for it.

use std::collections::{BTreeMap, BTreeSet};

use api::offload::{label, shadow_pod::ShadowPodSpec};
use kit::{
    index::{Entry, Part, Readers},
    queue::Party,
};
use kube::ResourceExt;

use crate::offload::view::{HostedPod, PeerPod};

/// The controller of these Pods, by the number of its queue.
pub(crate) const SHADOW: Readers = Readers::one(0);

/// Namespace and name of a Pod, as the key of its entry.
fn place(namespace: &str, pod: &str) -> String {
    format!("{namespace}/{pod}")
}

/// Everything known of the Pod of a Namespace and name.
#[derive(Clone, Default)]
pub(crate) struct ShadowEntry {
    /// What homes ask for, by the names of the records. A Pod that was made anew at home has a record beside that of the old one.
    pub(crate) records: BTreeMap<String, PeerPod>,
    /// The Pod that is there.
    pub(crate) pod: Option<HostedPod>,
}

impl ShadowEntry {
    /// What is asked for, by record.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (&PeerPod, &ShadowPodSpec)> {
        self.records.values().filter_map(|record| Some((record, record.asked()?)))
    }

    /// There is room for what this record is made of.
    pub(crate) fn make_due(&mut self, record: &str) {
        if let Some(record) = self.records.get_mut(record) {
            record.make_due();
        }
    }
}

impl Entry for ShadowEntry {
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.pod.is_none()
    }

    /// The homes that ask for it; without them the home that it was made for.
    fn party(&self) -> Party {
        let homes: BTreeSet<&str> = self.asked().map(|(_, spec)| spec.origin.as_str()).collect();
        if !homes.is_empty() {
            return Party::of(homes);
        }
        Party::of(self.pod.as_ref().and_then(|pod| pod.labels().get(label::ORIGIN)).map(String::as_str))
    }
}

/// One that does not decode says nothing: it counts as vanished.
impl Part<String, ShadowEntry> for PeerPod {
    fn key(&self) -> Option<String> {
        self.asked().map(|spec| place(&spec.namespace, &spec.pod))
    }

    fn put(self, entry: &mut ShadowEntry) -> Readers {
        let mut known = entry.records.remove(&self.name_any());
        let name = self.name_any();
        let readers = SHADOW.when(super::replace(&mut known, self));
        entry.records.extend(known.map(|record| (name, record)));
        readers
    }

    fn take(entry: &mut ShadowEntry, name: &str) -> Readers {
        entry.records.remove(name);
        SHADOW
    }
}

impl Part<String, ShadowEntry> for HostedPod {
    fn key(&self) -> Option<String> {
        Some(place(&self.namespace()?, &self.name_any()))
    }

    fn put(self, entry: &mut ShadowEntry) -> Readers {
        SHADOW.when(super::replace(&mut entry.pod, self))
    }

    fn take(entry: &mut ShadowEntry, _: &str) -> Readers {
        entry.pod = None;
        SHADOW
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(origin: &str, uid: &str) -> PeerPod {
        let spec = ShadowPodSpec {
            origin: origin.into(),
            destination: "east".into(),
            namespace: "shop-west".into(),
            pod: "web".into(),
            uid: uid.into(),
            ..ShadowPodSpec::default()
        };
        serde_json::from_value(json!({"metadata": {"name": spec.name()}, "spec": spec})).unwrap()
    }

    fn entry(records: impl IntoIterator<Item = PeerPod>) -> ShadowEntry {
        let mut entry = ShadowEntry::default();
        for record in records {
            let _ = record.put(&mut entry);
        }
        entry
    }

    #[test]
    fn each_home_has_its_turn() {
        let west = entry([record("west", "u1")]).party();
        assert_eq!(entry([record("west", "u1"), record("west", "u2")]).party(), west);
        assert_ne!(entry([record("north", "u1")]).party(), west);
        assert_ne!(entry([record("north", "u1"), record("west", "u1")]).party(), west);
        let labels = json!({"offloading.liqo.io/origin": "west"});
        let pod = json!({"metadata": {"name": "web", "namespace": "shop-west", "labels": labels}});
        let there = ShadowEntry { pod: serde_json::from_value(pod).unwrap(), ..ShadowEntry::default() };
        assert_eq!(there.party(), west);
    }
}
