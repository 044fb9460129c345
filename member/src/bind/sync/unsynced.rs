//! Objects of one contract that are not in step, and why.

use std::collections::BTreeMap;

use api::bind::mapping::Place;
use kit::{index::Shared, metrics::Tally};
use tokio::sync::watch;

/// A reason and a sentence.
pub(crate) type Said = (&'static str, String);

/// Cloning shares it.
#[derive(Clone)]
pub(crate) struct Unsynced {
    /// By the name of the binding and of the API, and the place here.
    all: Shared<BTreeMap<(String, String, Place), Said>>,
    /// What no watch has told in time, by the name of the binding and of the API.
    late: Shared<BTreeMap<(String, String), &'static str>>,
    changed: watch::Sender<u64>,
    counted: Tally,
}

impl Unsynced {
    /// None yet. `counted` counts them by API and reason.
    pub(crate) fn new(counted: Tally) -> Self {
        Self { all: Shared::default(), late: Shared::default(), changed: watch::Sender::new(0), counted }
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

    /// Notes what no watch of the API has told in time, if anything.
    pub(super) fn put_late(&self, (binding, api): (&str, &str), late: Option<&'static str>) {
        let key = (binding.to_owned(), api.to_owned());
        let before = self.late.with(|all| match late {
            Some(late) => all.insert(key, late),
            None => all.remove(&key),
        });
        if before != late {
            self.changed.send_modify(|times| *times += 1);
        }
    }

    /// What no watch of a binding has told in time: the API, and what of it.
    pub(crate) fn late(&self, binding: &str) -> Option<(String, &'static str)> {
        self.late.with(|all| {
            let of_it = all.iter().find(|((of, _), _)| of == binding);
            of_it.map(|((_, api), late)| (api.clone(), *late))
        })
    }

    /// The API is kept in step no more.
    pub(super) fn forget(&self, (binding, api): (&str, &str)) {
        self.put_late((binding, api), None);
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
