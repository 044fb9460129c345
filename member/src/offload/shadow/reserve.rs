//! What the Pods of a home may take here: `resources` of its OffloadPeer. Several are made at the same time, so what is reserved for
//! those that are being made counts as taken.

use std::{collections::BTreeMap, sync::Arc};

use api::offload::{
    consent::{Refusal, has_room},
    label, names,
    peer::Incoming,
    requests::Requests,
    shadow_pod::ShadowPodSpec,
};
use kit::index::Shared;
use kube::ResourceExt;

use super::ShadowPods;
use crate::offload::{index::ShadowEntry, view::HostedPod};

/// What Pods request that are being made, with their homes, by Namespace and name. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Reserved(Shared<BTreeMap<String, (String, Requests)>>);

/// What is reserved for a Pod, until this is dropped: then the Pod is known, or was not made.
pub(super) struct Reservation {
    reserved: Reserved,
    place: String,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.reserved.0.with(|all| all.remove(&self.place));
    }
}

impl ShadowPods {
    /// Reserves what the Pod requests that this record asks for.
    pub(super) fn reserve(&self, spec: &ShadowPodSpec, pod: &HostedPod) -> Result<Reservation, Refusal> {
        let home = &spec.origin;
        let entry = self.knowledge.clusters.get(home).unwrap_or_default();
        let incoming = entry.consent(home)?;
        let shadows = &self.knowledge.shadows;
        let map = names::namespace_map(home, &self.knowledge.us.cluster);
        // Elsewhere anybody may have made a Pod that says it is one.
        let is_in_twin = |place: &String| {
            let namespace = place.split_once('/').and_then(|(name, _)| self.knowledge.namespace(name));
            namespace.is_some_and(|namespace| namespace.twin_of(&map).is_some())
        };
        let there = || {
            let with_entry = |place: String| shadows.get(&place).map(|entry| (place, entry));
            shadows.keys().into_iter().filter(is_in_twin).filter_map(with_entry)
        };
        let place = format!("{}/{}", spec.namespace, spec.pod);
        self.reserved.reserve((home, place.as_str()), incoming, &pod.requests, there)
    }
}

impl Reserved {
    /// `there` are the Pods that are known, of whatever home, by Namespace and name.
    fn reserve<T: Iterator<Item = (String, Arc<ShadowEntry>)>>(
        &self,
        (home, place): (&str, &str),
        incoming: &Incoming,
        wanted: &Requests,
        there: impl FnOnce() -> T,
    ) -> Result<Reservation, Refusal> {
        self.0.with(|all| {
            let mut taken = Requests::default();
            let making = all.values().filter(|(of, _)| of == home);
            making.for_each(|(_, requests)| taken.add(requests));
            for (_, entry) in there().filter(|(place, _)| !all.contains_key(place)) {
                taken.add(&entry.pod.as_ref().map(|pod| taken_by(pod, home)).unwrap_or_default());
            }
            has_room(incoming, home, &taken, wanted)?;
            all.insert(place.to_owned(), (home.to_owned(), wanted.clone()));
            Ok(Reservation { reserved: self.clone(), place: place.to_owned() })
        })
    }
}

/// What a Pod takes of what `home` may: one that has finished takes nothing.
fn taken_by(pod: &HostedPod, home: &str) -> Requests {
    let is_of_home = pod.labels().get(label::ORIGIN).is_some_and(|of| of == home);
    if is_of_home && !pod.status.is_final() { pod.requests.clone() } else { Requests::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn there(home: &str, name: &str, cpu: &str, phase: &str) -> (String, Arc<ShadowEntry>) {
        let pod: Value = json!({
            "metadata": {"name": name, "namespace": "twin", "labels": {"offloading.liqo.io/origin": home}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": phase},
        });
        let pod = serde_json::from_value(pod).unwrap();
        (format!("twin/{name}"), Arc::new(ShadowEntry { pod: Some(pod), ..ShadowEntry::default() }))
    }

    #[test]
    fn what_is_there_and_what_is_being_made_take_room_and_what_has_finished_does_not() {
        let incoming: Incoming = serde_json::from_value(json!({"resources": {"cpu": "1"}})).unwrap();
        let (reserved, half) = (
            Reserved::default(),
            Requests::of_pod(&json!({"containers": [
                {"resources": {"limits": {"cpu": "500m"}}},
            ]})),
        );
        let room = |home: &str, name: &str, there: &[(String, Arc<ShadowEntry>)]| {
            let there = there.to_vec();
            reserved.reserve((home, format!("twin/{name}").as_str()), &incoming, &half, || there.into_iter())
        };
        let others = [there("north", "a", "4", "Running"), there("west", "b", "4", "Succeeded")];
        let first = room("west", "c", &others).unwrap();
        let told = [there("west", "c", "500m", "Pending")];
        let second = room("west", "d", &told).unwrap();
        assert_eq!(room("west", "e", &[]).err().unwrap().reason(), "ResourcesExceeded");
        assert!(room("north", "e", &others).is_err(), "it has its own, and that is full");
        drop(first);
        assert!(room("west", "e", &told).is_err(), "it is there now");
        drop(second);
        let third = room("west", "e", &told);
        assert!(third.is_ok(), "the other one was not made");
    }
}
