//! A daemon deletes an object, or changes more than its status, only if a daemon of the same kind in the same cluster made it, or if it is
//! labelled as made by Freeport: somebody may have copied it. The leader also deletes and judges records of members. Objects of Services, ConfigMaps and
//! Pods are checked.

use std::collections::{BTreeMap, HashMap};

use api::label;
use serde_json::Value;

use super::{Invariant, Write, write::is_terminating};

/// Kinds whose objects users and daemons make side by side. Records of API binding and offloading change hands by their contracts.
const KINDS: [&str; 8] = [
    "services",
    "endpointslices",
    "serviceimports",
    "serviceexports",
    "resourceimports",
    "resourceexports",
    "configmaps",
    "pods",
];

/// See the module.
#[derive(Default)]
pub(super) struct Own {
    /// Program and cluster of the daemon that made an object, by its uid.
    makers: HashMap<String, (&'static str, String)>,
}

impl Own {
    fn is_maker(&self, write: &Write<'_>, uid: &str) -> bool {
        self.makers.get(uid).is_some_and(|(program, cluster)| write.is_by(program, cluster))
    }
}

impl Invariant for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn check(&mut self, write: &Write<'_>) -> Result<(), String> {
        let Some(by) = write.daemon() else { return Ok(()) };
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let Some(before) = write.before else {
            self.makers.insert(uid(write.object()), (by.program, by.cluster.clone()));
            return Ok(());
        };
        let is_record = write.kind == "resourceexports" && by.program == label::LEADER;
        let changes = write.after.is_none_or(|after| content(before) != content(after));
        if is_record
            || !changes
            || !KINDS.contains(&write.kind)
            // Whoever removes the last finalizer only ends what somebody has deleted.
            || is_terminating(before)
            || is_labelled(before)
            || self.is_maker(write, &uid(before))
        {
            return Ok(());
        }
        Err("the daemon did not make it".to_owned())
    }
}

/// What an object says, without its metadata and its status.
fn content(object: &Value) -> BTreeMap<&str, &Value> {
    let fields = object.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value));
    fields.filter(|(key, _)| !["metadata", "status"].contains(key)).collect()
}

fn is_labelled(object: &Value) -> bool {
    let labels = object["metadata"]["labels"].as_object();
    [label::MANAGED_BY, label::SLICE_MANAGED_BY]
        .iter()
        .any(|key| labels.is_some_and(|labels| labels.get(*key).is_some_and(|by| by == label::FREEPORT)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::invariant::{
        Author,
        testkit::{by, replica, write},
    };

    #[test]
    fn what_somebody_else_made_stays_as_it_is() {
        let mut own = Own::default();
        let object = |uid: &str, port: u16| json!({"metadata": {"uid": uid}, "spec": {"port": port}});
        let (ours, theirs) = (object("1", 80), object("2", 80));
        let (east, west) = (replica("east", "east-0"), by("freeport-member", "west"));
        let of = |before: Option<&Value>, after: Option<&Value>, author: &Author, own: &mut Own| {
            own.check(&Write { before, after, ..write("east", "services", author) }).is_ok()
        };
        assert!(of(None, Some(&ours), &east, &mut own) && of(None, Some(&theirs), &Author::Other, &mut own));
        assert!(of(Some(&ours), Some(&object("1", 81)), &by("freeport-member", "east"), &mut own));
        assert!(!of(Some(&ours), None, &west, &mut own) && of(Some(&ours), None, &Author::Other, &mut own));
        assert!(
            !of(Some(&theirs), Some(&object("2", 81)), &east, &mut own)
                && !of(Some(&theirs), None, &east, &mut own)
        );
        let status = json!({"metadata": {"uid": "2"}, "spec": {"port": 80}, "status": {}});
        assert!(of(Some(&theirs), Some(&status), &east, &mut own));
        let copy = json!({"metadata": {"uid": "3", "labels": {label::MANAGED_BY: label::FREEPORT}}});
        assert!(of(Some(&copy), None, &east, &mut own));
    }

    #[test]
    fn a_leader_writes_records_of_members() {
        let (record, leader) = (json!({"metadata": {"uid": "1"}}), by(label::LEADER, "leader"));
        let deletion = Write { before: Some(&record), ..write("leader", "resourceexports", &leader) };
        assert!(Own::default().check(&deletion).is_ok());
        let member = by(label::MEMBER, "east");
        assert!(Own::default().check(&Write { author: &member, ..deletion }).is_err());
    }
}
