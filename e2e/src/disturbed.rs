//! A daemon whose links to API servers are out of order when a test wants it.

use api::label;
use fleet::cluster_set::Daemon;

use crate::{
    daemon::{End, LEADER},
    detour::detour,
    faults::{Fault, Link},
    fixture::World,
    world::Ground,
};

/// The daemon, in place of the one of the same name that the world has. [`free`](Self::free) gives that one its place back.
pub struct Disturbed {
    world: &'static World,
    name: String,
    /// Programs have links of their own.
    detour: Option<Detour>,
}

struct Detour {
    daemon: Daemon,
    /// To its own API server.
    local: Link,
    /// A member's to the leader's.
    leader: Option<Link>,
}

/// Which link of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Local,
    Leader,
}

impl Disturbed {
    /// Starts it with links that are in order, in place of the daemon that runs, and waits until it is present.
    pub async fn of(world: &'static World, name: &str) -> Self {
        let detour = match world.ground {
            Ground::Real(_) => Some(Detour::start(world, name).await),
            Ground::Simulated(_) => None,
        };
        world.is_there(name).await;
        Self { world, name: name.to_owned(), detour }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster in which it runs.
    pub fn cluster(&self) -> &str {
        let of = |program: &str| self.name.strip_prefix(program)?.strip_prefix('-');
        of(label::LEADER).or_else(|| of(label::MEMBER)).unwrap()
    }

    /// From now on this is wrong with that link; nothing else, or nothing.
    pub fn set(&self, side: Side, fault: Option<Fault>) {
        match &self.detour {
            Some(detour) => detour.set(side, fault),
            None => {
                let server = match side {
                    Side::Local => self.cluster(),
                    Side::Leader => self.world.sim().leader(),
                };
                self.world.sim().net.set(&self.name, server, fault.map(Fault::of_network));
            }
        }
    }

    /// Kills it, and starts it, whatever it reaches then.
    pub async fn restart(&self) {
        self.world.end(self.name(), End::Crash).await;
        match &self.detour {
            Some(detour) => drop(detour.daemon.start(&self.world.real().fleet).await.unwrap()),
            None => self.world.sim().start(self.name()),
        }
    }

    /// Ends it; the daemon that the world has runs again when this is done.
    pub async fn free(self) {
        let Some(detour) = &self.detour else { return };
        self.world.end(self.name(), End::Crash).await;
        if detour.leader.is_some() {
            let server = self.world.real().fleet.cluster("leader").unwrap().server();
            self.world.leader_is_at(&detour.daemon.cluster, &server).await;
        }
        self.world.start(self.name()).await;
    }
}

impl Detour {
    async fn start(world: &'static World, name: &str) -> Self {
        let mut daemon = world.daemon(name).clone();
        let fleet = &world.real().fleet;
        let cluster = fleet.cluster(&daemon.cluster).unwrap();
        let local = Link::to(cluster).await;
        detour(&mut daemon, cluster, &local.server);
        world.end(name, End::Stop).await;
        let mut leader = None;
        if name != LEADER {
            let link = Link::to(fleet.cluster("leader").unwrap()).await;
            world.leader_is_at(&daemon.cluster, &link.server).await;
            leader = Some(link);
        }
        daemon.start(fleet).await.unwrap();
        Self { daemon, local, leader }
    }

    fn set(&self, side: Side, fault: Option<Fault>) {
        let link = match side {
            Side::Local => Some(&self.local),
            Side::Leader => self.leader.as_ref(),
        };
        if let Some(link) = link {
            link.set(fault);
        }
    }
}
