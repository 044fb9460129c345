//! What each writer has of what a watch told, in lists and one by one.

use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

use api::quota::Quota;
use kube::ResourceExt;

use super::{Counted, Gathering, Listed, Place, known_at_the_most, place};
use crate::{objects::Change, watch::Gather};

/// The share of each writer in what is kept.
pub struct Shares<P> {
    quota: Quota,
    gathered: HashMap<String, Gathering<P>>,
    writers: HashMap<String, Share>,
    /// By the names of objects.
    places: HashMap<String, (String, Place)>,
    listed: Listed,
}

/// That of one.
#[derive(Default)]
struct Share {
    /// Size of the content that is kept of each object; nothing where there was no room for it.
    objects: BTreeMap<Place, Option<usize>>,
    bytes: usize,
    with_content: usize,
    without_room: usize,
    /// At least so many others nothing is known of.
    dropped: usize,
}

impl<P: Counted> Shares<P> {
    /// Nothing was told.
    pub fn new(quota: Quota) -> Self {
        let (gathered, writers, places) = Default::default();
        Self { quota, gathered, writers, places, listed: Listed::default() }
    }

    /// From now on a writer may have this much.
    pub fn set_quota(&mut self, quota: Quota) {
        self.quota = quota;
    }

    /// Takes in what the watch told; what is to be known of it.
    pub fn change(&mut self, change: Change<P>) -> Option<Change<P>> {
        match change {
            Change::Apply(object) => self.enter(object).map(Change::Apply),
            Change::Remove(object) => {
                self.leave(&object.name_any());
                Some(Change::Remove(object))
            }
            // It was gathered here.
            Change::Reset(objects) => Some(Change::Reset(objects)),
        }
    }

    /// Number of objects whose content is left out, for all that is known.
    pub fn left_out(&self) -> usize {
        self.writers.values().map(Share::left_out).sum()
    }

    /// Whether all is to be listed again, since there is room for something that was left out, or more is known of a writer than may
    /// be: what is told of the rest would not be taken in.
    pub fn wants_list(&mut self, now: Instant) -> bool {
        let most = known_at_the_most(self.quota);
        let has_changed = |share: &Share| share.has_room(self.quota) || share.objects.len() > most;
        self.writers.values().any(has_changed) && self.listed.again(now)
    }

    fn enter(&mut self, object: P) -> Option<P> {
        self.leave(&object.name_any());
        let Some(writer) = object.writer() else { return Some(object) };
        let place = place(object.meta());
        let share = self.writers.entry(writer.clone()).or_default();
        // What is told one by one is younger than the others, but for those of the same second.
        if share.objects.len() >= known_at_the_most(self.quota) {
            share.dropped += 1;
            return None;
        }
        let fits = share.fits(object.bytes(), self.quota);
        share.put(place.clone(), fits.then(|| object.bytes()));
        self.places.insert(object.name_any(), (writer, place));
        Some(if fits { object } else { object.without_content() })
    }

    fn leave(&mut self, name: &str) {
        let Some((writer, place)) = self.places.remove(name) else { return };
        let Some(share) = self.writers.get_mut(&writer) else { return };
        share.remove(&place);
        if share.objects.is_empty() && share.dropped == 0 {
            self.writers.remove(&writer);
        }
    }
}

impl Share {
    fn fits(&self, bytes: usize, quota: Quota) -> bool {
        bytes == 0 || self.with_content < quota.records && self.bytes + bytes <= quota.bytes
    }

    fn put(&mut self, place: Place, kept: Option<usize>) {
        self.bytes += kept.unwrap_or_default();
        self.with_content += usize::from(kept > Some(0));
        self.without_room += usize::from(kept.is_none());
        self.objects.insert(place, kept);
    }

    fn remove(&mut self, place: &Place) {
        let Some(kept) = self.objects.remove(place) else { return };
        self.bytes -= kept.unwrap_or_default();
        self.with_content -= usize::from(kept > Some(0));
        self.without_room -= usize::from(kept.is_none());
    }

    fn left_out(&self) -> usize {
        self.without_room + self.dropped
    }

    /// Not before a tenth of the quota is free: a writer at its limit would have all listed again and again.
    fn has_room(&self, quota: Quota) -> bool {
        let is_free = |used: usize, most: usize| used < most - most / 10;
        let for_content = is_free(self.with_content, quota.records) && is_free(self.bytes, quota.bytes);
        self.without_room > 0 && for_content || self.dropped > 0 && self.objects.len() < quota.records
    }
}

/// Of a list each writer's oldest.
impl<P: Counted> Gather<P> for Shares<P> {
    fn begin(&mut self) {
        self.gathered.clear();
    }

    fn take(&mut self, object: P) {
        if let Some(writer) = object.writer() {
            self.gathered.entry(writer).or_default().take(object, self.quota);
        }
    }

    fn end(&mut self) -> Vec<P> {
        self.listed.ended();
        self.writers.clear();
        self.places.clear();
        let mut all = Vec::new();
        for (writer, gathering) in std::mem::take(&mut self.gathered) {
            let mut share = Share { dropped: gathering.dropped, ..Share::default() };
            for (object, is_left_out) in gathering.all() {
                let place = place(object.meta());
                self.places.insert(object.name_any(), (writer.clone(), place.clone()));
                share.put(place, (!is_left_out).then(|| object.bytes()));
                all.push(object);
            }
            self.writers.insert(writer, share);
        }
        all
    }
}

#[cfg(test)]
mod tests;
