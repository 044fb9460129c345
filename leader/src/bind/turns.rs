//! One after the other in each cluster namespace; no consumer waits for another one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use kit::index::Shared;

/// A lock for each cluster namespace, as long as somebody holds it or waits for it. Cloning shares them.
pub(super) struct Turns<L>(Shared<BTreeMap<String, Weak<L>>>);

impl<L> Clone for Turns<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L> Default for Turns<L> {
    fn default() -> Self {
        Self(Shared::default())
    }
}

impl<L: Default> Turns<L> {
    /// The lock of this cluster namespace.
    pub(super) fn of(&self, cluster_namespace: &str) -> Arc<L> {
        self.0.with(|turns| {
            turns.retain(|_, turn| turn.strong_count() > 0);
            let there = turns.get(cluster_namespace).and_then(Weak::upgrade);
            there.unwrap_or_else(|| {
                let turn = Arc::default();
                turns.insert(cluster_namespace.to_owned(), Arc::downgrade(&turn));
                turn
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Mutex;

    use super::*;

    #[test]
    fn a_cluster_namespace_has_one_turn_and_others_have_their_own() {
        let turns = Turns::<Mutex<()>>::default();
        let mine = turns.of("a");
        let held = mine.try_lock().unwrap();
        assert!(turns.of("a").try_lock().is_err());
        assert!(turns.of("b").try_lock().is_ok());
        drop(held);
        assert!(turns.of("a").try_lock().is_ok());
    }
}
