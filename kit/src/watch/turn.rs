//! When a list may begin, where a crowd may list at the same moment.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Mutex, PoisonError},
};

use crate::crowd;

/// Our place in the crowd, once it is known.
#[derive(Default)]
pub(super) struct Turn(Mutex<Option<usize>>);

impl Turn {
    pub(super) fn take(&self, place: Option<usize>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// Waits for it. Who has no place waits for nobody.
    pub(super) async fn comes(&self) {
        let place = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = place {
            tokio::time::sleep(crowd::wait(place, by_chance())).await;
        }
    }
}

/// A number from 0 to 1.
fn by_chance() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(number >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
