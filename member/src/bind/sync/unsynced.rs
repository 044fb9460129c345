//! Objects of one contract that are not in step, and why.

use std::collections::BTreeMap;

use api::bind::mapping::Place;
use kit::index::Shared;
use tokio::sync::watch;

/// A reason and a sentence.
pub(crate) type Said = (&'static str, String);

/// Cloning shares it.
#[derive(Clone)]
pub(crate) struct Unsynced {
    /// By the name of the binding and of the API, and the place here.
    all: Shared<BTreeMap<(String, String, Place), Said>>,
    changed: watch::Sender<u64>,
}

impl Unsynced {
    pub(crate) fn new() -> Self {
        Self { all: Shared::default(), changed: watch::Sender::new(0) }
    }

    /// Notes it; whether that is news.
    pub(super) fn put(&self, (binding, api): (&str, &str), place: &Place, said: Said) -> bool {
        let key = (binding.to_owned(), api.to_owned(), place.clone());
        self.change(|all| all.insert(key, said.clone()) != Some(said))
    }

    /// It is in step.
    pub(super) fn remove(&self, (binding, api): (&str, &str), place: &Place) {
        let key = (binding.to_owned(), api.to_owned(), place.clone());
        self.change(|all| all.remove(&key).is_some());
    }

    /// The API is kept in step no more.
    pub(super) fn forget(&self, (binding, api): (&str, &str)) {
        self.change(|all| {
            let before = all.len();
            all.retain(|(of, its, _), _| of != binding || its != api);
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
