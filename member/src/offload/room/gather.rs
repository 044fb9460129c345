//! What is kept of a list of records while it is read. Pure.

use std::collections::BTreeMap;

use kit::{index::Part, watch::Gather};
use kube::ResourceExt;

use super::{Age, FINISHED_MAX, Home, KNOWN_MAX, RECORDS_MAX, Room, age, home, warn};
use crate::offload::view::PeerPod;

/// Those that have room already come first, then the older ones: a list takes nobody's room.
type Rank = (bool, Age);

/// The records of a list that were read so far.
pub(crate) struct Gathered {
    room: Room,
    /// By ID.
    homes: BTreeMap<String, Gathering>,
}

/// Those of one home.
#[derive(Default)]
struct Gathering {
    /// With their content.
    kept: BTreeMap<Rank, PeerPod>,
    /// Without it.
    over: BTreeMap<Rank, PeerPod>,
    /// Those of Pods that have finished, without it.
    finished: Vec<PeerPod>,
    left_out: usize,
}

impl Gathered {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, homes: BTreeMap::new() }
    }

    /// How many records it holds.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.homes.values().map(|of| of.kept.len() + of.over.len()).sum()
    }
}

impl Gather<PeerPod> for Gathered {
    fn begin(&mut self) {
        self.homes.clear();
    }

    /// One that says nothing counts as vanished.
    fn take(&mut self, record: PeerPod) {
        if record.key().is_none() {
            return;
        }
        let home = home(&record);
        let has_room = self.room.keeps(&home, &record.name_any());
        let may_have_room = has_room || self.room.accepts(&home);
        self.homes.entry(home).or_default().take((!has_room, age(&record)), record, may_have_room);
    }

    fn end(&mut self) -> Vec<PeerPod> {
        let homes = std::mem::take(&mut self.homes);
        for (id, _) in homes.iter().filter(|(_, gathering)| gathering.left_out > 0) {
            warn(id);
        }
        self.room.install(homes.iter().map(|(id, gathering)| (id.clone(), gathering.home())).collect());
        let all = |of: Gathering| of.kept.into_values().chain(of.over.into_values()).chain(of.finished);
        homes.into_values().flat_map(all).collect()
    }
}

impl Gathering {
    fn take(&mut self, rank: Rank, record: PeerPod, may_have_room: bool) {
        if record.has_finished() && self.finished.len() < FINISHED_MAX {
            self.finished.push(record.without_content());
            return;
        }
        let is_late = self.over.first_key_value().is_some_and(|(first, _)| rank > *first);
        if may_have_room && !is_late {
            self.kept.insert(rank, record);
        } else {
            self.over.insert(rank, record.without_content());
        }
        while self.kept.len() > RECORDS_MAX
            && let Some((rank, record)) = self.kept.pop_last()
        {
            self.over.insert(rank, record.without_content());
        }
        while self.kept.len() + self.over.len() > KNOWN_MAX && self.over.pop_last().is_some() {
            self.left_out += 1;
        }
    }

    fn home(&self) -> Home {
        let over = self.over.iter().filter_map(|((_, age), record)| Some((age.clone(), record.key()?)));
        Home {
            kept: self.kept.values().map(ResourceExt::name_any).collect(),
            over: over.collect(),
            finished: self.finished.iter().map(ResourceExt::name_any).collect(),
            left_out: self.left_out,
        }
    }
}
