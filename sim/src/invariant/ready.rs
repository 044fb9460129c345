//! Conditions tell the truth: a member sets a condition to `True` only if what it states holds, or held within the last [`LATE`].
//!
//! | condition | states |
//! |---|---|
//! | `Valid` of a ServiceExport | its Service exists |
//! | `Ready` of a ServiceExport | an import in a Common Area names the cluster as an exporter |
//! | `Ready` of a ServiceImport | its derived Service exists in the cluster |

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{
    label,
    mcs::{READY, VALID},
    name,
};
use serde_json::Value;

use super::{Invariant, LATE, Write, exports::Place, write::is_terminating};

/// See the module.
#[derive(Default)]
pub(super) struct Ready {
    services: Held,
    exporters: Held,
}

/// Places at which something holds.
#[derive(Default)]
struct Held {
    now: BTreeSet<Place>,
    /// When it ended last.
    ended: BTreeMap<Place, Duration>,
}

impl Held {
    fn note(&mut self, place: Place, holds: bool, at: Duration) {
        if holds {
            self.now.insert(place);
        } else if self.now.remove(&place) {
            self.ended.insert(place, at);
        }
    }

    /// Reports whether it holds, or held within the last [`LATE`].
    fn held(&self, place: &Place, at: Duration) -> bool {
        self.now.contains(place) || self.ended.get(place).is_some_and(|ended| at - *ended < LATE)
    }
}

impl Ready {
    fn note_exporters(&mut self, write: &Write<'_>) {
        let Some(service) = name::of_service_import(write.name) else { return };
        let (before, after) = (exporters(write.before), exporters(write.after));
        for cluster in before.union(&after) {
            let place = ((*cluster).to_owned(), format!("{}/{}", service.namespace, service.name));
            self.exporters.note(place, after.contains(cluster), write.at);
        }
    }

    fn check_conditions(&self, write: &Write<'_>) -> Result<(), String> {
        if !write.is_by(label::MEMBER, write.cluster) {
            return Ok(());
        }
        let place = |name: &str| (write.cluster.to_owned(), format!("{}/{name}", write.namespace));
        let derived = || place(&name::imported_service(write.name));
        let is_export = write.kind == "serviceexports";
        let holds = |condition: &str| match condition {
            VALID => !is_export || self.services.held(&place(write.name), write.at),
            READY if is_export => self.exporters.held(&place(write.name), write.at),
            READY => self.services.held(&derived(), write.at),
            _ => true,
        };
        let (before, after) = (well(write.before), well(write.after));
        match after.difference(&before).find(|condition| !holds(condition)) {
            Some(condition) => Err(format!("{condition} becomes True and is not true")),
            None => Ok(()),
        }
    }
}

impl Invariant for Ready {
    fn name(&self) -> &'static str {
        "ready"
    }

    fn check(&mut self, write: &Write<'_>) -> Result<(), String> {
        let exists = write.after.is_some_and(|after| !is_terminating(after));
        match write.kind {
            "services" => {
                let place = (write.cluster.to_owned(), format!("{}/{}", write.namespace, write.name));
                self.services.note(place, exists, write.at);
            }
            "resourceimports" => self.note_exporters(write),
            "serviceexports" | "serviceimports" => return self.check_conditions(write),
            _ => {}
        }
        Ok(())
    }
}

/// Conditions that are `True`.
fn well(object: Option<&Value>) -> BTreeSet<&str> {
    let all = object.and_then(|object| object["status"]["conditions"].as_array());
    let well = all.into_iter().flatten().filter(|condition| condition["status"] == "True");
    well.filter_map(|condition| condition["type"].as_str()).collect()
}

fn exporters(import: Option<&Value>) -> BTreeSet<&str> {
    let all = import.and_then(|import| import["spec"]["exporters"].as_array());
    all.into_iter().flatten().filter_map(|exporter| exporter["clusterID"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::invariant::{
        Author,
        testkit::{by, write},
    };

    /// A write: second, cluster, kind, name, object before and after.
    type Step<'a> = (u64, &'a str, &'a str, &'a str, Option<&'a Value>, Option<&'a Value>);

    fn check(ready: &mut Ready, author: &Author, (at, cluster, kind, name, before, after): Step<'_>) -> bool {
        let at = Duration::from_secs(at);
        ready.check(&Write { at, name, before, after, ..write(cluster, kind, author) }).is_ok()
    }

    fn says(type_: &str) -> Value {
        json!({"status": {"conditions": [{"type": type_, "status": "True"}]}})
    }

    #[test]
    fn an_export_is_ready_only_if_an_import_names_its_cluster() {
        let (mut ready, leader, east) =
            (Ready::default(), by(label::LEADER, "leader"), by(label::MEMBER, "east"));
        let import = json!({"spec": {"exporters": [{"clusterID": "east"}]}});
        let (new, good) = (json!({}), says(READY));
        let becomes = |at| (at, "east", "serviceexports", "web", Some(&new), Some(&good));
        let name = "shop-web-service";
        assert!(!check(&mut ready, &east, becomes(1)));
        assert!(check(&mut ready, &Author::Other, becomes(1)), "users write what they want");
        assert!(check(&mut ready, &leader, (2, "leader", "resourceimports", name, None, Some(&import))));
        assert!(check(&mut ready, &east, becomes(3)));
        assert!(check(&mut ready, &leader, (4, "leader", "resourceimports", name, Some(&import), None)));
        assert!(check(&mut ready, &east, becomes(63)), "the member may be late");
        assert!(!check(&mut ready, &east, becomes(64)));
        let stays = (70, "east", "serviceexports", "web", Some(&good), Some(&good));
        assert!(check(&mut ready, &east, stays), "only what becomes True is checked");
    }

    #[test]
    fn an_export_is_valid_and_an_import_ready_only_if_the_service_exists() {
        let (mut ready, user, east) = (Ready::default(), Author::Other, by(label::MEMBER, "east"));
        let (new, valid, good) = (json!({}), says(VALID), says(READY));
        let export = (1, "east", "serviceexports", "web", Some(&new), Some(&valid));
        let import = (1, "east", "serviceimports", "web", Some(&new), Some(&good));
        assert!(!check(&mut ready, &east, export) && !check(&mut ready, &east, import));
        assert!(check(&mut ready, &user, (1, "east", "services", "web", None, Some(&new))));
        assert!(check(&mut ready, &east, export) && !check(&mut ready, &east, import));
        assert!(check(&mut ready, &east, (1, "east", "services", "antrea-mc-web", None, Some(&new))));
        assert!(check(&mut ready, &east, import));
    }
}
