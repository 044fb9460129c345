//! Which imports there is room for here: pure.
//!
//! Every import takes an address, and whoever may write records can offer any number of them. So a cluster makes a number of imports
//! at the most. What is here stays, whatever the number; of what is new the oldest come first. How old an import is says the API
//! server of the leader and nobody who offers something.

use std::collections::{BTreeSet, HashMap};

use api::ServiceName;
use jiff::Timestamp;

use crate::service::index::known::Known;

/// Why imports wait: there are as many as this cluster makes.
pub(crate) const TOO_MANY: &str = "TooManyImports";
/// This cluster does not have their Namespace.
pub(crate) const NO_NAMESPACE: &str = "NamespaceMissing";

/// How it stands with one import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nobody exports it, or its Namespace is going.
    Nothing,
    /// Something of it is here.
    Here,
    /// It waits for its Namespace.
    Namespace,
    /// It is to be made; how old it is.
    New(Timestamp),
}

impl Need {
    /// What is known of an import says how it stands with it.
    pub(super) fn of(known: &Known) -> Self {
        let (entry, namespace) = (&known.entry, known.namespace);
        if entry.is_imported() {
            return Self::Here;
        }
        match &entry.leader_import {
            Some(_) if known.exporters().is_empty() => Self::Nothing,
            Some(_) if !namespace.exists => Self::Namespace,
            Some(import) if namespace.active => Self::New(import.created.unwrap_or_default()),
            _ => Self::Nothing,
        }
    }
}

/// The imports of this cluster, and those that wait.
#[derive(Debug)]
pub(crate) struct Room {
    max: usize,
    /// All imports were looked at.
    has_begun: bool,
    /// Those that are here or may be made.
    taken: BTreeSet<ServiceName>,
    /// Those that wait for room, the oldest first.
    waiting: BTreeSet<(Timestamp, ServiceName)>,
    ages: HashMap<ServiceName, Timestamp>,
    /// Those that wait for their Namespace.
    nowhere: BTreeSet<ServiceName>,
}

impl Room {
    /// For `max` imports.
    pub(crate) fn new(max: usize) -> Self {
        let (taken, waiting, nowhere) = Default::default();
        Self { max, has_begun: false, taken, waiting, ages: HashMap::new(), nowhere }
    }

    /// Takes in how it stands with all of them, so that the oldest come first however they are looked at later.
    pub(crate) fn begin(&mut self, all: impl IntoIterator<Item = (ServiceName, Need)>) {
        for (service, need) in all {
            self.put(&service, need);
        }
        self.fill();
        self.has_begun = true;
    }

    /// Whether it is known which imports there are.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes in how it stands with one. Those that may be made for that.
    pub(crate) fn take_in(&mut self, service: &ServiceName, need: Need) -> Vec<ServiceName> {
        self.put(service, need);
        self.fill()
    }

    /// Whether there is no room for it yet.
    pub(crate) fn leaves_out(&self, service: &ServiceName) -> bool {
        self.ages.contains_key(service)
    }

    /// How many there are at the most.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// How many there are.
    pub(crate) fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Those that wait for room, the oldest first.
    pub(crate) fn waiting(&self) -> impl ExactSizeIterator<Item = &ServiceName> {
        self.waiting.iter().map(|(_, service)| service)
    }

    /// Those that wait for their Namespace.
    pub(crate) fn nowhere(&self) -> impl ExactSizeIterator<Item = &ServiceName> {
        self.nowhere.iter()
    }

    fn put(&mut self, service: &ServiceName, need: Need) {
        // One that may be made is not asked again for its age.
        if matches!(need, Need::New(_)) && self.taken.contains(service) {
            return;
        }
        self.taken.remove(service);
        self.nowhere.remove(service);
        if let Some(age) = self.ages.remove(service) {
            self.waiting.remove(&(age, service.clone()));
        }
        match need {
            Need::Nothing => {}
            Need::Here => drop(self.taken.insert(service.clone())),
            Need::Namespace => drop(self.nowhere.insert(service.clone())),
            Need::New(age) => {
                self.ages.insert(service.clone(), age);
                self.waiting.insert((age, service.clone()));
            }
        }
    }

