//! What always holds, checked at every write of every API server.
//!
//! | module | holds |
//! |---|---|
//! | `active` | of several replicas, only the one that holds the Lease writes |
//! | `own` | a daemon deletes or changes nothing that somebody else made |
//! | `vouched` | no part of an import ends on an absence that nobody confirmed |
//! | `kept` | what is exported without interruption stays imported |
//! | `fresh` | no endpoint appears that no exporter has had lately |
//! | `ready` | a condition becomes `True` only if it is true |
//! | `exports` | what users export, and since when |
//! | `write` | a write: who, where, before and after |
//!
//! Each invariant is a function of the writes alone. It states what is true in every order of events; where the daemons may be late, it allows
//! [`LATE`].

mod active;
mod exports;
mod fresh;
mod kept;
mod own;
mod ready;
#[cfg(test)]
mod testkit;
mod vouched;
mod write;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

pub use self::write::{Author, Process, Write};

/// How late a daemon may act on what happened: longer than all faults of a chaos run that may follow each other without a pause.
const LATE: Duration = Duration::from_secs(60);

/// Something that always holds.
pub trait Invariant: Send {
    /// Its name in failures.
    fn name(&self) -> &'static str;

    /// Takes note of a write. An error says why it breaks the invariant.
    fn check(&mut self, write: &Write<'_>) -> Result<(), String>;
}

/// Those that hold in every test.
fn of_all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(active::Active::default()),
        Box::new(own::Own::default()),
        Box::new(ready::Ready::default()),
        Box::new(vouched::Vouched::default()),
    ]
}

/// Those that hold where no cluster leaves, and where records are written by daemons alone.
fn of_exports() -> Vec<Box<dyn Invariant>> {
    vec![Box::new(kept::Kept::default()), Box::new(fresh::Fresh::default())]
}

/// An invariant that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Virtual time since the start.
    pub at: Duration,
    /// The write that broke it, in words.
    pub write: String,
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, at, write, why } = self;
        write!(f, "invariant {invariant}: at {:.3} s {write}: {why}", at.as_secs_f64())
    }
}

/// Checks the writes of all API servers of a simulation, until one breaks an invariant.
pub(crate) struct Monitor {
    started: Instant,
    checks: Mutex<Vec<Box<dyn Invariant>>>,
    violation: watch::Sender<Option<Violation>>,
}

impl Monitor {
    /// A monitor of the invariants that hold in every test.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            checks: Mutex::new(of_all()),
            violation: watch::Sender::new(None),
        })
    }

    /// Checks those about exports, too, from now on. What users export has to be written after this.
    pub(crate) fn add_exports(&self) {
        self.checks().extend(of_exports());
    }

    /// Waits for the first violation.
    pub(crate) async fn violated(&self) -> Violation {
        let mut violation = self.violation.subscribe();
        match violation.wait_for(Option::is_some).await.map(|found| found.clone()) {
            Ok(Some(found)) => found,
            _ => std::future::pending().await,
        }
    }

    /// Virtual time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn see(&self, write: &Write<'_>) {
        for invariant in self.checks().iter_mut() {
            if let Err(why) = invariant.check(write)
                && self.violation.borrow().is_none()
            {
                let (invariant, at) = (invariant.name(), write.at);
                self.violation.send_replace(Some(Violation { invariant, at, write: write.to_string(), why }));
            }
        }
    }

    fn checks(&self) -> MutexGuard<'_, Vec<Box<dyn Invariant>>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
