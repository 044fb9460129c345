//! Which records of a home are known, and which with what they are made of. All members may write records for us, and whoever
//! reads the Common Area holds them: of each home only so many, and of one that is not accepted only that they are there. Pure.

pub(crate) mod gather;

use std::collections::{BTreeMap, BTreeSet};

use api::offload::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    index::{Part, Shared},
    objects::Change,
};
use kube::ResourceExt;

use crate::offload::view::PeerPod;

/// Most records of one home whose content is kept: what four or five Nodes run, and 32 MB at the most. Pods that have finished do not count.
pub(crate) const RECORDS_MAX: usize = 500;

/// Of how many records of one home it is known that they are there: of as many as it may have it is said that they are too much.
const KNOWN_MAX: usize = 2 * RECORDS_MAX;

/// Of how many Pods of one home that have finished the records are known: they take no room of those that run.
const FINISHED_MAX: usize = 10 * RECORDS_MAX;

/// When a record was made, and its name: the older one comes first.
type Age = (Option<Time>, String);

/// A record that has room now: the key of its entry, and its name. It has to be read.
pub(crate) type Due = (String, String);

/// Which records have room. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Room(Shared<Homes>);

#[derive(Default)]
struct Homes {
    /// By ID.
    homes: BTreeMap<String, Home>,
    /// IDs of those whose Pods may come.
    accepted: BTreeSet<String>,
}

#[derive(Default)]
struct Home {
    /// Records whose content is kept, by name. It stays theirs until they go.
    kept: BTreeSet<String>,
    /// The others that are known, with the keys of their entries. None while there is room.
    over: BTreeMap<Age, String>,
    /// Those of Pods that have finished, by name: nobody makes such a Pod again, so nothing of its content is needed.
    finished: BTreeSet<String>,
    /// How many there are beside these, of which nothing is known; one that is written again counts again.
    left_out: usize,
}

/// What becomes of a change.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// The change without what there is no room for. None if it is all about that.
    pub(crate) change: Option<Change<PeerPod>>,
    /// Records that have room now.
    pub(crate) due: Vec<Due>,
    /// There is room for records of which nothing is known: all have to be listed again.
    pub(crate) wants_list: bool,
}

/// How a record is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// With its content.
    Kept,
    /// By its name.
    Over,
    /// Not at all.
    LeftOut,
}

impl Home {
    fn place(&mut self, record: &PeerPod, entry: String, is_accepted: bool) -> Place {
        let (name, age) = (record.name_any(), age(record));
        if record.has_finished() && (self.finished.contains(&name) || self.finished.len() < FINISHED_MAX) {
            self.kept.remove(&name);
            self.over.remove(&age);
            self.finished.insert(name);
            return Place::Over;
        }
        self.finished.remove(&name);
        if self.kept.contains(&name) {
            return Place::Kept;
        }
        if is_accepted && self.kept.len() < RECORDS_MAX {
            self.over.remove(&age);
            self.kept.insert(name);
            return Place::Kept;
        }
        if self.over.contains_key(&age) || self.known() < KNOWN_MAX {
            self.over.insert(age, entry);
            return Place::Over;
        }
        self.left_out += 1;
        Place::LeftOut
    }

    fn remove(&mut self, record: &PeerPod) {
        let name = record.name_any();
        let was_kept = self.kept.remove(&name) || self.finished.remove(&name);
        if !was_kept && self.over.remove(&age(record)).is_none() {
            self.left_out = self.left_out.saturating_sub(1);
        }
    }

    fn known(&self) -> usize {
        self.kept.len() + self.over.len()
    }

    /// Gives the room that is free to the oldest.
    fn promote(&mut self) -> Vec<Due> {
        let mut due = Vec::new();
        while self.kept.len() < RECORDS_MAX
            && let Some(((_, name), entry)) = self.over.pop_first()
        {
            self.kept.insert(name.clone());
            due.push((entry, name));
        }
        due
    }

    /// Whether a list would tell of records that are left out. Not before half of what is known has gone: a list is long.
    fn wants_list(&mut self) -> bool {
        let wants = self.left_out > 0 && self.known() < RECORDS_MAX && self.finished.len() < FINISHED_MAX;
        if wants {
            self.left_out = 0;
        }
        wants
    }

