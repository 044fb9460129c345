//! What is kept of objects that many writers put into one Namespace, each of them as many as it likes: of each no more than it may
//! have. Pure.
//!
//! The oldest objects of a writer are kept with their content; of as many again it is known that they are there; of the rest nothing.
//! So what a writer adds takes nothing away from what it had, nor from others.
//!
//! ShadowPods have rules of their own (`offload/room` of the member): a Pod that runs keeps its record whatever comes.

mod shares;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::quota::Quota;
use jiff::Timestamp;
use kube::{Resource, api::ObjectMeta};

pub use self::shares::Shares;

/// An object of one of many writers.
pub trait Counted: Resource {
    /// Whose it is; what is nobody's is not kept.
    fn writer(&self) -> Option<String>;
    /// Size of its content, 0 without.
    fn bytes(&self) -> usize;
    /// The object without its content: that it is there.
    fn without_content(self) -> Self;
}

/// Objects by age, and those of one age by name.
pub type Place = (Option<Timestamp>, String);

/// Where an object lies among those of its writer.
pub fn place(metadata: &ObjectMeta) -> Place {
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, metadata.name.clone().unwrap_or_default())
}

/// Of how many objects of a writer it is known that they are there.
pub fn known_at_the_most(quota: Quota) -> usize {
    quota.records.saturating_mul(2)
}

/// How often all is listed again at the most, since there is room for what was left out.
const LIST_EVERY: Duration = Duration::from_secs(30);

/// When all was listed again for that.
#[derive(Default)]
pub struct Listed {
    at: Option<Instant>,
    /// It was asked for, and no list has ended since: to ask again would only break it off.
    is_due: bool,
}

impl Listed {
    /// Whether it may be listed again at `now`; then it is.
    pub fn again(&mut self, now: Instant) -> bool {
        let may = !self.is_due && self.at.is_none_or(|at| now.saturating_duration_since(at) >= LIST_EVERY);
        if may {
            *self = Self { at: Some(now), is_due: true };
        }
        may
    }

    /// A list has ended.
    pub fn ended(&mut self) {
        self.is_due = false;
    }
}

/// The objects of one writer in a list, while it is read: the same are kept in whatever order they come.
pub struct Gathering<P> {
    /// With their content.
    kept: BTreeMap<Place, P>,
    bytes: usize,
    /// Without it, since they are younger; and whether they had one.
    known: BTreeMap<Place, (P, bool)>,
    /// Of so many nothing is known.
    dropped: usize,
}

impl<P> Default for Gathering<P> {
    fn default() -> Self {
        Self { kept: BTreeMap::new(), bytes: 0, known: BTreeMap::new(), dropped: 0 }
    }
}

impl<P: Counted> Gathering<P> {
    /// Takes in the next object of the list.
    pub fn take(&mut self, object: P, quota: Quota) {
        let place = place(object.meta());
        if self.known.first_key_value().is_some_and(|(first, _)| place > *first) {
            self.strip(place, object);
        } else {
            self.bytes += object.bytes();
            self.kept.insert(place, object);
        }
        while (self.kept.len() > quota.records || self.bytes > quota.bytes)
            && let Some((place, object)) = self.kept.pop_last()
        {
            self.bytes -= object.bytes();
            self.strip(place, object);
        }
        while self.kept.len() + self.known.len() > known_at_the_most(quota) && self.known.pop_last().is_some()
        {
            self.dropped += 1;
        }
    }

    fn strip(&mut self, place: Place, object: P) {
        let had_content = object.bytes() > 0;
        self.known.insert(place, (object.without_content(), had_content));
    }

    /// What is kept of the list.
    pub fn into_objects(self) -> impl Iterator<Item = P> {
        self.all().map(|(object, _)| object)
    }

    /// The same, and whether each has lost its content.
    fn all(self) -> impl Iterator<Item = (P, bool)> {
        let kept = self.kept.into_values().map(|object| (object, false));
        kept.chain(self.known.into_values())
    }
}
