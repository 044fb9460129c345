//! Which test starts next: those that run side by side take no more control planes than the machine carries, and what is there already is
//! used first. Pure; [`turn`](crate::turn) asks.

use std::{cmp::Reverse, collections::BTreeMap};

/// What tests run on: a fleet, or several alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub name: &'static str,
    /// Control planes of one. A cluster with a node counts twice.
    pub planes: usize,
    /// So many of it may be there at once.
    pub copies: usize,
}

/// How a test uses its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Beside others.
    Beside,
    /// Beside others, but not beside one like this.
    OneByOne,
    /// It has one for itself.
    Alone,
}

/// What the machine carries.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Control planes that run at once. One takes processor time whether somebody uses it or not.
    pub planes: usize,
    /// Tests that run at once.
    pub tests: usize,
    /// Tests that run at once on one place.
    pub tests_per_place: usize,
}

/// A test that asked for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(u64);

#[derive(Clone, Copy, Debug)]
struct Asked {
    id: Id,
    place: Place,
    sharing: Sharing,
}

/// Tests that wait and that run, and the places that are there.
#[derive(Debug)]
pub struct Schedule {
    limits: Limits,
    next: u64,
    waiting: Vec<Asked>,
    running: Vec<Asked>,
    /// How many there are of a place, by its name.
    up: BTreeMap<&'static str, usize>,
    planes: usize,
    is_open: bool,
}

impl Schedule {
    /// Nothing starts before it is [opened](Self::open).
    pub fn new(limits: Limits) -> Self {
        let (waiting, running) = (Vec::new(), Vec::new());
        Self { limits, next: 0, waiting, running, up: BTreeMap::new(), planes: 0, is_open: false }
    }

    pub fn open(&mut self) {
        self.is_open = true;
        self.start();
    }

    /// A test waits from now on.
    pub fn ask(&mut self, place: Place, sharing: Sharing) -> Id {
        let id = Id(self.next);
        self.next += 1;
        self.waiting.push(Asked { id, place, sharing });
        self.start();
        id
    }

    /// Whether the test runs.
    pub fn runs(&self, id: Id) -> bool {
        self.running.iter().any(|running| running.id == id)
    }

    /// A test has ended.
    pub fn done(&mut self, id: Id) {
        self.running.retain(|asked| asked.id != id);
        self.start();
    }