    fn is_empty(&self) -> bool {
        self.known() == 0 && self.finished.is_empty() && self.left_out == 0
    }
}

impl Room {
    /// The Pods of these homes may come, and of no others: which of their records have room by that. What is kept of another one stays.
    pub(crate) fn accept(&self, accepted: BTreeSet<String>) -> Vec<Due> {
        self.0.with(|all| {
            all.accepted = accepted;
            all.promoted().due
        })
    }

    /// What becomes of a change. A list has to be [`gathered`](gather::Gathered) by this.
    pub(crate) fn admit(&self, change: Change<PeerPod>) -> Admitted {
        self.0.with(|all| match change {
            Change::Apply(record) => match record.key() {
                Some(entry) => all.fitted(record, entry),
                // It says nothing any more.
                None => all.without(&record).with(Change::Apply(record)),
            },
            Change::Remove(record) => all.without(&record).with(Change::Remove(record)),
            Change::Reset(records) => all.promoted().with(Change::Reset(records)),
        })
    }

    /// How many records of a home are there for which there is no room.
    pub(crate) fn left_out(&self, home: &str) -> usize {
        self.0.with(|all| {
            let over = |home: &Home| if home.kept.len() < RECORDS_MAX { 0 } else { home.over.len() };
            all.homes.get(home).map_or(0, |home| over(home) + home.left_out)
        })
    }

    /// Whether the content of a record of this home is kept.
    fn keeps(&self, home: &str, record: &str) -> bool {
        self.0.with(|all| all.homes.get(home).is_some_and(|home| home.kept.contains(record)))
    }

    fn accepts(&self, home: &str) -> bool {
        self.0.with(|all| all.accepted.contains(home))
    }

    fn install(&self, homes: BTreeMap<String, Home>) {
        self.0.with(|all| all.homes = homes);
    }
}

impl Homes {
    fn fitted(&mut self, record: PeerPod, entry: String) -> Admitted {
        let id = home(&record);
        let is_accepted = self.accepted.contains(&id);
        let home = self.homes.entry(id).or_default();
        let (had_all, known) = (home.left_out == 0, home.known());
        let fitting = match home.place(&record, entry, is_accepted) {
            Place::Kept => Some(record),
            Place::Over => Some(record.without_content()),
            Place::LeftOut => {
                if had_all {
                    warn(&self::home(&record));
                }
                None
            }
        };
        // It has finished: others have its room.
        let gave_room = home.known() < known;
        let due = if gave_room && is_accepted { home.promote() } else { Vec::new() };
        let wants_list = gave_room && home.wants_list();
        Admitted { change: fitting.map(Change::Apply), due, wants_list }
    }

    /// The record goes, or says nothing any more.
    fn without(&mut self, record: &PeerPod) -> Admitted {
        let id = home(record);
        let Some(home) = self.homes.get_mut(&id) else { return Admitted::default() };
        home.remove(record);
        let due = if self.accepted.contains(&id) { home.promote() } else { Vec::new() };
        let wants_list = home.wants_list();
        if home.is_empty() {
            self.homes.remove(&id);
        }
        Admitted { change: None, due, wants_list }
    }

    /// Gives the room that is free to the oldest.
    fn promoted(&mut self) -> Admitted {
        let Self { homes, accepted } = self;
        let those = homes.iter_mut().filter(|(id, _)| accepted.contains(*id));
        Admitted { due: those.flat_map(|(_, home)| home.promote()).collect(), ..Admitted::default() }
    }
}

impl Admitted {
    fn with(self, change: Change<PeerPod>) -> Self {
        Self { change: Some(change), ..self }
    }
}

fn warn(home: &str) {
    tracing::warn!(
        home,
        "this cluster has written more than {KNOWN_MAX} ShadowPods for us: of the others nothing is known"
    );
}

/// The home of a record, by its name: also of one that says nothing any more.
fn home(record: &PeerPod) -> String {
    names::of_shadow_pod(&record.name_any()).map(|(home, ..)| home.to_owned()).unwrap_or_default()
}

fn age(record: &PeerPod) -> Age {
    (record.creation_timestamp(), record.name_any())
}

#[cfg(test)]
mod tests;
