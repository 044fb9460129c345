//! Which imports there is room for here: pure.
//!
//! Every import takes an address, and whoever may write records can offer any number of them. So a cluster makes a number of imports
//! at the most. What is here stays, whatever the number; of what is new the oldest come first. How old an import is says the API
//! server of the leader and nobody who offers something. A quarter of the room is for clusters that have less than a quarter of it, so
//! that no cluster alone takes all of it. An import counts for the exporter that it names first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use api::ServiceName;
use jiff::Timestamp;

use crate::service::index::known::Known;

/// Why imports wait: there are as many as this cluster makes.
pub(crate) const TOO_MANY: &str = "TooManyImports";
/// This cluster does not have their Namespace.
pub(crate) const NO_NAMESPACE: &str = "NamespaceMissing";

/// How it stands with one import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nobody exports it, or its Namespace is going.
    Nothing,
    /// Something of it is here, of this cluster.
    Here(String),
    /// It waits for its Namespace.
    Namespace,
    /// It is to be made; how old it is, and of which cluster.
    New(Timestamp, String),
}

/// When an import was made, and its name.
type Age = (Timestamp, ServiceName);

impl Need {
    /// What is known of an import says how it stands with it.
    pub(super) fn of(known: &Known) -> Self {
        let (entry, namespace) = (&known.entry, known.namespace);
        let first = || known.exporters().first().map(|exporter| exporter.cluster_id.clone());
        if entry.is_imported() {
            return Self::Here(first().unwrap_or_default());
        }
        match &entry.leader_import {
            Some(_) if known.exporters().is_empty() => Self::Nothing,
            Some(_) if !namespace.exists => Self::Namespace,
            Some(import) if namespace.active => {
                Self::New(import.created.unwrap_or_default(), first().unwrap_or_default())
            }
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
    /// Those that are here or may be made, and of which cluster.
    taken: HashMap<ServiceName, String>,
    /// How many these are, by cluster.
    shares: HashMap<String, usize>,
    /// Those that wait for room, the oldest first.
    waiting: BTreeSet<Age>,
    /// The same by cluster.
    queues: BTreeMap<String, BTreeSet<Age>>,
    ages: HashMap<ServiceName, (Timestamp, String)>,
    /// Those that wait for their Namespace.
    nowhere: BTreeSet<ServiceName>,
}

impl Room {
    /// For `max` imports.
    pub(crate) fn new(max: usize) -> Self {
        let (taken, shares, waiting, queues, ages, nowhere) = Default::default();
        Self { max, has_begun: false, taken, shares, waiting, queues, ages, nowhere }
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
        if matches!(need, Need::New(..)) && self.taken.contains_key(service) {
            return;
        }
        self.forget(service);
        match need {
            Need::Nothing => {}
            Need::Here(cluster) => self.take(service.clone(), cluster),
            Need::Namespace => drop(self.nowhere.insert(service.clone())),
            Need::New(age, cluster) => {
                self.waiting.insert((age, service.clone()));
                self.queues.entry(cluster.clone()).or_default().insert((age, service.clone()));
                self.ages.insert(service.clone(), (age, cluster));
            }
        }
    }

    fn take(&mut self, service: ServiceName, cluster: String) {
        *self.shares.entry(cluster.clone()).or_default() += 1;
        self.taken.insert(service, cluster);
    }

    fn forget(&mut self, service: &ServiceName) {
        self.nowhere.remove(service);
        if let Some(cluster) = self.taken.remove(service)
            && let Some(share) = self.shares.get_mut(&cluster)
        {
            *share -= 1;
            self.shares.retain(|_, share| *share > 0);
        }
        if let Some((age, cluster)) = self.ages.remove(service) {
            let age = (age, service.clone());
            self.waiting.remove(&age);
            if let Some(queue) = self.queues.get_mut(&cluster) {
                queue.remove(&age);
            }
            self.queues.retain(|_, queue| !queue.is_empty());
        }
    }

    fn fill(&mut self) -> Vec<ServiceName> {
        let mut new = Vec::new();
        while let Some((cluster, service)) = self.next() {
            self.forget(&service);
            self.take(service.clone(), cluster);
            new.push(service);
        }
        new
    }

    /// The oldest one for which there is room.
    fn next(&self) -> Option<(String, ServiceName)> {
        let first =
            |(cluster, queue): (&String, &BTreeSet<Age>)| Some((queue.first()?.clone(), cluster.clone()));
        let open = self.queues.iter().filter(|(cluster, _)| self.has_room_for(cluster));
        open.filter_map(first).min().map(|((_, service), cluster)| (cluster, service))
    }

    fn has_room_for(&self, cluster: &str) -> bool {
        let (quarter, share) = (self.max / 4, self.shares.get(cluster).copied().unwrap_or_default());
        self.taken.len() < if share < quarter { self.max } else { self.max - quarter }
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
        let cluster = || (0..3u8).prop_map(|cluster| format!("c{cluster}"));
        let age =
            (0..4i64, cluster()).prop_map(|(age, of)| Need::New(Timestamp::from_second(age).unwrap(), of));
        prop_oneof![Just(Need::Nothing), cluster().prop_map(Need::Here), Just(Need::Namespace), age]
    }

    #[test]
    fn the_oldest_come_first_and_the_next_one_when_there_is_room() {
        let new = |age: i64| Need::New(Timestamp::from_second(age).unwrap(), "east".into());
        let mut room = Room::new(2);
        room.begin([
            (service(0), Need::Here("east".into())),
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

    #[test]
    fn a4_no_cluster_alone_takes_all_of_the_room() {
        let new = |age: i64, of: &str| Need::New(Timestamp::from_second(age).unwrap(), of.into());
        let mut room = Room::new(8);
        room.begin((0..20).map(|n| (service(n), new(0, "flood"))));
        assert_eq!((room.taken(), room.waiting().len()), (6, 14));
        assert_eq!(room.take_in(&service(30), new(9, "east")), [service(30)]);
        assert_eq!(room.take_in(&service(31), new(9, "north")), [service(31)]);
        assert_eq!((room.take_in(&service(32), new(9, "north")), room.taken()), (vec![], 8), "that is all");
        assert_eq!(room.take_in(&service(0), Need::Nothing), [service(32)]);
        assert_eq!(room.take_in(&service(30), Need::Nothing), [], "east's place is not for the flood");
    }

    proptest! {
        /// However imports come and go: no more than the bound are made, nothing that is here is left out, room is used, the
        /// oldest first, and what is known at once is decided as the same in whatever order.
        #[test]
        fn never_more_than_there_is_room_for_and_room_is_used(
            max in 0..9usize,
            begun in prop::collection::btree_map(0..8u8, need(), 0..8),
            steps in prop::collection::vec((0..8u8, need()), 0..40),
        ) {
            let mut room = Room::new(max);
            room.begin(begun.iter().map(|(name, need)| (service(*name), need.clone())));
            let mut other = Room::new(max);
            other.begin(begun.iter().rev().map(|(name, need)| (service(*name), need.clone())));
            prop_assert_eq!((&room.taken, &room.waiting), (&other.taken, &other.waiting));
            let mut needs: BTreeMap<u8, Need> = begun;
            for (name, need) in steps {
                let before = room.taken.clone();
                let new = room.take_in(&service(name), need.clone());
                needs.insert(name, need);
                prop_assert!(new.is_empty() || room.taken() <= max, "{:?}", room);
                prop_assert!(room.queues.keys().all(|waits| !room.has_room_for(waits)), "{:?}", room);
                let entered = room.taken.keys().filter(|taken| !before.contains_key(*taken));
                let entered = entered.filter(|entered| **entered != service(name));
                prop_assert!(entered.into_iter().all(|entered| new.contains(entered)));
                for entered in &new {
                    let age = needs.iter().find_map(|(name, need)| match need {
                        Need::New(age, of) if service(*name) == *entered => Some((of, (*age, entered.clone()))),
                        _ => None,
                    });
                    let older = age.and_then(|(of, age)| room.queues.get(of)?.first().map(|first| *first < age));
                    prop_assert!(older != Some(true), "{:?}", room);
                }
                for (name, need) in &needs {
                    let (is_taken, waits) = (room.taken.contains_key(&service(*name)), room.leaves_out(&service(*name)));
                    let right = match need {
                        Need::Nothing | Need::Namespace => !is_taken && !waits,
                        Need::Here(_) => is_taken && !waits,
                        Need::New(..) => is_taken != waits,
                    };
                    prop_assert!(right, "{} {:?} {:?}", name, need, room);
                }
            }
        }
    }
}