    /// Takes back the question of a test that still waits; whether it did.
    pub fn withdraw(&mut self, id: Id) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|asked| asked.id != id);
        self.waiting.len() < before
    }

    /// Retires one of a place that no test has and none waits for; whether there is such a one.
    pub fn take_unused(&mut self, place: Place) -> bool {
        let is_unused = !self.is_awaited(place) && self.up(place) > self.users(place);
        if is_unused {
            self.retire(place);
        }
        is_unused
    }

    /// No test gets this one of a place any more. Its control planes count until they are [released](Self::release_planes).
    pub fn retire(&mut self, place: Place) {
        if let Some(up) = self.up.get_mut(place.name) {
            *up = up.saturating_sub(1);
        }
    }

    /// The processes of one that was retired have ended.
    pub fn release_planes(&mut self, place: Place) {
        self.planes = self.planes.saturating_sub(place.planes);
        self.start();
    }

    /// Whether a test waits for the place.
    pub fn is_awaited(&self, place: Place) -> bool {
        self.waiting.iter().any(|asked| asked.place.name == place.name)
    }

    /// Starts all tests that may.
    fn start(&mut self) {
        while let Some(index) = self.first() {
            let asked = self.waiting.swap_remove(index);
            if self.is_new_for(&asked) {
                *self.up.entry(asked.place.name).or_default() += 1;
                self.planes += asked.place.planes;
            }
            self.running.push(asked);
        }
    }

    /// The one among those that may start which does so first: on a place that is there before one on a new place; of new ones the largest, for
    /// which there may be no room later; then where most turns are left.
    fn first(&self) -> Option<usize> {
        if !self.is_open || self.running.len() >= self.limits.tests {
            return None;
        }
        let may_start = self.waiting.iter().enumerate().filter(|(_, asked)| self.may_start(asked));
        let first = may_start.max_by_key(|(_, asked)| {
            let is_new = self.is_new_for(asked);
            let planes = if is_new { asked.place.planes } else { 0 };
            (!is_new, planes, asked.sharing != Sharing::Alone, self.turns(asked.place), Reverse(asked.id))
        });
        first.map(|(index, _)| index)
    }

    fn may_start(&self, asked: &Asked) -> bool {
        let others = || self.running.iter().filter(|running| running.place.name == asked.place.name);
        let is_alone = others().any(|other| other.sharing == Sharing::Alone);
        let fits = match asked.sharing {
            Sharing::Alone => others().count() < asked.place.copies,
            Sharing::Beside => !is_alone && others().count() < self.limits.tests_per_place,
            Sharing::OneByOne => {
                !is_alone
                    && others().count() < self.limits.tests_per_place
                    && others().all(|other| other.sharing != Sharing::OneByOne)
            }
        };
        fits && (!self.is_new_for(asked)
            || self.planes == 0
            || self.planes + asked.place.planes <= self.limits.planes)
    }

    /// Whether the test needs one that is not there yet.
    fn is_new_for(&self, asked: &Asked) -> bool {
        let up = self.up(asked.place);
        up == 0 || asked.sharing == Sharing::Alone && self.users(asked.place) >= up
    }

    fn up(&self, place: Place) -> usize {
        self.up.get(place.name).copied().unwrap_or_default()
    }

    fn users(&self, place: Place) -> usize {
        self.running.iter().filter(|running| running.place.name == place.name).count()
    }

    /// How many turns those take that wait for the place.
    fn turns(&self, place: Place) -> usize {
        let waiting = || self.waiting.iter().filter(|asked| asked.place.name == place.name);
        let beside = waiting().filter(|asked| asked.sharing == Sharing::Beside).count();
        (waiting().count() - beside).div_ceil(place.copies) + beside.div_ceil(self.limits.tests_per_place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { planes: 6, tests: 5, tests_per_place: 3 };
    const SHARED: Place = Place { name: "shared", planes: 3, copies: 1 };
    const POOL: Place = Place { name: "pool", planes: 2, copies: 2 };
    const SMALL: Place = Place { name: "small", planes: 1, copies: 1 };

    /// Those of `ids` that run.
    fn running(schedule: &mut Schedule, ids: &[Id]) -> Vec<usize> {
        schedule.open();
        (0..ids.len()).filter(|index| schedule.runs(ids[*index])).collect()
    }

    #[test]
    fn tests_share_a_place_up_to_a_number_and_one_alone_waits_for_all() {
        let mut schedule = Schedule::new(LIMITS);
        let alone = schedule.ask(SHARED, Sharing::Alone);
        let mut ids: Vec<_> = (0..4).map(|_| schedule.ask(SHARED, Sharing::Beside)).collect();
        ids.push(alone);
        assert_eq!(running(&mut schedule, &ids), [0, 1, 2]);
        schedule.done(ids[0]);
        assert_eq!(running(&mut schedule, &ids), [1, 2, 3]);
        for id in &ids[1..4] {
            schedule.done(*id);
        }
        assert_eq!(running(&mut schedule, &ids), [4]);
    }

    #[test]
    fn one_by_one_is_beside_others() {
        let mut schedule = Schedule::new(LIMITS);
        let ids =
            [Sharing::OneByOne, Sharing::OneByOne, Sharing::Beside].map(|how| schedule.ask(SHARED, how));
        assert_eq!(running(&mut schedule, &ids), [0, 2]);
        schedule.done(ids[0]);
        assert_eq!(running(&mut schedule, &ids), [1, 2]);
    }

    #[test]
    fn no_more_control_planes_run_than_the_machine_carries() {
        let mut schedule = Schedule::new(LIMITS);
        let ids = [SHARED, POOL, POOL, POOL, SMALL].map(|place| schedule.ask(place, Sharing::Alone));
        assert_eq!(running(&mut schedule, &ids), [0, 1, 4], "3 + 2 + 1");
        schedule.done(ids[0]);
        assert_eq!(running(&mut schedule, &ids), [1, 4], "its processes run yet");
        assert!(schedule.take_unused(SHARED) && !schedule.take_unused(SHARED));
        schedule.release_planes(SHARED);
        assert_eq!(running(&mut schedule, &ids), [1, 2, 4], "two of a pool, and not three");
        schedule.done(ids[1]);
        assert_eq!(running(&mut schedule, &ids), [2, 3, 4], "one that is there is used again");
        schedule.done(ids[2]);
        assert!(schedule.take_unused(POOL) && !schedule.take_unused(POOL), "a test has the other one");
    }

    #[test]
    fn what_is_there_is_used_before_something_new() {
        let mut schedule = Schedule::new(Limits { tests: 1, ..LIMITS });
        let ids = [SHARED, SMALL, SHARED].map(|place| schedule.ask(place, Sharing::Beside));
        assert_eq!(running(&mut schedule, &ids), [0]);
        schedule.done(ids[0]);
        assert_eq!(running(&mut schedule, &ids), [2]);
        assert!(!schedule.is_awaited(SHARED) && schedule.is_awaited(SMALL));
    }

    #[test]
    fn tests_that_make_their_own_leave_no_planes_behind() {
        let mut schedule = Schedule::new(Limits { planes: 5, ..LIMITS });
        let ids = [(); 3].map(|()| schedule.ask(SHARED, Sharing::Alone));
        for (index, id) in ids.into_iter().enumerate() {
            assert_eq!(running(&mut schedule, &ids), [index]);
            assert_eq!(schedule.planes, SHARED.planes);
            schedule.retire(SHARED);
            schedule.done(id);
            assert_eq!(running(&mut schedule, &ids), [0; 0], "there is no room for a second one");
            schedule.release_planes(SHARED);
        }
        assert_eq!(schedule.planes, 0);
    }

    #[test]
    fn a_test_that_waits_no_more_does_not_start() {
        let mut schedule = Schedule::new(LIMITS);
        let ids = [SHARED, SHARED].map(|place| schedule.ask(place, Sharing::Alone));
        assert_eq!(running(&mut schedule, &ids), [0]);
        assert!(schedule.withdraw(ids[1]) && !schedule.withdraw(ids[1]));
        assert!(!schedule.withdraw(ids[0]), "it runs");
        schedule.done(ids[0]);
        assert_eq!(running(&mut schedule, &ids), [0; 0]);
        assert!(schedule.take_unused(SHARED));
    }

    #[test]
    fn what_is_larger_than_the_machine_carries_runs_alone() {
        let mut schedule = Schedule::new(Limits { planes: 2, ..LIMITS });
        let ids = [SHARED, SMALL].map(|place| schedule.ask(place, Sharing::Beside));
        let first = running(&mut schedule, &ids);
        assert_eq!(first.len(), 1);
        let place = [SHARED, SMALL][first[0]];
        schedule.done(ids[first[0]]);
        schedule.retire(place);
        schedule.release_planes(place);
        assert_eq!(running(&mut schedule, &ids), [1 - first[0]]);
    }
}
