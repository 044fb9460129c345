//! What goes wrong.

use std::time::Duration;

use super::{millis, times};
use sim::random::Random;

use crate::{
    chaos::{
        crew::Role,
        places::{LEADER, Places},
    },
    disturbed::Side,
    faults::Fault,
};

/// Milliseconds between two faults of a lane.
const OF_PROCESSES: (u64, u64) = (2000, 7000);
const OF_LINKS: (u64, u64) = (3000, 9000);
const OF_PLANES: (u64, u64) = (15_000, 35_000);
/// Milliseconds of the age of a backup.
const OF_BACKUPS: (u64, u64) = (1000, 20_000);
/// When records are lost for the first time.
const FIRST_LOSS: Duration = Duration::from_secs(5);

/// What goes wrong for a while.
#[derive(Clone, Debug, PartialEq)]
pub enum Disorder {
    /// SIGTERM to a replica, which its kubelet starts again.
    Stop { role: Role, replica: usize },
    /// SIGKILL, and it is away for so long.
    Kill { role: Role, replica: usize, away: Duration },
    /// SIGSTOP, and SIGCONT after so long.
    Pause { role: Role, replica: usize, lasts: Duration },
    /// A daemon's link to its own API server or the leader's.
    Link { role: Role, side: Side, fault: Fault, lasts: Duration },
    /// A cluster's kube-apiserver is killed, and away for so long.
    ApiServer { cluster: &'static str, away: Duration },
    /// A cluster's etcd.
    Etcd { cluster: &'static str, away: Duration },
    /// A cluster becomes what it was so long before.
    Restored { cluster: &'static str, age: Duration },
    /// Somebody deletes all records of the run in the Common Area, while the leader and a member are paused.
    RecordsLost { paused: Role, lasts: Duration },
}

pub(super) fn of_processes(
    random: &mut Random,
    lasts: Duration,
    places: &Places,
) -> Vec<(Duration, Disorder)> {
    let roles = Role::of(&places.clusters());
    let disorder = |random: &mut Random| {
        let role = *random.pick(&roles);
        let replica = random.below(role.replicas());
        match random.below(5) {
            0 | 1 => Disorder::Stop { role, replica },
            2 | 3 => Disorder::Kill { role, replica, away: millis(random, (0, 4000)) },
            // Others take the Lease of a replica after ten seconds.
            _ => Disorder::Pause { role, replica, lasts: millis(random, (500, 14_000)) },
        }
    };
    times(random, lasts, OF_PROCESSES).into_iter().map(|at| (at, disorder(random))).collect()
}

pub(super) fn of_links(random: &mut Random, lasts: Duration, places: &Places) -> Vec<(Duration, Disorder)> {
    let roles = Role::of(&places.clusters());
    let disorder = |random: &mut Random| {
        let role = *random.pick(&roles);
        let side = if role.is_member() {
            *random.pick(&[Side::Local, Side::Leader, Side::Leader])
        } else {
            Side::Local
        };
        let fault = *random.pick(&Fault::ALL);
        Disorder::Link { role, side, fault, lasts: millis(random, (500, 6000)) }
    };
    times(random, lasts, OF_LINKS).into_iter().map(|at| (at, disorder(random))).collect()
}

pub(super) fn of_planes(random: &mut Random, lasts: Duration, places: &Places) -> Vec<(Duration, Disorder)> {
    let mut disorders = vec![(FIRST_LOSS.min(lasts / 4), lost(random))];
    let clusters = places.clusters();
    let disorder = |random: &mut Random| {
        let cluster = *random.pick(&clusters);
        match random.below(5) {
            0 => Disorder::ApiServer { cluster, away: millis(random, (0, 5000)) },
            1 => Disorder::Etcd { cluster, away: millis(random, (0, 4000)) },
            2 => Disorder::Restored { cluster: LEADER, age: millis(random, OF_BACKUPS) },
            3 => {
                let cluster = *random.pick(places.exporters());
                Disorder::Restored { cluster, age: millis(random, OF_BACKUPS) }
            }
            _ => lost(random),
        }
    };
    disorders.extend(times(random, lasts, OF_PLANES).into_iter().map(|at| (at, disorder(random))));
    disorders
}

fn lost(random: &mut Random) -> Disorder {
    // No longer than it takes another replica to become active: what is lost is put back by nobody meanwhile.
    Disorder::RecordsLost {
        paused: *random.pick(&[Role::East, Role::East, Role::West]),
        lasts: millis(random, (2000, 6000)),
    }
}
