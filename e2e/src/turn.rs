//! Whose turn it is: tests wait here until the [`Schedule`] lets them start.

use std::{
    sync::{LazyLock, Mutex, PoisonError},
    thread::available_parallelism,
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    harness::{budget, record},
    schedule::{Id, Limits, Place, Schedule, Sharing},
};

/// Control planes of the largest fixture.
const LARGEST: usize = 8;

/// Nobody starts before all tests of the program have asked, or the first ones would choose.
const ALL_ASK: Duration = Duration::from_millis(300);

struct Turns {
    schedule: Mutex<Schedule>,
    changed: Notify,
    opens: Instant,
}

static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns {
    schedule: Mutex::new(Schedule::new(limits())),
    changed: Notify::new(),
    opens: Instant::now() + ALL_ASK,
});

/// What a machine with so many cores and so much memory carries; docs/testing.md has what was measured. A control plane takes up to 1 GiB.
fn limits() -> Limits {
    let cores = available_parallelism().map_or(2, usize::from);
    let planes = (cores * 6).min(available_gib().unwrap_or(usize::MAX)).max(LARGEST);
    let tests = budget::at_once().unwrap_or(cores * 6);
    Limits { planes, tests, tests_per_place: cores * 2 }
}

/// Memory that programs can have, in GiB.
fn available_gib() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib >> 20)
}

fn change<T>(how: impl FnOnce(&mut Schedule) -> T) -> T {
    let result = how(&mut TURNS.schedule.lock().unwrap_or_else(PoisonError::into_inner));
    TURNS.changed.notify_waiters();
    result
}

fn look<T>(what: impl FnOnce(&Schedule) -> T) -> T {
    what(&TURNS.schedule.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A test's turn, which ends when it is dropped.
pub struct Turn {
    id: Id,
    /// What ends with it.
    own: Option<Place>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Before the test is done: the next one would take it for one that it can use.
        let _retired = self.own.map(retire);
        change(|schedule| schedule.done(self.id));
    }
}

/// One of a place that no test gets any more. Its processes have ended when this is dropped.
#[must_use]
pub struct Retired(Place);

impl Drop for Retired {
    fn drop(&mut self) {
        change(|schedule| schedule.release_planes(self.0));
    }
}

/// Waits for the turn of a test that makes its own, and ends it before its turn ends.
pub async fn turn_for_own(place: Place) -> Turn {
    let mut turn = turn(place, Sharing::Alone).await;
    turn.own = Some(place);
    turn
}

/// Waits for the turn of a test, which fails if the time of the program ends first.
pub async fn turn(place: Place, sharing: Sharing) -> Turn {
    let id = change(|schedule| schedule.ask(place, sharing));
    sleep_until(TURNS.opens).await;
    change(Schedule::open);
    loop {
        let changed = TURNS.changed.notified();
        if look(|schedule| schedule.runs(id)) {
            break;
        }
        let is_late = timeout_at(budget::deadline(), changed).await.is_err();
        if is_late && change(|schedule| schedule.withdraw(id)) {
            panic!("not started: {}", budget::spent());
        }
    }
    record::turn_begins();
    Turn { id, own: None }
}

/// Retires one of a place that no test has and none waits for, if there is such a one: who asks ends it.
pub fn take_unused(place: Place) -> Option<Retired> {
    change(|schedule| schedule.take_unused(place)).then(|| Retired(place))
}

/// Retires the one of a place that a test has: who asks ends it.
pub fn retire(place: Place) -> Retired {
    change(|schedule| schedule.retire(place));
    Retired(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_turn_of_a_test_that_makes_its_own_lasts_until_it_is_dropped() {
        let place = Place { name: "own", planes: 1, copies: 1 };
        let first = turn_for_own(place).await;
        let id = first.id;
        assert!(look(|schedule| schedule.runs(id)));
        let second = turn_for_own(place);
        let waits = tokio::time::timeout(Duration::from_millis(50), second).await;
        assert!(waits.is_err(), "one at a time");
        drop(first);
        assert!(!look(|schedule| schedule.runs(id)));
    }

    #[test]
    fn the_memory_of_this_machine_is_known() {
        assert!(available_gib().is_some());
    }
}
