//! What is known of each Pod that is bound to one virtual node, by its uid: the Pod and its record.

use api::offload::names;
use kit::index::{Entry, Part, Readers};
use kube::ResourceExt;

use super::view::{BoundPod, OwnShadowPod};
use crate::offload::index::replace;

/// The controller of these Pods.
pub(crate) const POD: Readers = Readers::one(0);

/// Everything known of a Pod.
#[derive(Clone, Default)]
pub(crate) struct PodEntry {
    pub(crate) pod: Option<BoundPod>,
    pub(crate) record: Option<OwnShadowPod>,
    /// There was a record, so the host may have made the Pod, whatever became of the record.
    pub(crate) had_record: bool,
}

impl Entry for PodEntry {
    fn is_empty(&self) -> bool {
        self.pod.is_none() && self.record.is_none()
    }
}

impl Part<String, PodEntry> for BoundPod {
    fn key(&self) -> Option<String> {
        self.uid()
    }

    fn put(self, entry: &mut PodEntry) -> Readers {
        POD.when(replace(&mut entry.pod, self))
    }

    fn take(entry: &mut PodEntry, _: &str) -> Readers {
        entry.pod = None;
        POD
    }
}

impl Part<String, PodEntry> for OwnShadowPod {
    fn key(&self) -> Option<String> {
        names::of_shadow_pod(&self.name_any()).map(|(_, _, uid)| uid.to_owned())
    }

    fn put(self, entry: &mut PodEntry) -> Readers {
        entry.had_record = true;
        POD.when(replace(&mut entry.record, self))
    }

    fn take(entry: &mut PodEntry, _: &str) -> Readers {
        entry.record = None;
        POD
    }
}
