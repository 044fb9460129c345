//! A cluster as data: its record, and the addresses, names and files that follow from it. The modules that create and run a cluster get this.

mod address;

use std::path::{Path, PathBuf};

use crate::{Component, component::Ports, layout::Layout, record::ClusterRecord};

/// A cluster's record, and where the files of its fleet are.
#[derive(Clone, Debug)]
pub(crate) struct ClusterLayout {
    pub(crate) record: ClusterRecord,
    pub(crate) layout: Layout,
}

impl ClusterLayout {
    pub(crate) fn name(&self) -> &str {
        &self.record.name
    }

    pub(crate) fn has_node(&self) -> bool {
        self.record.network.is_some()
    }

    /// In the order of starting.
    pub(crate) fn components(&self) -> &'static [Component] {
        self.record.components()
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.layout.cluster(self.name())
    }

    /// The administrator's, for this cluster alone.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.layout.cluster_kubeconfig(self.name())
    }

    pub(crate) fn pki(&self, file: impl AsRef<Path>) -> PathBuf {
        self.dir().join("pki").join(file)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.dir().join("logs")
    }

    pub(crate) fn log(&self, component: Component) -> PathBuf {
        self.logs().join(format!("{component}.log"))
    }

    /// The fleet's name for the process of a component.
    pub(crate) fn process_name(&self, component: Component) -> String {
        format!("{}/{component}", self.name())
    }

    pub(crate) fn ports_of(&self, component: Component) -> Vec<u16> {
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

    /// The URL of etcd's client port.
    pub(crate) fn etcd_url(&self) -> String {
        self.url(self.record.ports.etcd)
    }
}
