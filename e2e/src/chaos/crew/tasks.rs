//! The daemons as tasks of a simulation.
//!
//! A task cannot be paused: one that shall be reaches no API server for that time, and its clock runs on.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use sim::net;

use super::Role;
use crate::{daemon::End, disturbed::Side, faults::Fault, fixture::World, waiting::eventually};

/// How often it is looked whether all run.
const LOOK: Duration = Duration::from_millis(500);

/// See [`Crew`](super::Crew).
pub struct Tasks {
    world: &'static World,
    /// Processes that are away for a while.
    away: Mutex<BTreeSet<String>>,
}

/// Name of the process of a replica.
fn process(role: Role, replica: usize) -> String {
    match role.replica(replica) {
        Some(replica) => format!("{}-{replica}", role.daemon()),
        None => role.daemon().to_owned(),
    }
}

/// The name of the cluster whose API server a link of a daemon leads to.
fn cluster(role: Role, side: Side) -> &'static str {
    match side {
        Side::Local => role.cluster(),
        Side::Leader => Role::Leader.cluster(),
    }
}

impl Tasks {
    pub(super) async fn of(world: &'static World) -> Self {
        let crew = Self { world, away: Mutex::default() };
        join_all(crew.roles().iter().map(|role| world.end(role.daemon(), End::Stop))).await;
        crew.ensure();
        for role in crew.roles() {
            eventually(&format!("{role:?} is there"), || async {
                crew.ensure();
                let mut present = Vec::new();
                for replica in 0..role.replicas() {
                    present.push(world.metrics(&process(role, replica)).await?.sum("freeport_present"));
                }
                if present.iter().any(|present| *present > 0.0) {
                    Ok(())
                } else {
                    Err(format!("{present:?}"))
                }
            })
            .await;
        }
        crew
    }

    pub(super) fn roles(&self) -> Vec<Role> {
        Role::of(&self.world.sim().names().collect::<Vec<_>>())
    }

    /// All replicas of all roles.
    fn replicas(&self) -> impl Iterator<Item = (Role, usize)> {
        let roles = self.roles().into_iter();
        roles.flat_map(|role| (0..role.replicas()).map(move |replica| (role, replica)))
    }

    pub(super) async fn run(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.ensure();
        }
    }

    fn ensure(&self) {
        let sim = self.world.sim();
        for (role, replica) in self.replicas() {
            let name = process(role, replica);
            if self.away().contains(&name) || sim.is_running(&name) {
                continue;
            }
            match role.replica(replica) {
                Some(replica) => sim.start_replica(role.daemon(), &replica),
                None => sim.start(role.daemon()),
            }
        }
    }

    pub(super) async fn stop(&self, role: Role, replica: usize) {
        self.world.sim().stop(&process(role, replica)).await;
    }

    pub(super) async fn kill(&self, role: Role, replica: usize, away: Duration) {
        let name = process(role, replica);
        self.away().insert(name.clone());
        self.world.sim().kill(&name);
        tokio::time::sleep(away).await;
        self.away().remove(&name);
    }

    pub(super) fn pause(&self, role: Role, replica: usize, is_paused: bool) {
        let fault = is_paused.then_some(net::Fault::Silent);
        for cluster in self.world.sim().names() {
            self.world.sim().net.set(&process(role, replica), cluster, fault);
        }
    }

    pub(super) fn set(&self, role: Role, side: Side, fault: Option<Fault>) {
        for replica in 0..role.replicas() {
            let process = process(role, replica);
            self.world.sim().net.set(&process, cluster(role, side), fault.map(Fault::of_network));
        }
    }

    pub(super) async fn without(&self, cluster: &str, away: Duration) {
        let net = &self.world.sim().net;
        net.set_down(cluster, true);
        tokio::time::sleep(away).await;
        net.set_down(cluster, false);
    }

    pub(super) fn break_with(&self, rates: net::Rates) {
        self.world.sim().net.break_with(rates);
    }

    pub(super) fn nobody_is_away(&self) {
        self.away().clear();
    }

    pub(super) fn logs(&self) -> String {
        self.world.log_tail("")
    }

    pub(super) async fn free(self) {
        for (role, replica) in self.replicas() {
            self.world.sim().kill(&process(role, replica));
        }
        for role in self.roles() {
            self.world.start(role.daemon()).await;
        }
    }

    fn away(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
