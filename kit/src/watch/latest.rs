//! The latest resourceVersion that watches observed.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The latest resourceVersion that several watches of one API server observed. An object with a later resourceVersion was written after
/// everything that these watches observed. Cloning shares it.
#[derive(Clone, Default)]
pub struct Latest(Arc<AtomicU64>);

impl Latest {
    /// Returns the resourceVersion; 0 before the first list, and if resourceVersions are not numbers.
    pub fn version(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Records that a watch observed this version.
    pub fn see(&self, version: u64) {
        self.0.fetch_max(version, Ordering::SeqCst);
    }

    /// Forgets the version, because the API server was restored from a backup and is at an earlier one.
    pub(super) fn forget(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}
