//! A daemon that reaches its API servers by way of proxies, and is killed there at writes that a test chooses.

use std::sync::Arc;

use fleet::cluster_set::Daemon;

use crate::{
    daemon::End,
    detour::detour,
    fixture::World,
    life::{Fall, Life},
    proxy::Proxy,
    trap::Trap,
    waiting::eventually,
};

/// Connections of a member that starts to the leader's API server, before it answers.
const AWAY: usize = 2;

/// The daemon, in place of the one of the same name that the world has. [`free`](Self::free) gives that one its place back.
pub struct Victim {
    world: &'static World,
    daemon: Daemon,
    life: Arc<Life>,
    /// In front of its own API server.
    _local: Proxy,
    /// In front of the leader's, for a member.
    leader: Option<Proxy>,
}

impl Victim {
    /// Starts it behind its proxies in place of the daemon that runs, and waits until it is present.
    pub async fn of(world: &'static World, name: &str) -> Self {
        let life = Arc::new(Life::new(world, name));
        let mut daemon = world.daemon(name).clone();
        let cluster = world.real().fleet.cluster(&daemon.cluster).unwrap();
        let local = Proxy::of(cluster, life.clone()).await;
        detour(&mut daemon, cluster, &local.server);
        let leader = if daemon.is_member {
            Some(Proxy::of(world.real().fleet.cluster("leader").unwrap(), life.clone()).await)
        } else {
            None
        };
        let victim = Self { world, daemon, life, _local: local, leader };
        if let Some(proxy) = &victim.leader {
            world.leader_is_at(victim.cluster(), &proxy.server).await;
        }
        victim.start().await;
        victim
    }

    pub fn name(&self) -> &str {
        &self.daemon.spec.name
    }

    pub fn cluster(&self) -> &str {
        &self.daemon.cluster
    }

    /// Where a member finds the leader's API server.
    pub fn leader(&self) -> &str {
        &self.leader.as_ref().unwrap().server
    }

    /// Sets a trap, in place of another.
    pub fn set(&self, trap: Trap) {
        self.life.set(trap);
    }

    /// Takes the trap away; where it has killed, if it has.
    pub async fn disarm(&self) -> Option<Fall> {
        self.life.disarm().await
    }

    /// Waits until the trap has killed; where it did.
    pub async fn falls(&self) -> Fall {
        eventually("the trap kills", || async { self.fell().ok_or_else(|| "it lives".to_owned()) }).await
    }

    /// Where the trap has killed, if it has.
    pub fn fell(&self) -> Option<Fall> {
        self.life.fell()
    }

    /// Starts it. For a member the leader's API server is away at first.
    pub async fn launch(&self) {
        self.life.renew();
        if let Some(leader) = &self.leader {
            leader.refuse(AWAY);
        }
        self.daemon.start(&self.world.real().fleet).await.unwrap();
    }

    /// Takes the trap away, and starts it unless it runs.
    pub async fn ensure(&self) {
        if self.disarm().await.is_some() {
            self.life.renew();
        }
        self.daemon.ensure(&self.world.real().fleet).await.unwrap();
    }

    /// Starts it, and waits until it is present.
    pub async fn start(&self) {
        self.launch().await;
        self.world.is_there(self.name()).await;
    }

    /// Ends it; the daemon that the world has runs again when this is done.
    pub async fn free(self) {
        self.disarm().await;
        self.world.end(self.name(), End::Crash).await;
        if self.leader.is_some() {
            let server = self.world.real().fleet.cluster("leader").unwrap().server();
            self.world.leader_is_at(self.cluster(), &server).await;
        }
        self.world.start(self.name()).await;
    }
}
