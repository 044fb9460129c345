//! Where a cluster is to be found: addresses and networks, of each family that it has.

use std::net::IpAddr;

use crate::{Cluster, Families, Family, network, subnet::Subnet};

impl Cluster {
    /// The families of its Pods and Services.
    pub fn families(&self) -> Families {
        self.record.families
    }

    /// Where the cluster's components listen: 127.0.0.1, or the address of its machine, which is its node's too, in the family that
    /// comes first.
    pub fn address(&self) -> IpAddr {
        self.record.address()
    }

    /// The API server's URL, for clients on this machine and in clusters that have the family that comes first in this one.
    pub fn server(&self) -> String {
        self.url(self.record.ports.api)
    }

    /// The network of Pods, if it has a node and this family: routed between all machines of the fleet and this one.
    pub fn pod_network(&self, family: Family) -> Option<String> {
        self.pods().get(self.position(family)?).map(ToString::to_string)
    }

    /// The network of ClusterIPs, if it has this family: disjoint from those of the fleet's other clusters.
    pub fn service_network(&self, family: Family) -> Option<String> {
        self.services().get(self.position(family)?).map(ToString::to_string)
    }

    fn position(&self, family: Family) -> Option<usize> {
        self.families().list().iter().position(|one| *one == family)
    }

    /// The networks of Pods, in the order of families; none without node.
    pub(crate) fn pods(&self) -> Vec<Subnet> {
        let Some(network) = self.record.network else { return Vec::new() };
        self.families().list().iter().map(|family| network.pods(*family, self.record.index)).collect()
    }

    /// The networks of ClusterIPs, in the order of families.
    pub(crate) fn services(&self) -> Vec<Subnet> {
        let index = self.record.index;
        let of = |family: &Family| match self.record.network {
            Some(network) => network.services(*family, index),
            None => network::services_without_node(*family, index),
        };
        self.families().list().iter().map(of).collect()
    }

    /// Those of its machine that the cluster is told of, in the order of families; none without node.
    pub(crate) fn node_addresses(&self) -> Vec<IpAddr> {
        let Some(network) = self.record.network else { return Vec::new() };
        self.families().list().iter().map(|family| network.address(*family, self.record.index)).collect()
    }

    /// What certificates of the machine's servers are for; none without node.
    pub(crate) fn machine_addresses(&self) -> Vec<IpAddr> {
        let Some(network) = self.record.network else { return Vec::new() };
        network.families().iter().map(|family| network.address(*family, self.record.index)).collect()
    }

    pub(crate) fn url(&self, port: u16) -> String {
        self.record.url(port)
    }
}
