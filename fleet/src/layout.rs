//! The files of a fleet's directory: where they are, and which of them are ours to remove.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

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

    /// What a fleet with these clusters puts here, in the order of removal: its marker goes last, so that an interrupted removal
    /// can be taken up again.
    pub(crate) fn files<'a>(&self, clusters: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
        let of_cluster = |name| [self.cluster(name), self.cluster_kubeconfig(name)];
        let mut files: Vec<_> = clusters.flat_map(of_cluster).collect();
        files.extend([self.logs(), self.images(), self.kubeconfig(), self.keeper(), self.keeper_log()]);
        files.extend([self.dir.join(Self::SOCKET), self.record()]);
        files
    }

    /// Removes files and directories with their content, and the fleet's directory if nothing else is in it.
    pub(crate) fn remove(&self, files: &[PathBuf]) -> io::Result<()> {
        for file in files {
            let is_dir = fs::symlink_metadata(file).is_ok_and(|file| file.is_dir());
            absent_is_fine(if is_dir { fs::remove_dir_all(file) } else { fs::remove_file(file) })?;
        }
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
