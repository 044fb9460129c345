//! What one member has, and the first of its records that is too much.
//!
//! That one moves to an older record at once, since what is too much must not be kept. It moves to a younger one some time after that:
//! each record that turns is one more status to write, and a member may turn thousands by changing one.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{ServiceName, condition::AntreaCondition, quota::Quota};
use kit::quota::Place;
use kube::api::ObjectMeta;

use super::{
    super::judged::{Judged, Judgement},
    over_quota,
};

/// How long after the last refusal records are admitted for which there is room.
pub(super) const READMIT: Duration = Duration::from_secs(30);

/// What one member has.
#[derive(Default)]
pub(super) struct Account {
    /// Those that count.
    records: BTreeMap<Place, Line>,
    bytes: usize,
    /// The place of the first record that is too much, or was.
    cut: Option<Place>,
    /// How many are before it.
    older: usize,
    /// When it moved to an older record last.
    refused_at: Option<Instant>,
    /// It is to move to a younger one.
    is_late: bool,
    /// How many of its records do not count.
    pub(super) exempt: usize,
    /// There are records of which nothing is known.
    pub(super) has_more: bool,
}

/// What is kept of a record, however large it is.
pub(super) struct Line {
    pub(super) metadata: ObjectMeta,
    pub(super) cluster: String,
    pub(super) bytes: usize,
    pub(super) of: Option<(String, ServiceName)>,
    pub(super) conditions: Vec<AntreaCondition>,
    /// Not refused for what it says itself.
    pub(super) is_valid: bool,
}

impl Account {
    /// Number of records that count.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.exempt == 0 && !self.has_more
    }

    pub(super) fn line(&self, place: &Place) -> Option<&Line> {
        self.records.get(place)
    }

    /// Whether it would be the last.
    pub(super) fn is_last(&self, place: &Place) -> bool {
        self.records.last_key_value().is_some_and(|(last, _)| place > last)
    }

    pub(super) fn put(&mut self, place: Place, line: Line) {
        self.remove(&place);
        self.bytes += line.bytes;
        self.older += usize::from(!self.refuses(&place));
        self.records.insert(place, line);
    }

    pub(super) fn remove(&mut self, place: &Place) {
        let Some(line) = self.records.remove(place) else { return };
        self.bytes -= line.bytes;
        self.older -= usize::from(!self.refuses(place));
    }

    /// Whether a record at this place is too much.
    pub(super) fn refuses(&self, place: &Place) -> bool {
        self.cut.as_ref().is_some_and(|cut| place >= cut)
    }

    /// Number of records that are too much.
    pub(super) fn over(&self) -> usize {
        self.records.len() - self.older
    }

    /// All records are known: finds the first that is too much.
    pub(super) fn measure(&mut self, quota: Quota) {
        (self.cut, self.older) = self.found(quota);
        (self.refused_at, self.is_late) = (None, false);
    }

    /// Something changed at this place: the records that are refused or admitted for it.
    pub(super) fn settle(&mut self, at: &Place, quota: Quota, now: Instant) -> Vec<Judged> {
        // What is too much anyway changes nothing for the others.
        if self.cut.as_ref().is_some_and(|cut| at > cut) {
            return Vec::new();
        }
        let found = self.found(quota);
        let is_earlier = match (&found.0, &self.cut) {
            (Some(found), Some(cut)) => found < cut,
            (found, cut) => found.is_some() && cut.is_none(),
        };
        if is_earlier {
            self.refused_at = Some(now);
        } else if found.0 != self.cut && !self.may_admit(now) {
            self.is_late = true;
            return Vec::new();
        }
        self.move_to(found, quota)
    }

    /// The records that are admitted since it is `now`.
    pub(super) fn admit_late(&mut self, quota: Quota, now: Instant) -> Vec<Judged> {
        match self.is_late && self.may_admit(now) {
            true => self.move_to(self.found(quota), quota),
            false => Vec::new(),
        }
    }

    fn may_admit(&self, now: Instant) -> bool {
        self.refused_at.is_none_or(|at| now.saturating_duration_since(at) >= READMIT)
    }

    /// The first record that is too much, and how many are before it.
    fn found(&self, quota: Quota) -> (Option<Place>, usize) {
        if self.records.len() <= quota.records && self.bytes <= quota.bytes {
            return (None, self.records.len());
        }
        let (mut older, mut bytes) = (0, 0);
        for (place, line) in &self.records {
            bytes += line.bytes;
            if older == quota.records || bytes > quota.bytes {
                return (Some(place.clone()), older);
            }
            older += 1;
        }
        (None, older)
    }

    fn move_to(&mut self, (cut, older): (Option<Place>, usize), quota: Quota) -> Vec<Judged> {
        let before = std::mem::replace(&mut self.cut, cut);
        (self.older, self.is_late) = (older, false);
        let Some(from) = [&before, &self.cut].into_iter().flatten().min() else { return Vec::new() };
        let was_refused = |place: &Place| before.as_ref().is_some_and(|before| place >= before);
        let turned = self.records.range(from.clone()..).filter(|(_, line)| line.is_valid);
        let turned = turned.filter(|(place, _)| was_refused(place) != self.refuses(place));
        turned
            .map(|(place, line)| {
                line.judged(match self.refuses(place) {
                    true => Judgement::refused(over_quota(quota), line.of.clone()),
                    false => Judgement::Unread { of: line.of.clone() },
                })
            })
            .collect()
    }
}

impl Line {
    pub(super) fn judged(&self, judgement: Judgement) -> Judged {
        let (metadata, conditions) = (self.metadata.clone(), self.conditions.clone());
        let (cluster, bytes) = (self.cluster.clone(), self.bytes);
        Judged { metadata, cluster, bytes, judgement, remark: None, conditions }
    }
}
