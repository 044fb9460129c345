//! Whose turn it is: tests wait here until the [`Schedule`] lets them start.

use std::{
    sync::{LazyLock, Mutex, PoisonError},
    thread::available_parallelism,
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    harness::{budget, record},
    schedule::{How, Id, Limits, Place, Schedule},
};

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

/// What a machine with so many cores carries; docs/testing.md has what was measured.
fn limits() -> Limits {
    let cores = available_parallelism().map_or(2, usize::from);
    Limits { planes: cores * 6, tests: cores * 6, of_one: cores * 2 }
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
        change(|schedule| {
            schedule.done(self.id);
            if let Some(place) = self.own {
                schedule.lost(place);
                schedule.ended(place);
            }
        });
    }
}

/// Waits for the turn of a test that makes its own, and ends it before its turn ends.
pub async fn turn_for_own(place: Place) -> Turn {
    let mut turn = turn(place, How::Alone).await;
    turn.own = Some(place);
    turn
}

/// Waits for the turn of a test.
pub async fn turn(place: Place, how: How) -> Turn {
    let turn = Turn { id: change(|schedule| schedule.ask(place, how)), own: None };
    tokio::time::sleep_until(TURNS.opens).await;
    change(Schedule::open);
    loop {
        let changed = TURNS.changed.notified();
        if look(|schedule| schedule.runs(turn.id)) {
            break;
        }
        changed.await;
    }
    budget::ensure();
    record::turn_begins();
    turn
}

/// Whether there is one of a place that nobody needs: who asks ends it.
pub fn spare(place: Place) -> bool {
    change(|schedule| schedule.spare(place))
}

/// One of a place is used by nobody any more.
pub fn lost(place: Place) {
    change(|schedule| schedule.lost(place));
}

/// The processes of one that is spare or lost have ended.
pub fn ended(place: Place) {
    change(|schedule| schedule.ended(place));
}
