//! The leader's cluster is restored from a backup, or replaced by an empty one.

use std::{fs, path::Path};

use fleet::{Component, cluster_set::Composition};

use crate::fixture::{SET, World};

/// A copy of what the leader's cluster held.
pub struct Backup(tempfile::TempDir);

impl World {
    /// Copies what the leader's cluster holds. Its API server is away meanwhile.
    pub async fn back_up(&self) -> Backup {
        let backup = Backup(tempfile::tempdir().unwrap());
        self.down().await;
        copy(&self.leader_cluster().dir().join("etcd"), backup.0.path());
        self.up_again().await;
        backup
    }

    /// Puts the leader's cluster back to what it was.
    pub async fn restore(&self, backup: &Backup) {
        self.down().await;
        let data = self.leader_cluster().dir().join("etcd");
        fs::remove_dir_all(&data).unwrap();
        copy(backup.0.path(), &data);
        self.up_again().await;
    }

    /// Replaces the leader's cluster by an empty one under the same address and authority.
    pub async fn replace_leader(&self) {
        self.down().await;
        let data = self.leader_cluster().dir().join("etcd");
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir(&data).unwrap();
        self.up_again().await;
    }

    /// Runs `freeport init` and `join` again, and starts the daemons that run and have got another credential.
    pub async fn set_up_again(&self) {
        for daemon in self.set_up(&Composition::of_all(&self.fleet, SET)).await {
            let process = self.fleet.process(&daemon.spec.name).await.unwrap();
            let runs = match process {
                Some(process) => process.is_running().await.unwrap(),
                None => false,
            };
            if runs {
                daemon.ensure(&self.fleet).await.unwrap();
            }
        }
    }

    fn leader_cluster(&self) -> &fleet::Cluster {
        self.fleet.cluster("leader").unwrap()
    }

    async fn down(&self) {
        self.leader_cluster().kill(Component::ControllerManager).await.unwrap();
        self.leader_cluster().kill(Component::ApiServer).await.unwrap();
        self.leader_cluster().stop(Component::Etcd).await.unwrap();
    }

    async fn up_again(&self) {
        for component in [Component::Etcd, Component::ApiServer, Component::ControllerManager] {
            self.leader_cluster().start(component).await.unwrap();
        }
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
