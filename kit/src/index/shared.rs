//! What several tasks work on.

use std::sync::{Arc, Mutex, PoisonError};

/// What watches write to and controllers read from. Cloning shares it.
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Shared<T> {
    /// Shares `content`.
    pub fn new(content: T) -> Self {
        Self(Arc::new(Mutex::new(content)))
    }

    /// Does synchronous work on it while nobody else does.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
