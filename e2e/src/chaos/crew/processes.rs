//! The daemons as programs of this machine, on links by way of proxies.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleet::{
    Component, Signal,
    cluster_set::{Daemon, Ensured},
    ports,
};
use futures::future::join_all;

use super::Role;
use crate::{
    daemon::End,
    detour::detour,
    disturbed::Side,
    faults::{Fault, Link},
    fixture::World,
    metrics::Metrics,
    waiting::eventually,
};

/// How often it is looked whether all run.
const LOOK: Duration = Duration::from_millis(500);

struct Links {
    local: Link,
    leader: Option<Link>,
}

/// See [`Crew`](super::Crew).
pub struct Processes {
    world: &'static World,
    links: BTreeMap<Role, Links>,
    replicas: BTreeMap<Role, Vec<Daemon>>,
    /// Processes that are away for a while.
    away: Mutex<BTreeSet<String>>,
}

impl Processes {
    /// Starts them on links that are in order, and waits until all are there.
    pub(super) async fn of(world: &'static World) -> Self {
        let mut crew =
            Self { world, links: BTreeMap::new(), replicas: BTreeMap::new(), away: Mutex::default() };
        let clusters: Vec<_> = world.clusters().iter().map(|cluster| cluster.name.as_str()).collect();
        let roles = Role::of(&clusters);
        join_all(roles.iter().map(|role| world.end(role.daemon(), End::Stop))).await;
        for &role in &roles {
            crew.take_on(role).await;
        }
        crew.ensure().await;
        for role in roles {
            crew.is_there(role).await;
        }
        crew
    }

    /// Makes its links and plans its replicas.
    async fn take_on(&mut self, role: Role) {
        let world = self.world;
        let mut daemon = world.daemon(role.daemon()).clone();
        let cluster = world.real().fleet.cluster(&daemon.cluster).unwrap();
        let local = Link::to(cluster).await;
        detour(&mut daemon, cluster, &local.server);
        let mut leader = None;
        if role.is_member() {
            let link = Link::to(world.real().fleet.cluster("leader").unwrap()).await;
            world.leader_is_at(&daemon.cluster, &link.server).await;
            leader = Some(link);
        }
        self.links.insert(role, Links { local, leader });
        let replica = |number: usize| match role.replica(number) {
            Some(replica) => as_replica(&daemon, &replica),
            None => daemon.clone(),
        };
        self.replicas.insert(role, (0..role.replicas()).map(replica).collect());
    }

    /// Starts all of them again with this in their environment.
    pub(super) async fn start_with(&mut self, name: &str, value: &str) {
        for daemon in self.replicas.values_mut().flatten() {
            daemon.spec.env.insert(name.to_owned(), value.to_owned());
        }
        self.ensure().await;
    }

    /// One of them is active and present. A replica that lost its Lease to another one ends meanwhile.
    async fn is_there(&self, role: Role) {
        eventually(&format!("{role:?} is there"), || async {
            self.ensure().await;
            let mut seen = Vec::new();
            for daemon in &self.replicas[&role] {
                let metrics = Metrics::read(daemon.listen).await.map_err(|error| error.to_string())?;
                seen.push(metrics.sum("freeport_present"));
            }
            if seen.iter().any(|present| *present > 0.0) { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await;
    }

    /// Starts again what has ended, for ever.
    pub(super) async fn run(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.ensure().await;
        }
    }

    async fn ensure(&self) {
        for daemon in self.replicas.values().flatten() {
            if self.away().contains(&daemon.spec.name) {
                continue;
            }
            if daemon.ensure(&self.world.real().fleet).await.unwrap() != Ensured::Running {
                crate::note!("{} is started", daemon.spec.name);
            }
        }
    }

    /// SIGTERM.
    pub(super) async fn stop(&self, role: Role, replica: usize) {
        self.process(role, replica).await.stop().await.unwrap();
    }

    /// SIGKILL; it stays away for so long.
    pub(super) async fn kill(&self, role: Role, replica: usize, away: Duration) {
        let name = self.replicas[&role][replica].spec.name.clone();
        self.away().insert(name.clone());
        self.process(role, replica).await.kill().await.unwrap();
        tokio::time::sleep(away).await;
        self.away().remove(&name);
    }

    /// SIGSTOP or SIGCONT, if it runs.
    pub(super) async fn pause(&self, role: Role, replica: usize, is_paused: bool) {
        let signal = if is_paused { Signal::Pause } else { Signal::Resume };
        // One that has just ended is started again.
        drop(self.process(role, replica).await.signal(signal).await);
    }

    async fn process(&self, role: Role, replica: usize) -> fleet::Process {
        let name = &self.replicas[&role][replica].spec.name;
        self.world.real().fleet.process(name).await.unwrap().unwrap()
    }

    /// From now on this is wrong with the link, or nothing.
    pub(super) fn set(&self, role: Role, side: Side, fault: Option<Fault>) {
        let links = &self.links[&role];
        let link = match side {
            Side::Local => Some(&links.local),
            Side::Leader => links.leader.as_ref(),
        };
        if let Some(link) = link {
            link.set(fault);
        }
    }

    pub(super) fn roles(&self) -> Vec<Role> {
        self.replicas.keys().copied().collect()
    }

    /// What is away is started again.
    pub(super) fn nobody_is_away(&self) {
        self.away().clear();
    }

    pub(super) async fn without(&self, cluster: &str, component: Component, away: Duration) {
        self.world.without(cluster, component, away).await;
    }

    /// The last lines of their logs.
    pub(super) fn logs(&self) -> String {
        let tail =
            |daemon: &Daemon| format!("{}:\n{}", daemon.spec.name, self.world.log_tail(&daemon.spec.name));
        self.replicas.values().flatten().map(tail).collect::<Vec<_>>().join("\n")
    }

    /// Ends them; the daemons that the world has run again when this is done.
    pub(super) async fn free(self) {
        for role in self.roles() {
            for replica in 0..role.replicas() {
                self.process(role, replica).await.kill().await.unwrap();
            }
            if role.is_member() {
                let server = self.world.real().fleet.cluster("leader").unwrap().server();
                self.world.leader_is_at(&self.replicas[&role][0].cluster, &server).await;
            }
        }
        for role in self.roles() {
            self.world.start(role.daemon()).await;
        }
    }

    fn away(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The daemon as one of several.
fn as_replica(daemon: &Daemon, replica: &str) -> Daemon {
    let (mut daemon, listen) = (daemon.clone(), ports::free_address().unwrap());
    let at = daemon.spec.args.iter().position(|arg| arg == "--listen").unwrap() + 1;
    daemon.spec.args[at] = listen.to_string();
    daemon.spec.name = format!("{}-{replica}", daemon.spec.name);
    daemon.spec = daemon.spec.env("FREEPORT_REPLICA", replica);
    Daemon { listen, ..daemon }
}
