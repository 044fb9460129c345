//! The daemons of a ClusterSet as kubelets run them: what ends is started again. The leader and a member have two replicas. Links of each
//! daemon can be out of order.
//!
//! | module | holds |
//! |---|---|
//! | `processes` | programs of this machine |
//! | `tasks` | simulated ones |

mod processes;
mod tasks;

use std::time::Duration;

use fleet::Component;
use kit::planted::{Defect, VARIABLE};
use sim::net::Rates;

use self::{processes::Processes, tasks::Tasks};
use super::places;
use crate::{daemon::LEADER, disturbed::Side, faults::Fault, fixture::World, world::Ground};

/// What a daemon is in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Leader,
    /// The member in the leader's cluster.
    Beside,
    East,
    West,
    North,
    South,
}

impl Role {
    const ALL: [Self; 6] = [Self::Leader, Self::Beside, Self::East, Self::West, Self::North, Self::South];

    /// The daemons of these clusters.
    pub(crate) fn of(clusters: &[&str]) -> Vec<Self> {
        Self::ALL.into_iter().filter(|role| clusters.contains(&role.cluster())).collect()
    }

    /// The cluster in which it runs.
    pub(crate) fn cluster(self) -> &'static str {
        match self {
            Self::Leader | Self::Beside => places::LEADER,
            Self::East => "east",
            Self::West => "west",
            Self::North => "north",
            Self::South => "south",
        }
    }

    /// The name of its daemon in a world.
    pub fn daemon(self) -> &'static str {
        match self {
            Self::Leader => LEADER,
            Self::Beside => "freeport-member-leader",
            Self::East => "freeport-member-east",
            Self::West => "freeport-member-west",
            Self::North => "freeport-member-north",
            Self::South => "freeport-member-south",
        }
    }

    pub fn is_member(self) -> bool {
        self != Self::Leader
    }

    pub fn replicas(self) -> usize {
        match self {
            Self::Leader | Self::East => 2,
            Self::Beside | Self::West | Self::North | Self::South => 1,
        }
    }

    /// What a replica says it is; `None` where there is but one.
    pub fn replica(self, number: usize) -> Option<String> {
        (self.replicas() > 1).then(|| format!("{self:?}-{number}").to_lowercase())
    }
}

/// The daemons, in place of those that the world has. [`free`](Self::free) gives those their places back.
pub enum Crew {
    Processes(Processes),
    Tasks(Tasks),
}

impl Crew {
    /// Starts them on links that are in order, and waits until all are there.
    pub async fn of(world: &'static World) -> Self {
        match &world.ground {
            Ground::Real(_) => Self::Processes(Processes::of(world).await),
            Ground::Simulated(_) => Self::Tasks(Tasks::of(world).await),
        }
    }

    /// Plants a defect in all of them. Processes start again for that.
    pub async fn plant(&mut self, defect: Defect) {
        match self {
            Self::Processes(crew) => crew.start_with(VARIABLE, defect.name()).await,
            Self::Tasks(_) => kit::planted::plant(Some(defect)),
        }
    }

    /// So much goes wrong on all links that are simulated, until they are mended.
    pub(crate) fn break_with(&self, rates: Rates) {
        match self {
            Self::Processes(_) => {}
            Self::Tasks(crew) => crew.break_with(rates),
        }
    }

    /// Starts again what has ended, for ever.
    pub(crate) async fn run(&self) {
        match self {
            Self::Processes(crew) => crew.run().await,
            Self::Tasks(crew) => crew.run().await,
        }
    }

    /// SIGTERM.
    pub(crate) async fn stop(&self, role: Role, replica: usize) {
        match self {
            Self::Processes(crew) => crew.stop(role, replica).await,
            Self::Tasks(crew) => crew.stop(role, replica).await,
        }
    }

    /// SIGKILL; it stays away for so long.
    pub(crate) async fn kill(&self, role: Role, replica: usize, away: Duration) {
        match self {
            Self::Processes(crew) => crew.kill(role, replica, away).await,
            Self::Tasks(crew) => crew.kill(role, replica, away).await,
        }
    }

    /// SIGSTOP or SIGCONT, if it runs.
    pub(crate) async fn pause(&self, role: Role, replica: usize, is_paused: bool) {
        match self {
            Self::Processes(crew) => crew.pause(role, replica, is_paused).await,
            Self::Tasks(crew) => crew.pause(role, replica, is_paused),
        }
    }

    /// The same to all its replicas.
    pub(crate) async fn pause_all(&self, role: Role, is_paused: bool) {
        for replica in 0..role.replicas() {
            self.pause(role, replica, is_paused).await;
        }
    }

    /// From now on this is wrong with the link, or nothing.
    pub(crate) fn set(&self, role: Role, side: Side, fault: Option<Fault>) {
        match self {
            Self::Processes(crew) => crew.set(role, side, fault),
            Self::Tasks(crew) => crew.set(role, side, fault),
        }
    }

    /// Kills a part of a control plane, and starts it again.
    pub(crate) async fn without(&self, cluster: &str, component: Component, away: Duration) {
        match self {
            Self::Processes(crew) => crew.without(cluster, component, away).await,
            Self::Tasks(crew) => crew.without(cluster, away).await,
        }
    }

    /// All links are in order, and nobody is paused or away.
    pub(crate) async fn mend(&self) {
        match self {
            Self::Processes(crew) => crew.nobody_is_away(),
            Self::Tasks(crew) => {
                crew.nobody_is_away();
                crew.break_with(Rates::default());
            }
        }
        for role in self.roles() {
            self.set(role, Side::Local, None);
            self.set(role, Side::Leader, None);
            self.pause_all(role, false).await;
        }
    }

    fn roles(&self) -> Vec<Role> {
        match self {
            Self::Processes(crew) => crew.roles(),
            Self::Tasks(crew) => crew.roles(),
        }
    }

    /// The last lines of their logs.
    pub fn logs(&self) -> String {
        match self {
            Self::Processes(crew) => crew.logs(),
            Self::Tasks(crew) => crew.logs(),
        }
    }

    /// Ends them; the daemons that the world has run again when this is done.
    pub async fn free(self) {
        self.mend().await;
        match self {
            Self::Processes(crew) => crew.free().await,
            Self::Tasks(crew) => crew.free().await,
        }
    }
}
