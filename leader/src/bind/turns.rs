//! One after the other in each cluster namespace.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use kit::index::Shared;
use tokio::sync::Mutex;

/// A lock for each cluster namespace, as long as somebody holds it or waits for it. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Turns(Shared<BTreeMap<String, Weak<Mutex<()>>>>);

impl Turns {
    /// The lock of this cluster namespace.
    pub(super) fn of(&self, cluster_namespace: &str) -> Arc<Mutex<()>> {
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
    use super::*;

    #[test]
    fn a_cluster_namespace_has_one_turn_and_others_have_their_own() {
        let turns = Turns::default();
        let mine = turns.of("a");
        let held = mine.try_lock().unwrap();
        assert!(turns.of("a").try_lock().is_err());
        assert!(turns.of("b").try_lock().is_ok());
        drop(held);
        assert!(turns.of("a").try_lock().is_ok());
    }
}
