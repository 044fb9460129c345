//! What is known of each Pod that is bound to one virtual node, by its uid: the Pod and its record.

use api::offload::{names, pod_status::PodState};
use kit::index::{Entry, Part, Readers};
use kube::ResourceExt;

use super::{
    status::has_started,
    view::{BoundPod, OwnShadowPod},
};
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

impl PodEntry {
    /// Whether its host runs it, or may: there is a record, or it says so itself.
    pub(crate) fn is_there(&self) -> bool {
        let state = self.pod.as_ref().map(|pod| PodState::of(pod.said()));
        self.record.is_some() || state.is_some_and(|state| has_started(&state) && !state.is_final())
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_a_host_runs_has_a_record_or_says_that_it_runs() {
        let pod = |status: Value| PodEntry {
            pod: serde_json::from_value(json!({"metadata": {"name": "web"}, "status": status})).unwrap(),
            ..PodEntry::default()
        };
        assert!(pod(json!({"phase": "Running"})).is_there(), "its record vanished");
        assert!(!pod(json!({"phase": "Pending"})).is_there(), "one of a DaemonSet, which no host ever gets");
        assert!(!pod(json!({"phase": "Failed"})).is_there());
        let record = serde_json::from_value(json!({"metadata": {"name": "1.west.east.u"}})).unwrap();
        let told = PodEntry { record: Some(record), ..pod(json!({"phase": "Pending"})) };
        assert!(told.is_there());
    }
}
