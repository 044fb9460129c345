//! One control plane of a fleet, as its users see it.

mod address;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Process, Signal, images, keeper::Client, layout::Layout, ports, ready, record::ClusterRecord,
    tools::Tool,
};

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

/// One cluster of a fleet: a control plane and, in a fleet with nodes, its node.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) record: ClusterRecord,
    pub(crate) layout: Layout,
    pub(crate) tools: Arc<BTreeMap<Tool, PathBuf>>,
    pub(crate) keeper: Client,
}

impl Cluster {
    /// The cluster's name, also that of its context in the kubeconfigs.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Whether Pods run. The node is called as the cluster is.
    pub fn has_node(&self) -> bool {
        self.record.network.is_some()
    }

    /// The parts it has, in the order of starting.
    pub fn components(&self) -> &'static [Component] {
        self.record.components()
    }

    /// Imports images (archives of `docker save`, or of [`Image::write`](crate::Image::write)) into its node.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::Image`], [`Error::Keeper`].
    pub async fn load(&self, archives: &[PathBuf]) -> Result<(), Error> {
        images::import(self.name(), self.machine().await?, archives).await
    }

    /// The process id of its machine: `nsenter --target PID --net --mount` is how to look into it.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::Keeper`].
    pub async fn machine(&self) -> Result<u32, Error> {
        if !self.has_node() {
            return Err(Error::NoNode(self.name().to_owned()));
        }
        Ok(self.keeper.pid(&self.process_name(Component::Machine)).await?)
    }

    /// Everything of this cluster: `pki`, `etcd`, `logs`.
    pub fn dir(&self) -> PathBuf {
        self.layout.cluster(self.name())
    }

    /// A kubeconfig for this cluster alone, as administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.cluster_kubeconfig(self.name())
    }

    /// The CA that signed the API server's certificate, in PEM.
    pub fn ca_certificate(&self) -> PathBuf {
        self.pki("ca.crt")
    }

    /// One JSON line (`audit.k8s.io/v1` Event, level Metadata) per request that writes, reads not being
    /// logged. A line is written when the request is complete, which may be an instant after its answer.
    pub fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    /// The log of a component.
    pub fn log(&self, component: Component) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    /// The fleet's name for the process of a component.
    pub fn process_name(&self, component: Component) -> String {
        format!("{}/{component}", self.name())
    }

    /// An administrator's client.
    ///
    /// # Errors
    /// [`Error::File`] if the kubeconfig cannot be used.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        ready::client(&self.kubeconfig()).await
    }

    /// Lets the API server hang (SIGSTOP): connections stay open and nothing answers.
    ///
    /// # Errors
    /// [`Error::Keeper`] if it does not run.
    pub async fn pause(&self) -> Result<(), Error> {
        Ok(self.keeper.signal(&self.process_name(Component::ApiServer), Signal::Pause).await?)
    }

    /// Ends [`Cluster::pause`].
    ///
    /// # Errors
    /// [`Error::Keeper`] if it does not run.
    pub async fn resume(&self) -> Result<(), Error> {
        Ok(self.keeper.signal(&self.process_name(Component::ApiServer), Signal::Resume).await?)
    }

    /// Stops one component and waits for its end. [`Cluster::start`] brings it back with its ports and data.
    ///
    /// # Errors
    /// [`Error::Keeper`] if it does not run.
    pub async fn stop(&self, component: Component) -> Result<(), Error> {
        Ok(self.keeper.stop(&self.process_name(component)).await?)
    }

    /// Kills one component (SIGKILL), as a crash would, and waits for its end. Faster than [`Cluster::stop`]:
    /// an API server takes its time for clients that watch.
    ///
    /// # Errors
    /// [`Error::Keeper`] if it does not run.
    pub async fn kill(&self, component: Component) -> Result<(), Error> {
        let name = self.process_name(component);
        self.keeper.signal(&name, Signal::Kill).await?;
        match self.keeper.find(&name).await? {
            Some(state) => Process::new(state, self.keeper.clone()).wait().await.map(drop),
            None => Ok(()),
        }
    }

    /// Starts a stopped component and waits until it serves.
    ///
    /// # Errors
    /// [`Error::PortTaken`] if somebody else listens on its port by now, [`Error::Died`], [`Error::NotReady`],
    /// [`Error::Keeper`] if it runs already.
    pub async fn start(&self, component: Component) -> Result<(), Error> {
        for port in self.ports_of(component) {
            if !self.has_node() && !ports::is_free(port) {
                return Err(Error::PortTaken { cluster: self.name().to_owned(), component, port });
            }
        }
        ready::start(self, component).await
    }

    fn ports_of(&self, component: Component) -> Vec<u16> {
        let Ports { api, etcd, etcd_peer } = self.record.ports;
        match component {
            Component::Etcd => vec![etcd, etcd_peer],
            Component::ApiServer => vec![api],
            _ => Vec::new(),
        }
    }

    /// The port that the end of a component's log says is taken.
    pub(crate) fn port_in_use(&self, component: Component, log: &str) -> Option<u16> {
        let line = log.lines().find(|line| line.contains("address already in use"))?;
        self.ports_of(component).into_iter().find(|port| line.contains(&format!(":{port}")))
    }

    pub(crate) fn pki(&self, file: impl AsRef<Path>) -> PathBuf {
        self.dir().join("pki").join(file)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.dir().join("logs")
    }
}
