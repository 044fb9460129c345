//! Why there are no programs.

use std::{io, path::PathBuf};

/// Why there are no programs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Install Go, or name a place that has the programs.
    #[error(
        "Go is needed to build {what} and the command `go` was not found: install Go {needed} or later \
         (https://go.dev/dl/), or set KUBERNETES_BINARIES or KUBEBUILDER_ASSETS to where the programs are"
    )]
    NoGo {
        /// The programs to build.
        what: String,
        /// The lowest version that will do.
        needed: String,
    },
    /// Install a newer Go, or name a place that has the programs.
    #[error(
        "Go {found} is too old to build {what}: install Go {needed} or later (https://go.dev/dl/), or set \
         KUBERNETES_BINARIES or KUBEBUILDER_ASSETS to where the programs are"
    )]
    OldGo {
        /// The programs to build.
        what: String,
        /// What `go version` says.
        found: String,
        /// The lowest version that will do.
        needed: String,
    },
    /// Read what Go says.
    #[error("building {tools} failed ({status}). The end of what `go build` said:\n{tail}")]
    Build {
        /// The programs.
        tools: String,
        /// Of `go build`.
        status: String,
        /// The last lines.
        tail: String,
    },
    /// Make room.
    #[error("only {free_mib} MiB are free on the disk of {}, building needs {needed_mib} MiB", dir.display())]
    DiskFull {
        /// The cache.
        dir: PathBuf,
        /// What is left for this user.
        free_mib: u64,
        /// What we ask for.
        needed_mib: u64,
    },
    /// Correct `KUBERNETES_BINARIES`.
    #[error("KUBERNETES_BINARIES={value}: {why}")]
    Place {
        /// What it is set to.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// Check the network and the address, or unset `KUBERNETES_BINARIES` to build the programs instead.
    #[error("KUBERNETES_BINARIES: downloading {url} failed: {why}")]
    Download {
        /// Of the file.
        url: String,
        /// What the server, or the network, says.
        why: String,
    },
    /// A file is damaged, or is not what its publisher made.
    #[error("KUBERNETES_BINARIES: the checksum of {file} is {found}, not {expected} as {checksums} says")]
    Checksum {
        /// The program.
        file: String,
        /// Where its checksum is.
        checksums: String,
        /// The checksum that is published.
        expected: String,
        /// That of the file.
        found: String,
    },
    /// Neither `FREEPORT_CACHE` nor `HOME` is set.
    #[error("no place to keep built programs: set FREEPORT_CACHE to a directory, or HOME")]
    NoCache,
    /// The cache could not be read or written.
    #[error("{}: {source}", path.display())]
    Cache {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` at a path.
    pub(super) fn cache(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Cache { path: path.into(), source }
    }
}
