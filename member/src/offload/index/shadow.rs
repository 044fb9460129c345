//! What is known of each Pod that another cluster wants to run here, or that runs here for one: by Namespace and name, since one Pod
//! may be there under a name, whoever asks for it.

use std::collections::BTreeMap;

use api::offload::shadow_pod::ShadowPodSpec;
use kit::index::{Entry, Part, Readers};
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
}

impl Entry for ShadowEntry {
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.pod.is_none()
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
