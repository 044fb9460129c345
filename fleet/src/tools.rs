//! The Kubernetes programs: from `KUBEBUILDER_ASSETS`, else built once from their Go modules and cached.
//!
//! Which versions: `fleet/tools/*/go.mod`, nowhere else.

mod build;
mod go;
mod module;

use std::{collections::BTreeMap, env, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use module::Module;

/// A program of a cluster, or to look at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The controllers.
    KubeControllerManager,
    /// The command line client.
    Kubectl,
    /// Assigns Pods to nodes.
    KubeScheduler,
    /// Runs a node's Pods.
    Kubelet,
    /// Makes ClusterIPs work on a node.
    KubeProxy,
    /// The cluster's DNS server, for an image.
    Coredns,
    /// Servers and clients for tests in Pods, for an image.
    Agnhost,
}

impl Tool {
    /// What a control plane and its users need.
    pub const CONTROL_PLANE: [Self; 4] =
        [Self::Etcd, Self::KubeApiserver, Self::KubeControllerManager, Self::Kubectl];
    /// What nodes need besides.
    pub const NODE: [Self; 5] =
        [Self::KubeScheduler, Self::Kubelet, Self::KubeProxy, Self::Coredns, Self::Agnhost];

    /// The name of the executable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::Coredns => "coredns",
            Self::Agnhost => "agnhost",
        }
    }

    /// The version it is built from, unless it is one of `KUBEBUILDER_ASSETS`.
    pub fn version(self) -> &'static str {
        self.module().version()
    }

    fn module(self) -> Module {
        match self {
            Self::Etcd => module::ETCD,
            Self::Coredns => module::COREDNS,
            _ => module::KUBERNETES,
        }
    }

    fn package(self) -> String {
        match self {
            Self::Etcd => module::ETCD.main.to_owned(),
            Self::Coredns => module::COREDNS.main.to_owned(),
            Self::Agnhost => format!("{}/test/images/agnhost", module::KUBERNETES.main),
            _ => format!("{}/cmd/{}", module::KUBERNETES.main, self.name()),
        }
    }

    /// Measured on 2 cores with nothing cached, in this order.
    fn minutes(self) -> u32 {
        match self {
            Self::KubeApiserver => 5,
            Self::KubeControllerManager | Self::Kubelet | Self::Coredns => 2,
            _ => 1,
        }
    }
}

/// Why there are no programs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Install Go.
    #[error(
        "Go is needed to build {what} and the command `go` was not found: install Go {needed} or later \
         (https://go.dev/dl/), or set KUBEBUILDER_ASSETS to a directory that has the programs"
    )]
    NoGo {
        /// The programs to build.
        what: String,
        /// The lowest version that will do.
        needed: String,
    },
    /// Install a newer Go.
    #[error(
        "Go {found} is too old to build {what}: install Go {needed} or later (https://go.dev/dl/), or set \
         KUBEBUILDER_ASSETS to a directory that has the programs"
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
    #[error("building {tool} failed ({status}). The end of what `go build` said:\n{tail}")]
    Build {
        /// The program.
        tool: &'static str,
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

/// Finds the programs or builds them, telling `progress` about it.
///
/// # Errors
/// See [`Error`].
pub async fn provide(tools: &[Tool], progress: &impl Fn(&str)) -> Result<BTreeMap<Tool, PathBuf>, Error> {
    let assets = env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let mut found = BTreeMap::new();
    let mut missing = Vec::new();
    for tool in tools {
        let asset = assets.as_ref().map(|dir| dir.join(tool.name())).filter(|path| path.is_file());
        match asset {
            Some(path) => drop(found.insert(*tool, std::path::absolute(&path).unwrap_or(path))),
            None => missing.push(*tool),
        }
    }
    for module in [module::KUBERNETES, module::ETCD, module::COREDNS] {
        let wanted: Vec<Tool> = missing.iter().copied().filter(|tool| tool.module() == module).collect();
        found.extend(build::cached(&module, &wanted, &cache()?, progress).await?);
    }
    Ok(found)
}

/// `FREEPORT_CACHE`, else `~/.cache/freeport`.
///
/// # Errors
/// [`Error::NoCache`].
pub fn cache() -> Result<PathBuf, Error> {
    let set = |key| env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = set("FREEPORT_CACHE").or_else(|| Some(set("HOME")?.join(".cache/freeport")));
    dir.and_then(|dir| std::path::absolute(dir).ok()).ok_or(Error::NoCache)
}
