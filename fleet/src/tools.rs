//! The Kubernetes programs: from `KUBEBUILDER_ASSETS`, else from `KUBERNETES_BINARIES`, else built once by Go and cached.
//!
//! Which versions: `fleet/tools/go.mod`, nowhere else.

mod binaries;
mod build;
mod download;
mod error;
mod go;
mod lock;
mod module;

use std::{collections::BTreeMap, env, ffi::OsString, path::PathBuf};

use serde::{Deserialize, Serialize};

use self::{binaries::Binaries, module::MODULE};
pub use error::Error;

/// A program of a cluster, or a client.
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

    /// What a fleet needs.
    pub fn of_a_fleet(nodes: bool) -> Vec<Self> {
        let of_nodes: &[Self] = if nodes { &Self::NODE } else { &[] };
        [&Self::CONTROL_PLANE, of_nodes].concat()
    }

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

    /// The version it is built from, unless it is one of `KUBEBUILDER_ASSETS` or `KUBERNETES_BINARIES`.
    pub fn version(self) -> &'static str {
        MODULE.version(match self {
            Self::Etcd => module::ETCD,
            Self::Coredns => module::COREDNS,
            _ => module::KUBERNETES,
        })
    }

    /// What Go builds it from.
    fn package(self) -> &'static str {
        match self {
            Self::Etcd => module::ETCD,
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::KubeScheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubelet => "k8s.io/kubernetes/cmd/kubelet",
            Self::KubeProxy => "k8s.io/kubernetes/cmd/kube-proxy",
            // With the plugins that Corefiles of clusters name: the usual one links the clients of every cloud.
            Self::Coredns => "./coredns",
            Self::Agnhost => "k8s.io/kubernetes/test/images/agnhost",
        }
    }

    /// Whether it is among the Kubernetes project's release downloads.
    fn is_published(self) -> bool {
        !matches!(self, Self::Etcd | Self::Coredns | Self::Agnhost)
    }

    /// What it adds to the time of a build on 2 cores, besides what it has in common with others.
    fn seconds(self) -> u32 {
        match self {
            Self::KubeApiserver => 90,
            Self::KubeControllerManager => 45,
            Self::Kubectl | Self::Kubelet => 30,
            _ => 15,
        }
    }
}

/// How long it takes to build these on 2 cores with nothing cached.
fn minutes(tools: &[Tool]) -> u32 {
    let (of_all, of_kubernetes) = (45, 75);
    let uses_kubernetes = tools.iter().any(|tool| *tool != Tool::Etcd);
    let own: u32 = tools.iter().map(|tool| tool.seconds()).sum();
    (of_all + own + if uses_kubernetes { of_kubernetes } else { 0 }).div_ceil(60)
}

/// Finds the programs or builds them, telling `progress` about it.
///
/// # Errors
/// See [`Error`].
pub async fn provide(tools: &[Tool], progress: &impl Fn(&str)) -> Result<BTreeMap<Tool, PathBuf>, Error> {
    let assets = set("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let in_assets = |tool: &Tool| {
        let path = assets.as_ref()?.join(tool.name());
        path.is_file().then(|| (*tool, std::path::absolute(&path).unwrap_or(path)))
    };
    let mut found: BTreeMap<_, _> = tools.iter().filter_map(in_assets).collect();
    let missing = |found: &BTreeMap<Tool, PathBuf>| -> Vec<Tool> {
        tools.iter().copied().filter(|tool| !found.contains_key(tool)).collect()
    };
    if let Some(value) = set("KUBERNETES_BINARIES") {
        let binaries = Binaries::parse(&value.to_string_lossy())?;
        found.extend(binaries.provide(&missing(&found), &cache()?, progress).await?);
    }
    found.extend(build::cached(&missing(&found), &cache()?, progress).await?);
    Ok(found)
}

fn set(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

/// `FREEPORT_CACHE`, else `~/.cache/freeport`.
///
/// # Errors
/// [`Error::NoCache`].
pub fn cache() -> Result<PathBuf, Error> {
    let home = || Some(PathBuf::from(set("HOME")?).join(".cache/freeport"));
    let dir = set("FREEPORT_CACHE").map(PathBuf::from).or_else(home);
    dir.and_then(|dir| std::path::absolute(dir).ok()).ok_or(Error::NoCache)
}
