//! How far an API server has told.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The latest resourceVersion that an API server has told some watches of. Whatever has a later one was written after all that they
/// know. Cloning shares it.
#[derive(Clone, Default)]
pub struct Latest(Arc<AtomicU64>);

impl Latest {
    /// It; 0 before the first list, and where versions are no numbers.
    pub fn version(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// It has told of this version.
    pub fn see(&self, version: u64) {
        self.0.fetch_max(version, Ordering::SeqCst);
    }

    /// The API server was restored from a backup: it is at an earlier one.
    pub(super) fn forget(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}
