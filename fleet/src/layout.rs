//! The files of a fleet's directory: where they are, and which of them are ours to remove.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::record;

/// Paths of one fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The keeper's socket, relative to the directory.
    pub(crate) const SOCKET: &'static str = "keeper.sock";
    /// Names in the directory that a cluster cannot have.
    pub(crate) const RESERVED: [&'static str; 3] = ["kubeconfig", "logs", "images"];

    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The marker and record of a fleet.
    pub(crate) fn record(&self) -> PathBuf {
        self.dir.join("fleet.json")
    }

    pub(crate) fn keeper(&self) -> PathBuf {
        self.dir.join("keeper.json")
    }

    pub(crate) fn keeper_log(&self) -> PathBuf {
        self.dir.join("keeper.log")
    }

    /// Logs of processes that are part of no control plane.
    pub(crate) fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Archives of images that every node has.
    pub(crate) fn images(&self) -> PathBuf {
        self.dir.join("images")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    pub(crate) fn cluster_kubeconfig(&self, cluster: &str) -> PathBuf {
        self.dir.join(format!("{cluster}.kubeconfig"))
    }

    pub(crate) fn cluster(&self, cluster: &str) -> PathBuf {
        self.dir.join(cluster)
    }

    /// Makes a directory that only we can read, and its parents.
    pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    /// Writes a file that only we can read, whole or not at all.
    pub(crate) fn write_private(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let new = path.with_added_extension("new");
        let _leftover = fs::remove_file(&new);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?.write_all(content)?;
        fs::rename(new, path)
    }

    /// Removes what a fleet put here, and the directory if nothing else is in it. Does nothing without our
    /// marker, which goes last so that an interrupted removal can be taken up again.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let Some(record) = record::read(self) else {
            return Ok(());
        };
        for cluster in &record.clusters {
            absent_is_fine(fs::remove_dir_all(self.cluster(&cluster.name)))?;
            absent_is_fine(fs::remove_file(self.cluster_kubeconfig(&cluster.name)))?;
        }
        for dir in [self.logs(), self.images()] {
            absent_is_fine(fs::remove_dir_all(dir))?;
        }
        for path in [self.kubeconfig(), self.keeper(), self.keeper_log(), self.dir.join(Self::SOCKET)] {
            absent_is_fine(fs::remove_file(path))?;
        }
        absent_is_fine(fs::remove_file(self.record()))?;
        match fs::remove_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => absent_is_fine(removed),
        }
    }
}

fn absent_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
