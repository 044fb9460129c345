//! A cluster is restored from a backup, or the leader's is replaced by an empty one.

use std::{fs, path::Path, time::Duration};

use fleet::{Cluster, Component, cluster_set::Composition};

use crate::{
    fixture::World,
    world::{Ground, Simulated},
};

/// A copy of what a cluster held.
pub struct Backup {
    cluster: String,
    data: Copied,
}

enum Copied {
    /// Files of etcd.
    Files(tempfile::TempDir),
    Simulated(sim::api::Backup),
}

/// How long it takes to copy what a simulated cluster holds: Leases are renewed meanwhile.
const COPYING: Duration = Duration::from_secs(5);

impl World {
    /// Copies what a cluster holds. Its API server is away meanwhile.
    pub async fn back_up(&self, cluster: &str) -> Backup {
        let name = cluster.to_owned();
        if let Ground::Simulated(Simulated { world, .. }) = &self.ground {
            let data = Copied::Simulated(world.server(cluster).back_up());
            tokio::time::sleep(COPYING).await;
            return Backup { cluster: name, data };
        }
        let data = tempfile::tempdir().unwrap();
        let cluster = self.real().fleet.cluster(cluster).unwrap();
        down(cluster).await;
        copy(&cluster.dir().join("etcd"), data.path());
        up_again(cluster).await;
        Backup { cluster: name, data: Copied::Files(data) }
    }

    /// Puts the cluster back to what it was.
    pub async fn restore(&self, backup: &Backup) {
        let copied = match (&self.ground, &backup.data) {
            (Ground::Simulated(Simulated { world, .. }), Copied::Simulated(data)) => {
                return world.server(&backup.cluster).restore(data);
            }
            (Ground::Real(_), Copied::Files(data)) => data.path(),
            _ => panic!("a backup of another ground"),
        };
        let cluster = self.real().fleet.cluster(&backup.cluster).unwrap();
        down(cluster).await;
        let data = cluster.dir().join("etcd");
        fs::remove_dir_all(&data).unwrap();
        copy(copied, &data);
        up_again(cluster).await;
    }

    /// Replaces the leader's cluster by an empty one under the same address and authority.
    pub async fn replace_leader(&self) {
        if let Ground::Simulated(Simulated { world, .. }) = &self.ground {
            return world.replace(world.leader());
        }
        let cluster = self.real().fleet.cluster("leader").unwrap();
        down(cluster).await;
        let data = cluster.dir().join("etcd");
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir(&data).unwrap();
        up_again(cluster).await;
    }

    /// Runs `freeport init` and `join` again, and starts the daemons that run and have got another credential.
    pub async fn set_up_again(&self) {
        if let Ground::Simulated(Simulated { world, .. }) = &self.ground {
            return world.install_again().await;
        }
        for set in &self.real().sets {
            self.set_up_set_again(set).await;
        }
    }

    async fn set_up_set_again(&self, set: &Composition) {
        for daemon in self.set_up(set).await {
            let process = self.real().fleet.process(&daemon.spec.name).await.unwrap();
            let runs = match process {
                Some(process) => process.is_running().await.unwrap(),
                None => false,
            };
            if runs {
                daemon.ensure(&self.real().fleet).await.unwrap();
            }
        }
    }
}

async fn down(cluster: &Cluster) {
    // It may have ended by itself, see `World::mend`.
    drop(cluster.kill(Component::ControllerManager).await);
    cluster.kill(Component::ApiServer).await.unwrap();
    cluster.stop(Component::Etcd).await.unwrap();
}

async fn up_again(cluster: &Cluster) {
    for component in [Component::Etcd, Component::ApiServer, Component::ControllerManager] {
        cluster.start(component).await.unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