    fn fill(&mut self) -> Vec<ServiceName> {
        let mut new = Vec::new();
        while self.taken.len() < self.max
            && let Some((_, oldest)) = self.waiting.pop_first()
        {
            self.ages.remove(&oldest);
            self.taken.insert(oldest.clone());
            new.push(oldest);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn service(name: u8) -> ServiceName {
        ServiceName::new("shop", format!("s{name}"))
    }

    fn need() -> impl Strategy<Value = Need> {
        let age = (0..4i64).prop_map(|age| Need::New(Timestamp::from_second(age).unwrap()));
        prop_oneof![Just(Need::Nothing), Just(Need::Here), Just(Need::Namespace), age]
    }

    #[test]
    fn the_oldest_come_first_and_the_next_one_when_there_is_room() {
        let new = |age: i64| Need::New(Timestamp::from_second(age).unwrap());
        let mut room = Room::new(2);
        room.begin([
            (service(0), Need::Here),
            (service(1), new(9)),
            (service(2), new(5)),
            (service(3), new(7)),
        ]);
        assert_eq!(room.waiting().collect::<Vec<_>>(), [&service(3), &service(1)]);
        assert!(room.leaves_out(&service(1)) && !room.leaves_out(&service(2)));
        assert_eq!(room.take_in(&service(4), new(1)), [], "what may be made stays so");
        assert_eq!(room.take_in(&service(0), Need::Nothing), [service(4)]);
        assert_eq!(room.take_in(&service(3), Need::Namespace), []);
        assert_eq!(room.take_in(&service(2), Need::Nothing), [service(1)]);
        assert_eq!((room.waiting().len(), room.nowhere().len(), room.taken()), (0, 1, 2));
    }

    proptest! {
        /// However imports come and go: no more than the bound are made, nothing that is here is left out, room is used, the
        /// oldest first, and what is known at once is decided as the same in whatever order.
        #[test]
        fn never_more_than_there_is_room_for_and_room_is_used(
            max in 0..5usize,
            begun in prop::collection::btree_map(0..8u8, need(), 0..8),
            steps in prop::collection::vec((0..8u8, need()), 0..40),
        ) {
            let mut room = Room::new(max);
            room.begin(begun.iter().map(|(name, need)| (service(*name), *need)));
            let mut other = Room::new(max);
            other.begin(begun.iter().rev().map(|(name, need)| (service(*name), *need)));
            prop_assert_eq!((&room.taken, &room.waiting), (&other.taken, &other.waiting));
            let mut needs: BTreeMap<u8, Need> = begun;
            for (name, need) in steps {
                let before = room.taken.clone();
                let new = room.take_in(&service(name), need);
                needs.insert(name, need);
                prop_assert!(new.is_empty() || room.taken() <= max, "{:?}", room);
                prop_assert!(room.waiting().len() == 0 || room.taken() >= max, "{:?}", room);
                let entered: BTreeSet<_> = room.taken.difference(&before).collect();
                let entered = entered.into_iter().filter(|entered| **entered != service(name));
                prop_assert!(entered.into_iter().all(|entered| new.contains(entered)));
                let age = |of: &ServiceName| needs.iter().find_map(|(name, need)| match need {
                    Need::New(age) if service(*name) == *of => Some((*age, of.clone())),
                    _ => None,
                });
                let last = new.iter().filter_map(age).max();
                prop_assert!(last.is_none_or(|last| room.waiting.first().is_none_or(|first| last < *first)));
                for (name, need) in &needs {
                    let (is_taken, waits) = (room.taken.contains(&service(*name)), room.leaves_out(&service(*name)));
                    let right = match need {
                        Need::Nothing | Need::Namespace => !is_taken && !waits,
                        Need::Here => is_taken && !waits,
                        Need::New(_) => is_taken != waits,
                    };
                    prop_assert!(right, "{} {:?} {:?}", name, need, room);
                }
            }
        }
    }
}
