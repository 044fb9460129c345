//! How many records of a home are kept with what they are made of. All members may write records for us, and whoever
//! reads the Common Area holds them: of each home only so many. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::offload::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{index::Part, objects::Change};
use kube::ResourceExt;

use crate::offload::view::PeerPod;

/// Most records of one home whose content is kept: what four or five Nodes run, and 32 MB at the most.
pub(crate) const RECORDS_MAX: usize = 500;

/// When a record was made, and its name: the older one comes first.
type Age = (Option<Time>, String);

/// Which records have room.
#[derive(Default)]
pub(crate) struct Room {
    /// By ID.
    homes: BTreeMap<String, Home>,
}

#[derive(Default)]
struct Home {
    /// Records whose content is kept, by name. It stays theirs until they go.
    kept: BTreeSet<String>,
    /// The others, with the keys of their entries. None while there is room.
    over: BTreeMap<Age, String>,
}

impl Home {
    /// Whether the record has room.
    fn admits(&mut self, record: &PeerPod, place: String) -> bool {
        let name = record.name_any();
        if self.kept.contains(&name) {
            return true;
        }
        if self.kept.len() < RECORDS_MAX {
            self.over.remove(&age(record));
            self.kept.insert(name);
            return true;
        }
        self.over.insert(age(record), place);
        false
    }

    /// The record goes; which one has its room now, with the key of its entry.
    fn remove(&mut self, record: &PeerPod) -> Option<(String, String)> {
        if !self.kept.remove(&record.name_any()) {
            self.over.remove(&age(record));
            return None;
        }
        let ((_, name), place) = self.over.pop_first()?;
        self.kept.insert(name.clone());
        Some((place, name))
    }
}

impl Room {
    /// The change without the content of records that have no room, and which record has room now, with the key of
    /// its entry first.
    pub(crate) fn admit(&mut self, change: Change<PeerPod>) -> (Change<PeerPod>, Option<(String, String)>) {
        match change {
            Change::Apply(record) if record.key().is_none() => {
                let next = self.remove(&record);
                (Change::Apply(record), next)
            }
            Change::Apply(record) => (Change::Apply(self.fitted(record)), None),
            Change::Remove(record) => {
                let next = self.remove(&record);
                (Change::Remove(record), next)
            }
            Change::Reset(mut records) => {
                self.forget_all_but(&records);
                let is_kept = |record: &PeerPod| {
                    self.homes.get(&home(record)).is_some_and(|home| home.kept.contains(&record.name_any()))
                };
                records.sort_by_cached_key(|record| (!is_kept(record), age(record)));
                (Change::Reset(records.into_iter().map(|record| self.fitted(record)).collect()), None)
            }
        }
    }

    fn fitted(&mut self, record: PeerPod) -> PeerPod {
        let Some(place) = record.key() else { return record };
        let admits = self.homes.entry(home(&record)).or_default().admits(&record, place);
        if admits { record } else { record.without_content() }
    }

    fn remove(&mut self, record: &PeerPod) -> Option<(String, String)> {
        self.homes.get_mut(&home(record))?.remove(record)
    }

    /// Of those that have room the ones that are still there keep it.
    fn forget_all_but(&mut self, records: &[PeerPod]) {
        let live = records.iter().filter(|record| record.key().is_some());
        let live: BTreeSet<String> = live.map(ResourceExt::name_any).collect();
        self.homes.values_mut().for_each(|home| {
            home.over.clear();
            home.kept.retain(|name| live.contains(name));
        });
        self.homes.retain(|_, home| !home.kept.is_empty());
    }
}

/// The home of a record, by its name: also of one that says nothing any more.
fn home(record: &PeerPod) -> String {
    names::of_shadow_pod(&record.name_any()).map(|(home, ..)| home.to_owned()).unwrap_or_default()
}

fn age(record: &PeerPod) -> Age {
    (record.creation_timestamp(), record.name_any())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(origin: &str, number: usize) -> PeerPod {
        let name = format!("1.{origin}.east.u{number}");
        let made = format!("2026-11-01T12:{:02}:{:02}Z", number / 60, number % 60);
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "area", "creationTimestamp": made},
            "spec": {
                "origin": origin, "destination": "east", "namespace": "shop-west", "pod": format!("web-{number}"),
                "uid": format!("u{number}"), "sealed": "content",
            },
        }))
        .unwrap()
    }

    fn content(record: &PeerPod) -> String {
        record.asked().unwrap().sealed.clone()
    }

    /// The content that is kept when this one comes.
    fn applied(room: &mut Room, record: PeerPod) -> String {
        match room.admit(Change::Apply(record)) {
            (Change::Apply(record), None) => content(&record),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn of_each_home_so_many_records_are_kept_and_the_others_by_name_alone() {
        let mut room = Room::default();
        for number in 0..RECORDS_MAX {
            assert_eq!(applied(&mut room, record("west", number)), "content");
        }
        let over = record("west", RECORDS_MAX);
        assert_eq!(applied(&mut room, over.clone()), "");
        let (Change::Apply(kept), _) = room.admit(Change::Apply(over.clone())) else { panic!() };
        assert!(kept.is_over() && kept.asked().unwrap().pod == "web-500");
        assert_eq!(applied(&mut room, record("north", 0)), "content", "another home has its own room");
        assert_eq!(applied(&mut room, record("west", 3)), "content", "it has its room already");

        let next = room.admit(Change::Remove(record("west", RECORDS_MAX + 1))).1;
        assert_eq!(next, None, "it had none");
        let next = room.admit(Change::Remove(record("west", 7))).1;
        assert_eq!(next, Some(("shop-west/web-500".to_owned(), over.name_any())));
        assert_eq!(applied(&mut room, over), "content");
        assert_eq!(applied(&mut room, record("west", 7)), "");
    }

    #[test]
    fn a_list_takes_nobodys_room_and_gives_what_is_free_to_the_oldest() {
        let mut room = Room::default();
        assert_eq!(applied(&mut room, record("west", RECORDS_MAX + 5)), "content");
        let all = (0..RECORDS_MAX + 6).rev().map(|number| record("west", number)).collect();
        let (Change::Reset(all), None) = room.admit(Change::Reset(all)) else { panic!() };
        let over = all.iter().filter(|record| record.is_over());
        let over: Vec<_> = over.map(|record| record.asked().unwrap().uid.clone()).collect();
        assert_eq!(over, ["u499", "u500", "u501", "u502", "u503", "u504"]);
        let gone = room.admit(Change::Reset(vec![record("west", 504)])).0;
        let Change::Reset(one) = gone else { panic!() };
        assert_eq!(content(&one[0]), "content");
    }
}
