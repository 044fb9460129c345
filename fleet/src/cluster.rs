//! One cluster of a fleet, as its users see it.

mod ready;

use std::{net::IpAddr, path::PathBuf, sync::Arc};

pub(crate) use self::ready::{Nodes, bring_up, switch};
use crate::{
    Component, Error, Families, Family, Process, Signal, assembly::Equipment, client,
    cluster_layout::ClusterLayout, containerd, keeper::Client, network, ports,
};

/// The fleet's name for the process that connects machines. No cluster's process is called so: theirs have a slash.
pub(crate) const SWITCH: &str = "switch";

/// One cluster of a fleet: a control plane and, in a fleet with nodes, its node.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) layout: ClusterLayout,
    pub(crate) equipment: Arc<Equipment>,
    pub(crate) keeper: Client,
}

impl Cluster {
    /// The cluster's name, also that of its context in the kubeconfigs.
    pub fn name(&self) -> &str {
        self.layout.name()
    }

    /// Whether Pods run. The node is called as the cluster is.
    pub fn has_node(&self) -> bool {
        self.layout.has_node()
    }

    /// The parts it has, in the order of starting.
    pub fn components(&self) -> &'static [Component] {
        self.layout.components()
    }

    /// Imports images (archives of `docker save`, or of [`Image::write`](crate::Image::write)) into its node.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::Image`], [`Error::Keeper`].
    pub async fn load(&self, archives: &[PathBuf]) -> Result<(), Error> {
        containerd::import(self.name(), self.machine().await?, archives).await
    }

    /// The process id of its machine: `nsenter --target PID --net --mount` enters it.
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
        self.layout.dir()
    }

    /// A kubeconfig for this cluster alone, as administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// The CA that signed the API server's certificate, in PEM.
    pub fn ca_certificate(&self) -> PathBuf {
        self.layout.pki("ca.crt")
    }

    /// One JSON line (`audit.k8s.io/v1` Event, level Metadata) per request that writes, reads not being
    /// logged. A line is written when the request is complete, which may be an instant after its answer.
    pub fn audit_log(&self) -> PathBuf {
        self.layout.logs().join("audit.log")
    }

    /// The log of a component.
    pub fn log(&self, component: Component) -> PathBuf {
        self.layout.log(component)
    }

    /// The fleet's name for the process of a component.
    pub fn process_name(&self, component: Component) -> String {
        self.layout.process_name(component)
    }

    /// An administrator's client.
    ///
    /// # Errors
    /// [`Error::File`] if the kubeconfig cannot be used.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        client::of_file(&self.kubeconfig()).await
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
    /// [`Error::PortTaken`] if another program listens on its port, [`Error::Died`], [`Error::NotReady`],
    /// [`Error::Keeper`] if it runs already.
    pub async fn start(&self, component: Component) -> Result<(), Error> {
        for port in self.layout.ports_of(component) {
            if !self.has_node() && !ports::is_free(port) {
                return Err(Error::PortTaken { cluster: self.name().to_owned(), component, port });
            }
        }
        ready::start(self, component).await
    }

    /// Takes its machine off the network, as if somebody had pulled the cable at the switch: nothing gets in or out, and nobody is told.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::Network`], [`Error::Keeper`].
    pub async fn unplug(&self) -> Result<(), Error> {
        Ok(network::unplug(self.switch().await?, self.layout.record.index).await?)
    }

    /// Ends [`Cluster::unplug`].
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::Network`], [`Error::Keeper`].
    pub async fn plug(&self) -> Result<(), Error> {
        Ok(network::plug(self.switch().await?, self.layout.record.index).await?)
    }

    async fn switch(&self) -> Result<u32, Error> {
        if !self.has_node() {
            return Err(Error::NoNode(self.name().to_owned()));
        }
        Ok(self.keeper.pid(SWITCH).await?)
    }

    /// The families of its Pods and Services.
    pub fn families(&self) -> Families {
        self.layout.families()
    }

    /// Where the cluster's components listen: 127.0.0.1, or the address of its machine, which is its node's too, in the family that
    /// comes first.
    pub fn address(&self) -> IpAddr {
        self.layout.address()
    }

    /// The API server's URL, for clients on this machine and in clusters that have the family that comes first in this one.
    pub fn server(&self) -> String {
        self.layout.server()
    }

    /// The API server's URL for another cluster's Pods; `None` if no family is common to both.
    pub fn server_for(&self, other: &Self) -> Option<String> {
        self.layout.server_for(&other.layout)
    }

    /// The network of Pods, if it has a node and this family: routed between all machines of the fleet and this one.
    pub fn pod_network(&self, family: Family) -> Option<String> {
        self.layout.pod_network(family)
    }

    /// The network of ClusterIPs, if it has this family: disjoint from those of the fleet's other clusters.
    pub fn service_network(&self, family: Family) -> Option<String> {
        self.layout.service_network(family)
    }
}
