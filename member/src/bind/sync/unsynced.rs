//! Objects of one contract that are not in step, and why.

use std::collections::BTreeMap;

use api::bind::mapping::Place;
use kit::{index::Shared, metrics::Tally};
use tokio::sync::watch;

/// A reason and a sentence.
pub(crate) type Said = (&'static str, String);

/// Why an API is not kept in step as a whole. The first one explains what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Halt {
    /// A right was taken back in our cluster.
    NotPermitted,
    /// Watches have not told in time what there is.
    InformerSyncTimeout,
}

impl Halt {
    /// The reason in a condition.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NotPermitted => "NotPermitted",
            Self::InformerSyncTimeout => "InformerSyncTimeout",
        }
    }
}

/// Cloning shares it.
#[derive(Clone)]
pub(crate) struct Unsynced {
    /// By the name of the binding and of the API, and the place here.
    all: Shared<BTreeMap<(String, String, Place), Said>>,
    /// By the name of the binding, and of the API.
    halts: Shared<BTreeMap<(String, Halt, String), String>>,
    changed: watch::Sender<u64>,
    counted: Tally,
}

impl Unsynced {
    /// None yet. `counted` counts them by API and reason.
    pub(crate) fn new(counted: Tally) -> Self {
        Self { all: Shared::default(), halts: Shared::default(), changed: watch::Sender::new(0), counted }
    }

    /// Notes it; whether that is news.
    pub(super) fn put(&self, (binding, api): (&str, &str), place: &Place, said: Said) -> bool {
        self.counted.put(&key_of(binding, api, place), Some([api, said.0]));
        let key = (binding.to_owned(), api.to_owned(), place.clone());
        self.change(|all| all.insert(key, said.clone()) != Some(said))
    }

    /// It is in step.
    pub(super) fn remove(&self, (binding, api): (&str, &str), place: &Place) {
        self.counted.put::<2>(&key_of(binding, api, place), None);
        let key = (binding.to_owned(), api.to_owned(), place.clone());
        self.change(|all| all.remove(&key).is_some());
    }

    /// Notes what keeps the API as a whole from being in step, or that this does not.
    pub(super) fn put_halt(&self, (binding, api): (&str, &str), halt: Halt, message: Option<&str>) {
        let key = (binding.to_owned(), halt, api.to_owned());
        let before = self.halts.with(|all| match message {
            Some(message) => all.insert(key, message.to_owned()),
            None => all.remove(&key),
        });
        if before.as_deref() != message {
            self.changed.send_modify(|times| *times += 1);
        }
    }

    /// What keeps an API of a binding as a whole from being in step.
    pub(crate) fn halted(&self, binding: &str) -> Option<Said> {
        self.halts.with(|all| {
            let of_it = all.iter().find(|((of, ..), _)| of == binding);
            of_it.map(|((_, halt, _), message)| (halt.reason(), message.clone()))
        })
    }

    /// The API is kept in step no more.
    pub(super) fn forget(&self, (binding, api): (&str, &str)) {
        self.put_halt((binding, api), Halt::NotPermitted, None);
        self.put_halt((binding, api), Halt::InformerSyncTimeout, None);
        self.change(|all| {
            let before = all.len();
            all.retain(|(of, its, place), _| {
                let stays = of != binding || its != api;
                if !stays {
                    self.counted.put::<2>(&key_of(of, its, place), None);
                }
                stays
            });
            all.len() != before
        });
    }

    /// Those of a binding.
    pub(crate) fn of(&self, binding: &str) -> BTreeMap<Place, Said> {
        self.all.with(|all| {
            let of_it = all.iter().filter(|((of, ..), _)| of == binding);
            of_it.map(|((.., place), said)| (place.clone(), said.clone())).collect()
        })
    }

    /// Tells whenever there are others.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<(String, String, Place), Said>) -> bool) -> bool {
        let is_news = self.all.with(change);
        if is_news {
            self.changed.send_modify(|times| *times += 1);
        }
        is_news
    }
}

fn key_of(binding: &str, api: &str, place: &Place) -> String {
    format!("{binding}/{api}/{}/{}", place.namespace.as_deref().unwrap_or_default(), place.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::fixture::access;

    #[tokio::test]
    async fn a_missing_right_explains_a_watch_that_tells_nothing() {
        let unsynced = Unsynced::new(access().env.metrics.bind().unsynced());
        let changes = unsynced.changes();
        let put = |api, halt, message: Option<&str>| {
            unsynced.put_halt(("mango", api), halt, message);
        };
        put("a", Halt::InformerSyncTimeout, Some("late"));
        put("b", Halt::NotPermitted, Some("no right"));
        put("b", Halt::NotPermitted, Some("no right"));
        assert_eq!(*changes.borrow(), 2, "that was no news");
        assert_eq!(unsynced.halted("mango"), Some(("NotPermitted", "no right".to_owned())));
        assert_eq!(unsynced.halted("other"), None);
        unsynced.forget(("mango", "b"));
        assert_eq!(unsynced.halted("mango"), Some(("InformerSyncTimeout", "late".to_owned())));
        put("a", Halt::InformerSyncTimeout, None);
        assert_eq!(unsynced.halted("mango"), None);
    }
}
