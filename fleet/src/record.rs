//! `fleet.json`: marks a directory as a fleet's and records its clusters.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use crate::{
    ClusterSpec, Component, Families, Family, cgroup::Hierarchy, component::Ports, layout::Layout, name,
    network::Network, tools::Tool,
};

const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(rename = "freeportFleet")]
    pub(crate) format: u32,
    /// False until all clusters were ready for the first time.
    pub(crate) ready: bool,
    pub(crate) tools: BTreeMap<Tool, PathBuf>,
    pub(crate) clusters: Vec<ClusterRecord>,
    /// Where the clusters with nodes have their control groups.
    #[serde(default)]
    pub(crate) cgroups: Vec<Hierarchy>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClusterRecord {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) families: Families,
    /// Position in the fleet; determines the Service network.
    pub(crate) index: u8,
    pub(crate) ports: Ports,
    /// The fleet's networks, if the cluster has a node.
    #[serde(default)]
    pub(crate) network: Option<Network>,
}

impl ClusterRecord {
    /// In the family that comes first, but without node on 127.0.0.1 in any case: only ClusterIPs have a family then.
    pub(crate) fn address(&self) -> IpAddr {
        let of = |network: Network| network.address(self.families.primary(), self.index);
        self.network.map_or(Ipv4Addr::LOCALHOST.into(), of)
    }

    pub(crate) fn url(&self, port: u16) -> String {
        format!("https://{}", SocketAddr::new(self.address(), port))
    }

    pub(crate) fn components(&self) -> &'static [Component] {
        if self.network.is_some() { &Component::ALL } else { &Component::CONTROL_PLANE }
    }
}

impl Record {
    pub(crate) fn new(tools: BTreeMap<Tool, PathBuf>, clusters: Vec<ClusterRecord>) -> Self {
        Self { format: FORMAT, ready: false, tools, clusters, cgroups: Vec::new() }
    }

    pub(crate) fn has_ipv6(&self) -> bool {
        self.clusters.iter().any(|cluster| cluster.families.has(Family::Ipv6))
    }

    pub(crate) fn has_nodes(&self) -> bool {
        self.clusters.iter().any(|cluster| cluster.network.is_some())
    }

    /// Whatever the fleet puts into its directory, in the order of removal.
    pub(crate) fn files(&self, layout: &Layout) -> Vec<PathBuf> {
        layout.files(self.clusters.iter().map(|cluster| cluster.name.as_str()))
    }

    /// The clusters as they were requested.
    pub(crate) fn specs(&self) -> Vec<ClusterSpec> {
        let spec =
            |cluster: &ClusterRecord| ClusterSpec { name: cluster.name.clone(), families: cluster.families };
        self.clusters.iter().map(spec).collect()
    }
}

/// `None` where there is no record of ours. Its names become paths that are removed, so they are checked.
pub(crate) fn read(layout: &Layout) -> Option<Record> {
    let record: Record = serde_json::from_slice(&fs::read(layout.record()).ok()?).ok()?;
    let is_ours =
        record.format == FORMAT && record.clusters.iter().all(|cluster| name::check(&cluster.name).is_ok());
    is_ours.then_some(record)
}

pub(crate) fn write(layout: &Layout, record: &Record) -> io::Result<()> {
    layout.write_private(&layout.record(), &serde_json::to_vec_pretty(record)?)
}
