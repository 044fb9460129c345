//! What a member knows, and who has to look when it changes.

use std::{collections::BTreeSet, time::Duration};

use api::ServiceName;
use kit::{
    drive::Queue,
    index::{Part, Shared},
};

use super::entry::{Known, ServiceEntry};

/// A slice record is written at once, then at most this often.
const EXPORT_PACE: Duration = Duration::from_millis(250);

/// Everything this member knows, and the queues of its controllers. Cloning shares it.
#[derive(Clone)]
pub struct Knowledge {
    /// Everything this member knows.
    pub known: Shared<Known>,
    /// Service names whose records are to be looked at.
    pub exports: Queue<ServiceName>,
    /// Service names whose imports are to be looked at.
    pub imports: Queue<ServiceName>,
    /// Service names whose ServiceExports are to be looked at.
    pub statuses: Queue<ServiceName>,
}

impl Default for Knowledge {
    fn default() -> Self {
        Self {
            known: Shared::default(),
            exports: Queue::new(EXPORT_PACE),
            imports: Queue::new(Duration::ZERO),
            statuses: Queue::new(Duration::ZERO),
        }
    }
}

impl Knowledge {
    /// Nothing yet, under a leader of Antrea's, where we are cluster `us`.
    pub fn under_antrea(us: &str) -> Self {
        let knowledge = Self::default();
        knowledge.known.with(|known| known.under_antrea = Some(us.to_owned()));
        knowledge
    }

    /// Something changed that all three controllers look at.
    pub fn enqueue(&self, services: impl IntoIterator<Item = ServiceName>) {
        let services = self.known.with(|known| known.concerned(services.into_iter().collect()));
        self.exports.enqueue(services.iter().cloned());
        self.enqueue_foreign(services);
    }

    /// Something changed that says nothing about what this cluster exports: another cluster's pace must not become ours.
    pub fn enqueue_foreign(&self, services: impl IntoIterator<Item = ServiceName>) {
        let services: Vec<_> = services.into_iter().collect();
        self.imports.enqueue(services.iter().cloned());
        self.statuses.enqueue(services);
    }

    /// Looks at everything.
    pub fn enqueue_all(&self) {
        self.enqueue(self.known.with(|known| known.services.keys().cloned().collect::<BTreeSet<_>>()));
    }

    /// Takes in the API server's answer to a write of ours.
    pub fn echo<P: Part<ServiceName, ServiceEntry>>(&self, answer: P) {
        self.enqueue(self.known.with(|known| known.services.echo(answer)));
    }

    /// Takes in that the API server has deleted `object` at our request.
    pub fn deleted<P: Part<ServiceName, ServiceEntry>>(&self, object: &P) {
        self.enqueue(self.known.with(|known| known.services.deleted(object)));
    }
}
