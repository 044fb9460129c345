//! What can go wrong with a fleet, named by what the caller can do about it.

use std::{io, path::PathBuf};

use crate::{Component, Exit, keeper, name, network, packages, program, tools};

/// Why a fleet is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Choose other names.
    #[error(transparent)]
    Name(#[from] name::Error),
    /// Install or repair what builds the Kubernetes binaries.
    #[error(transparent)]
    Tools(#[from] tools::Error),
    /// Install what is missing, become root, or do without nodes.
    #[error(transparent)]
    Packages(#[from] packages::Error),
    /// Repair what builds programs for images.
    #[error(transparent)]
    Program(#[from] program::Error),
    /// Choose another directory.
    #[error("{} holds something else than a fleet: choose an empty or new directory", .0.display())]
    NotOurs(PathBuf),
    /// Take it down first, or use it as it is.
    #[error("a fleet with clusters {clusters} runs in {dir}: take it down first: cargo run -p fleet -- down --dir {dir}", dir = dir.display())]
    OtherClusters {
        /// Of the fleet.
        dir: PathBuf,
        /// Their names, and whether they have nodes.
        clusters: String,
    },
    /// Take it down first; its parts that run are left alone.
    #[error(
        "the fleet in {dir} runs only in part ({what}): take it down with cargo run -p fleet -- down --dir {dir}",
        dir = dir.display()
    )]
    Degraded {
        /// Of the fleet.
        dir: PathBuf,
        /// What is missing.
        what: String,
    },
    /// Start it.
    #[error("no fleet runs in {}", .0.display())]
    NotRunning(PathBuf),
    /// Make room.
    #[error("only {free_mib} MiB are free on the disk of {}, a fleet needs {needed_mib} MiB", dir.display())]
    DiskFull {
        /// The directory meant for the fleet.
        dir: PathBuf,
        /// What is left for this user.
        free_mib: u64,
        /// What we ask for.
        needed_mib: u64,
    },
    /// End the other program that listens there.
    #[error("{cluster}: {component} cannot listen on 127.0.0.1:{port}: the port is taken by another program")]
    PortTaken {
        /// The cluster's name.
        cluster: String,
        /// Which part of it.
        component: Component,
        /// On 127.0.0.1.
        port: u16,
    },
    /// The clusters could not be connected.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// Read the keeper's log.
    #[error("the process that connects the clusters does not get ready")]
    NoSwitch,
    /// Read what ctr says.
    #[error("{cluster}: the image {} cannot be imported: {said}", archive.display())]
    Image {
        /// The cluster's name.
        cluster: String,
        /// The file.
        archive: PathBuf,
        /// What came of it.
        said: String,
    },
    /// Start one with nodes.
    #[error("{0} has no node: take the fleet down and start one with nodes")]
    NoNode(String),
    /// Read what the API server says.
    #[error("{cluster}: the cluster's DNS server cannot be deployed: {source}")]
    Dns {
        /// The cluster's name.
        cluster: String,
        /// What it says.
        #[source]
        source: Box<kube::Error>,
    },
    /// No ports left to choose from.
    #[error("no free ports on 127.0.0.1")]
    NoPorts,
    /// Read the log.
    #[error("{cluster}: {component} ended at start ({exit}). The end of {}:\n{tail}", log.display())]
    Died {
        /// The cluster's name.
        cluster: String,
        /// Which part of it.
        component: Component,
        /// How it ended.
        exit: Exit,
        /// Its whole log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// Read the log.
    #[error("{cluster}: not ready after {seconds} s: {reason}. The end of {}:\n{tail}", log.display())]
    NotReady {
        /// The cluster's name.
        cluster: String,
        /// How long was waited.
        seconds: u64,
        /// What was missing.
        reason: String,
        /// The log of the component waited for.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The process that keeps the others did not start.
    #[error(transparent)]
    Launch(#[from] keeper::LaunchError),
    /// The keeper did not do it.
    #[error(transparent)]
    Keeper(#[from] keeper::ClientError),
    /// A file of the fleet could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` at a path.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::File { path: path.into(), source }
    }
}
