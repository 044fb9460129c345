//! What is known of one object of a consumer: the object here, and its copy at the provider.

use std::{sync::Arc, time::Instant};

use api::bind::mapping::Place;
use kit::{
    custom::Custom,
    index::{Entry, Part, Readers},
};
use kube::{ResourceExt, core::ObjectMeta};
use serde_json::{Map, Value};

/// An object of our cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ours {
    /// When a watch told of it.
    pub(crate) seen: Option<Instant>,
}

/// An object at the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    /// At whose place it is, if at anybody's.
    pub(crate) place: Option<Place>,
    /// When a watch told of it.
    pub(crate) seen: Option<Instant>,
}

impl At {
    /// The place of the object here that it belongs to.
    pub(crate) fn of(place: &Place) -> Self {
        Self { place: Some(place.clone()), seen: None }
    }
}

pub(crate) type Here = Custom<Ours>;
pub(crate) type There = Custom<At>;

/// What is known of one place of the consumer.
#[derive(Clone, Default)]
pub(crate) struct Pair {
    pub(crate) here: Option<Arc<Here>>,
    pub(crate) there: Option<Arc<There>>,
    /// Whether the object was here since we began.
    pub(crate) was_here: bool,
    /// What we applied last, and the copy as it was then: where less is kept than was sent, it is not sent again.
    pub(crate) applied: Option<(Value, Essence)>,
    /// The status that we wrote last, and what became of it.
    pub(crate) said: Option<(Option<Value>, Option<Value>)>,
    /// Since when a change here has not gone up, and one there not come down.
    pub(crate) due_up: Option<Instant>,
    pub(crate) due_down: Option<Instant>,
    /// Since when the API servers cannot serve what is to be done.
    pub(crate) failing: Option<Instant>,
    /// Since when the object waits for a Namespace at the provider.
    pub(crate) unassigned: Option<Instant>,
}

/// What of a copy can differ from what we applied.
pub(crate) type Essence = (Map<String, Value>, ObjectMeta);

impl Pair {
    /// Whether the object is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        self.here.as_ref().is_some_and(|here| here.metadata.deletion_timestamp.is_some())
    }

    /// The copy as an apply can change it.
    pub(crate) fn essence(there: &There) -> Essence {
        let mut content = there.content.clone();
        content.remove("status");
        let metadata = ObjectMeta {
            labels: there.metadata.labels.clone(),
            annotations: there.metadata.annotations.clone(),
            owner_references: there.metadata.owner_references.clone(),
            ..ObjectMeta::default()
        };
        (content, metadata)
    }
}

impl Entry for Pair {
    fn is_empty(&self) -> bool {
        self.here.is_none() && self.there.is_none()
    }
}

fn place(metadata: &ObjectMeta) -> Place {
    Place { namespace: metadata.namespace.clone(), name: metadata.name.clone().unwrap_or_default() }
}

impl Part<Place, Pair> for Here {
    fn key(&self) -> Option<Place> {
        Some(place(&self.metadata))
    }

    fn put(self, entry: &mut Pair) -> Readers {
        let changed = entry.here.as_ref().is_none_or(|had| had.resource_version() != self.resource_version());
        if changed {
            entry.due_up = entry.due_up.or(self.side.seen);
        }
        entry.was_here = true;
        entry.here = Some(Arc::new(self));
        Readers::ALL.when(changed)
    }

    fn take(entry: &mut Pair, _name: &str) -> Readers {
        (entry.said, entry.unassigned) = (None, None);
        Readers::ALL.when(entry.here.take().is_some())
    }
}

impl Part<Place, Pair> for There {
    fn key(&self) -> Option<Place> {
        self.side.place.clone()
    }

    fn put(self, entry: &mut Pair) -> Readers {
        let changed =
            entry.there.as_ref().is_none_or(|had| had.resource_version() != self.resource_version());
        if changed {
            entry.due_down = entry.due_down.or(self.side.seen);
        }
        entry.there = Some(Arc::new(self));
        Readers::ALL.when(changed)
    }

    fn take(entry: &mut Pair, _name: &str) -> Readers {
        entry.applied = None;
        Readers::ALL.when(entry.there.take().is_some())
    }
}
