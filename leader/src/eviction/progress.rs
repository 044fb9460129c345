//! How far the eviction of one member is, and whether the member shows that it is there: pure.

use std::collections::{BTreeMap, BTreeSet};

use api::{resource_export::ResourceExport, view::Named};
use kube::ResourceExt;

/// What became of the records of one member.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Nothing is left to do.
    pub(super) is_done: bool,
    /// How often it was looked.
    pub(super) looks: u32,
    /// uids of those that were there at first.
    first: BTreeSet<String>,
    /// uids of those that were withdrawn, and the generation that made.
    withdrawn: BTreeMap<String, Option<i64>>,
}

impl Progress {
    /// Takes in what there is now. Whether the member has written any of it since: who only waits for its end makes no records, and changes
    /// none back.
    pub(super) fn shows_life(&mut self, records: &[Named<ResourceExport>]) -> bool {
        self.looks = self.looks.saturating_add(1);
        if self.looks == 1 {
            self.first = records.iter().filter_map(ResourceExt::uid).collect();
        }
        // Of one that is being deleted the generation changes with that, and who does it is not the member.
        records.iter().filter(|record| record.metadata.deletion_timestamp.is_none()).any(|record| {
            let uid = record.uid().unwrap_or_default();
            let is_changed = |made: &Option<i64>| *made != record.metadata.generation;
            !self.first.contains(&uid) || self.withdrawn.get(&uid).is_some_and(is_changed)
        })
    }

    /// Takes in a record as it was withdrawn.
    pub(super) fn withdrawn(&mut self, record: &Named<ResourceExport>) {
        self.withdrawn.insert(record.uid().unwrap_or_default(), record.metadata.generation);
    }

    /// Whether it waits only for the imports to name its cluster no more.
    pub(super) fn has_withdrawn(&self, record: &Named<ResourceExport>) -> bool {
        record.uid().is_some_and(|uid| self.withdrawn.contains_key(&uid))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn record(uid: &str, generation: i64) -> Named<ResourceExport> {
        serde_json::from_value(json!({"metadata": {"name": uid, "uid": uid, "generation": generation}}))
            .unwrap()
    }

    #[test]
    fn a_member_that_writes_its_records_again_is_there() {
        let begun = || {
            let mut so_far = Progress::default();
            assert!(!so_far.shows_life(&[record("a", 1), record("b", 7)]), "as it left them");
            so_far.withdrawn(&record("a", 2));
            assert!(so_far.has_withdrawn(&record("a", 2)) && !so_far.has_withdrawn(&record("b", 7)));
            so_far
        };
        assert!(!begun().shows_life(&[record("a", 2), record("b", 8)]), "this is our own doing");
        assert!(!begun().shows_life(&[]));
        assert!(begun().shows_life(&[record("a", 3)]), "it says that it was not withdrawn");
        let mut going = record("a", 3);
        going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(!begun().shows_life(&[going]), "it goes");
        assert!(begun().shows_life(&[record("c", 1)]), "it puts one back");
    }
}
