//! A member whose links to the two API servers are out of order when a test wants it.

use fleet::cluster_set::Daemon;

use crate::{
    daemon::End,
    detour::detour,
    faults::{Fault, Link},
    fixture::World,
};

/// The member, in place of the one of the same name that the world has. [`free`](Self::free) gives that one its place back.
pub struct Disturbed {
    world: &'static World,
    daemon: Daemon,
    /// To its own API server.
    local: Link,
    /// To the leader's.
    leader: Link,
}

/// Which link of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Local,
    Leader,
}

impl Disturbed {
    /// Starts it with links that are in order, in place of the daemon that runs, and waits until it is present.
    pub async fn of(world: &'static World, name: &str) -> Self {
        let mut daemon = world.daemon(name).clone();
        let cluster = world.real().fleet.cluster(&daemon.cluster).unwrap();
        let local = Link::to(cluster).await;
        let leader = Link::to(world.real().fleet.cluster("leader").unwrap()).await;
        detour(&mut daemon, cluster, &local.server);
        world.end(name, End::Stop).await;
        world.leader_is_at(&daemon.cluster, &leader.server).await;
        let disturbed = Self { world, daemon, local, leader };
        disturbed.daemon.start(&world.real().fleet).await.unwrap();
        world.is_there(disturbed.name()).await;
        disturbed
    }

    pub fn name(&self) -> &str {
        &self.daemon.spec.name
    }

    pub fn cluster(&self) -> &str {
        &self.daemon.cluster
    }

    /// From now on this is wrong with that link; nothing else, or nothing.
    pub fn set(&self, side: Side, fault: Option<Fault>) {
        match side {
            Side::Local => self.local.set(fault),
            Side::Leader => self.leader.set(fault),
        }
    }

    /// Kills it, and starts it, whatever it reaches then.
    pub async fn restart(&self) {
        self.world.end(self.name(), End::Crash).await;
        self.daemon.start(&self.world.real().fleet).await.unwrap();
    }

    /// Ends it; the daemon that the world has runs again when this is done.
    pub async fn free(self) {
        self.world.end(self.name(), End::Crash).await;
        let server = self.world.real().fleet.cluster("leader").unwrap().server();
        self.world.leader_is_at(self.cluster(), &server).await;
        self.world.start(self.name()).await;
    }
}
