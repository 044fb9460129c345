//! Addresses and networks of a cluster, of each family that it has.

use std::net::{IpAddr, SocketAddr};

use super::ClusterLayout;
use crate::{Families, Family, network, subnet::Subnet};

impl ClusterLayout {
    /// The families of its Pods and Services.
    pub(crate) fn families(&self) -> Families {
        self.record.families
    }

    /// Where the cluster's components listen: 127.0.0.1, or the address of its machine, which is its node's too, in the family that
    /// comes first.
    pub(crate) fn address(&self) -> IpAddr {
        self.record.address()
    }

    /// The API server's URL, for clients on this machine and in clusters that have the family that comes first in this one.
    pub(crate) fn server(&self) -> String {
        self.url(self.record.ports.api)
    }

    /// The API server's URL for another cluster's Pods; `None` if no family is common to both.
    pub(crate) fn server_for(&self, other: &Self) -> Option<String> {
        let Some(network) = self.record.network else { return Some(self.server()) };
        let shared = self.families().shared_with(other.families())?;
        let address = SocketAddr::new(network.address(shared, self.record.index), self.record.ports.api);
        Some(format!("https://{address}"))
    }

    /// The network of Pods, if it has a node and this family: routed between all machines of the fleet and this one.
    pub(crate) fn pod_network(&self, family: Family) -> Option<String> {
        self.pods().get(self.position(family)?).map(ToString::to_string)
    }

    /// The network of ClusterIPs, if it has this family: disjoint from those of the fleet's other clusters.
    pub(crate) fn service_network(&self, family: Family) -> Option<String> {
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

    /// Those addresses of its machine that the cluster uses, in the order of families; none without node.
    pub(crate) fn node_addresses(&self) -> Vec<IpAddr> {
        let Some(network) = self.record.network else { return Vec::new() };
        self.families().list().iter().map(|family| network.address(*family, self.record.index)).collect()
    }

    /// All addresses of its machine, for certificates; none without node.
    pub(crate) fn machine_addresses(&self) -> Vec<IpAddr> {
        let Some(network) = self.record.network else { return Vec::new() };
        network.families().iter().map(|family| network.address(*family, self.record.index)).collect()
    }

    pub(crate) fn url(&self, port: u16) -> String {
        self.record.url(port)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::{component::Ports, layout::Layout, record::ClusterRecord};

    /// The second cluster of a fleet.
    fn cluster(families: &str, has_node: bool) -> ClusterLayout {
        let layout = Layout::new(Path::new("/nowhere"));
        let network = has_node.then(|| json!({"number": 200, "has_ipv6": true}));
        ClusterLayout {
            record: ClusterRecord {
                name: "east".into(),
                families: families.parse().unwrap(),
                index: 1,
                ports: Ports { api: 6443, etcd: 2379, etcd_peer: 2380 },
                network: serde_json::from_value(json!(network)).unwrap(),
            },
            layout,
        }
    }

    #[test]
    fn the_server_is_asked_by_a_family_of_the_asking_cluster() {
        let ipv4 = "https://10.200.0.11:6443";
        let ipv6 = "https://[fd46:7265:6570:c800::b]:6443";
        for (leader, member, expected) in [
            ("ipv4", "ipv4", Some(ipv4)),
            ("ipv4", "dual", Some(ipv4)),
            ("ipv4", "ipv6", None),
            ("dual", "ipv4", Some(ipv4)),
            ("dual", "dual", Some(ipv4)),
            ("dual", "ipv6", Some(ipv6)),
            ("ipv6", "dual", Some(ipv6)),
            ("ipv6", "ipv4", None),
        ] {
            let server = cluster(leader, true).server_for(&cluster(member, true));
            assert_eq!(server.as_deref(), expected, "{leader} {member}");
        }
        assert_eq!(cluster("dual", true).server(), ipv4);
        assert_eq!(cluster("ipv6", true).server(), ipv6);
        let beside = cluster("ipv6", false);
        assert_eq!(beside.server_for(&cluster("ipv4", false)), Some("https://127.0.0.1:6443".into()));
    }

    #[test]
    fn networks_are_those_of_its_families() {
        let six = cluster("ipv6", true);
        assert_eq!(six.pod_network(Family::Ipv4), None);
        assert_eq!(six.pod_network(Family::Ipv6).as_deref(), Some("fd46:7265:6570:c802::/64"));
        assert_eq!(six.service_network(Family::Ipv6).as_deref(), Some("fd46:7265:6570:c882::/112"));
        let dual = cluster("dual", true);
        assert_eq!(dual.pod_network(Family::Ipv4).as_deref(), Some("10.200.32.0/21"));
        assert_eq!(dual.pod_network(Family::Ipv6), six.pod_network(Family::Ipv6));
        assert_eq!(dual.node_addresses(), dual.machine_addresses());
        assert_eq!(six.machine_addresses(), dual.machine_addresses(), "both may be asked");
        let beside = cluster("dual", false);
        assert_eq!(beside.pod_network(Family::Ipv6), None);
        assert_eq!(beside.service_network(Family::Ipv4).as_deref(), Some("10.97.0.0/16"));
        assert_eq!(beside.service_network(Family::Ipv6).as_deref(), Some("fd46:7265:6570:1::/112"));
    }
}
