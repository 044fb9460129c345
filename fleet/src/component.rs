//! The parts of a cluster, and the ports they listen on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Ports of one control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) api: u16,
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
}

/// The parts of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// With nodes: what makes up a machine for the others, see `keeper::machine`. It cannot be started again.
    Machine,
    /// The store.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// With nodes: kube-scheduler.
    Scheduler,
    /// With nodes: containerd. Containers outlive it.
    Containerd,
    /// With nodes: the kubelet. Pods outlive it.
    Kubelet,
    /// With nodes: kube-proxy. Its rules outlive it.
    KubeProxy,
}

impl Component {
    /// Of every cluster, in the order of starting.
    pub const CONTROL_PLANE: [Self; 3] = [Self::Etcd, Self::ApiServer, Self::ControllerManager];
    /// Of a cluster with a node, in the order of starting.
    pub const ALL: [Self; 8] = [
        Self::Machine,
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Containerd,
        Self::Kubelet,
        Self::KubeProxy,
    ];

    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Scheduler => "kube-scheduler",
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
