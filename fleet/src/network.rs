//! The networks of a fleet with nodes: 10.X.0.0/16, where X is the fleet's own number, and if one of its clusters has IPv6,
//! fd46:7265:6570:XX00::/56, where XX is the same number in hexadecimal.
//!
//! | IPv4 | IPv6, first 48 bits left out | for |
//! |---|---|---|
//! | 10.X.0.0/24 | XX00::/64 | machines: .1 is this machine's, .10 and up are the clusters' |
//! | 10.X.(16 n).0/21 | XX00 + n::/64 | Pods of the cluster n = 1, 2, ... |
//! | 10.X.(16 n + 8).0/21 | XX80 + n::/112 | its ClusterIPs |
//!
//! Whichever families a cluster has, its machine has an address of both, so that machines are connected alike: the cluster
//! is told of its own.
//!
//! The number is claimed by making this machine's interface to the fleet, `freeportX`: the kernel makes one of that
//! name, and removes it with the fleet's switch, at its other end.

mod ip;

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use serde::{Deserialize, Serialize};

use self::ip::ip;
use crate::{Families, Family, subnet::Subnet};

/// Higher numbers than homes, offices and cloud networks commonly use, and than fleets without nodes use for ClusterIPs.
const FIRST: u8 = 160;
/// Networks of 16 blocks of 16 times 256 addresses, the first of which is for machines.
pub(crate) const MOST_CLUSTERS: u8 = 15;
/// A wider route (10.0.0.0/8, the default) is one for whatever has no better one.
const WIDE: u8 = 8;
/// Freeport's unique local addresses (RFC 4193): `Freep` in ASCII.
const LOCAL: [u16; 3] = [0xfd46, 0x7265, 0x6570];
/// Names of interfaces in the switch's namespace.
const BRIDGE: &str = "bridge";
const UPLINK: &str = "uplink";

/// The network of ClusterIPs of a cluster without node, at this position in its fleet. Nothing routes there, so every fleet
/// has the same ones.
pub(crate) fn services_without_node(family: Family, index: u8) -> Subnet {
    match family {
        // `spec::MOST_CLUSTERS` many.
        Family::Ipv4 => Subnet::new(Ipv4Addr::new(10, 96 + index, 0, 0), 16),
        Family::Ipv6 => local(0, index, 112),
    }
}

fn local(third: u8, fourth: u8, bits: u8) -> Subnet {
    let [a, b, c] = LOCAL;
    Subnet::new(Ipv6Addr::new(a, b, c, u16::from_be_bytes([third, fourth]), 0, 0, 0, 0), bits)
}

/// Why clusters are not connected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Take other fleets down, or a network that is in the way.
    #[error("no free network 10.X.0.0/16 with X from 160 up: this machine has interfaces or routes there")]
    NoneFree,
    /// Read what ip(8) says.
    #[error("the fleet's network cannot be made: {said} (ip: {commands})")]
    Ip {
        /// What was tried.
        commands: String,
        /// What came of it.
        said: String,
    },
}

/// The networks of one fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Network {
    number: u8,
    /// Not if all clusters have IPv4 alone: then this machine needs no IPv6.
    #[serde(default)]
    has_ipv6: bool,
}

impl Network {
    fn ipv4(self, third: u8, bits: u8) -> Subnet {
        Subnet::new(Ipv4Addr::new(10, self.number, third, 0), bits)
    }

    /// This machine's interface to the fleet.
    pub(crate) fn interface(self) -> String {
        format!("freeport{}", self.number)
    }

    /// What machines have addresses of.
    pub(crate) fn families(self) -> &'static [Family] {
        if self.has_ipv6 { Families::Dual.list() } else { Families::Ipv4.list() }
    }

    fn machines(self, family: Family) -> Subnet {
        match family {
            Family::Ipv4 => self.ipv4(0, 24),
            Family::Ipv6 => local(self.number, 0, 64),
        }
    }

    /// Of the cluster at this position in the fleet.
    pub(crate) fn address(self, family: Family, index: u8) -> IpAddr {
        self.machines(family).address(10 + index)
    }

    pub(crate) fn pods(self, family: Family, index: u8) -> Subnet {
        match family {
            Family::Ipv4 => self.ipv4(16 * (index + 1), 21),
            Family::Ipv6 => local(self.number, index + 1, 64),
        }
    }

    pub(crate) fn services(self, family: Family, index: u8) -> Subnet {
        match family {
            Family::Ipv4 => self.ipv4(16 * (index + 1) + 8, 21),
            Family::Ipv6 => local(self.number, 0x80 + index + 1, 112),
        }
    }

    /// Makes the networks of a fleet with a free number: the switch's bridge and this machine's interface to it.
    pub(crate) async fn claim(switch: u32, clusters: u8, has_ipv6: bool) -> Result<Self, Error> {
        let taken = routes(&fs::read_to_string("/proc/net/route").unwrap_or_default());
        for number in FIRST..=u8::MAX {
            let network = Self { number, has_ipv6 };
            let all = network.ipv4(0, 16);
            if taken.iter().any(|route| route.bits() > WIDE && route.overlaps(all)) {
                continue;
            }
            let interface = network.interface();
            let link = format!("link add {interface} type veth peer name {UPLINK} netns {switch}");
            match ip(None, &link).await {
                Err(error) if error.to_string().contains("File exists") => continue,
                made => made?,
            }
            let bridge = format!(
                "link add {BRIDGE} type bridge\nlink set {UPLINK} master {BRIDGE} up\nlink set {BRIDGE} up"
            );
            ip(Some(switch), &bridge).await?;
            let mut lines = network.up(&interface, 1);
            lines.extend((0..clusters).flat_map(|index| network.routes_to(index)));
            ip(None, &lines.join("\n")).await?;
            return Ok(network);
        }
        Err(Error::NoneFree)
    }

    /// Connects a cluster's machine to the switch, and its Pods with those of the fleet's other clusters.
    pub(crate) async fn attach(
        self,
        switch: u32,
        machine: u32,
        index: u8,
        clusters: u8,
    ) -> Result<(), Error> {
        let mut lines = vec![
            "link set lo up".to_owned(),
            format!("link add eth0 type veth peer name {} netns {switch}", port(index)),
        ];
        lines.extend(self.up("eth0", 10 + index));
        // Packets to a ClusterIP need a route before kube-proxy's rules see them.
        lines.extend(
            self.families()
                .iter()
                .map(|family| format!("route add {} dev eth0", self.services(*family, index))),
        );
        lines.extend((0..clusters).filter(|other| *other != index).flat_map(|other| self.routes_to(other)));
        ip(Some(machine), &lines.join("\n")).await?;
        plug(switch, index).await
    }

    /// Gives an interface its addresses. They are usable at once, without duplicate address detection.
    fn up(self, interface: &str, offset: u8) -> Vec<String> {
        let address = |family: &Family| {
            let machines = self.machines(*family);
            let unasked = if *family == Family::Ipv6 { " nodad" } else { "" };
            format!("address add {}/{} dev {interface}{unasked}", machines.address(offset), machines.bits())
        };
        let up = format!("link set {interface} up");
        std::iter::once(up).chain(self.families().iter().map(address)).collect()
    }

    fn routes_to(self, index: u8) -> impl Iterator<Item = String> {
        let route = move |family: &Family| {
            format!("route add {} via {}", self.pods(*family, index), self.address(*family, index))
        };
        self.families().iter().map(route)
    }
}

/// The switch's end of the link to a cluster's machine.
fn port(index: u8) -> String {
    format!("cluster{index}")
}

/// Connects that link with the others.
pub(crate) async fn plug(switch: u32, index: u8) -> Result<(), Error> {
    ip(Some(switch), &format!("link set {} master {BRIDGE} up", port(index))).await
}

/// Takes it off: what is sent over it arrives nowhere, and neither end is told.
pub(crate) async fn unplug(switch: u32, index: u8) -> Result<(), Error> {
    ip(Some(switch), &format!("link set {} nomaster", port(index))).await
}

/// The destinations in /proc/net/route.
fn routes(table: &str) -> Vec<Subnet> {
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // In the byte order of the machine, that is swapped on all we build for.
        let number = |field: &str| u32::from_str_radix(field, 16).ok().map(u32::from_be);
        let first = number(fields.get(1)?)?;
        let bits = u8::try_from(number(fields.get(7)?)?.count_ones()).ok()?;
        Some(Subnet::new(Ipv4Addr::from(first), bits))
    };
    table.lines().skip(1).filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    #[test]
    fn networks_of_a_fleet_are_apart() {
        let of = |number| Network { number, has_ipv6: true };
        let network = of(200);
        for (family, whole, others) in [
            (Family::Ipv4, network.ipv4(0, 16), of(201).ipv4(0, 16)),
            (Family::Ipv6, local(200, 0, 56), local(201, 0, 56)),
        ] {
            let machines = network.machines(family);
            let mut all = vec![machines];
            for index in 0..MOST_CLUSTERS {
                all.extend([network.pods(family, index), network.services(family, index)]);
                assert!(machines.overlaps(Subnet::new(network.address(family, index), machines.bits())));
            }
            for (position, one) in all.iter().enumerate() {
                assert!(whole.overlaps(*one) && !others.overlaps(*one), "{one}");
                assert!(all[position + 1..].iter().all(|other| !one.overlaps(*other)), "{one}");
            }
        }
        let services = |family| network.services(family, 0).to_string();
        assert_eq!(
            [services(Family::Ipv4), services(Family::Ipv6)],
            ["10.200.24.0/21", "fd46:7265:6570:c881::/112"]
        );
        assert_eq!(network.services(Family::Ipv4, 0).address(10), Ipv4Addr::new(10, 200, 24, 10));
    }

    #[test]
    fn cluster_ips_without_nodes_are_apart() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let most = u8::try_from(spec::MOST_CLUSTERS).unwrap();
            let all: Vec<_> = (0..most).map(|index| services_without_node(family, index)).collect();
            let with_nodes = Network { number: FIRST, has_ipv6: true }.services(family, 0);
            for (position, one) in all.iter().enumerate() {
                assert!(all[position + 1..].iter().all(|other| !one.overlaps(*other)), "{one}");
                assert!(!one.overlaps(with_nodes), "{one}");
            }
        }
        assert_eq!(services_without_node(Family::Ipv4, 1).to_string(), "10.97.0.0/16");
        assert_eq!(services_without_node(Family::Ipv6, 1).to_string(), "fd46:7265:6570:1::/112");
    }

    #[test]
    fn without_ipv6_nothing_is_said_of_it() {
        let network = Network { number: 200, has_ipv6: false };
        assert_eq!(network.up("eth0", 1), ["link set eth0 up", "address add 10.200.0.1/24 dev eth0"]);
        let routes: Vec<_> = network.routes_to(0).collect();
        assert_eq!(routes, ["route add 10.200.16.0/21 via 10.200.0.10"]);
        let both = Network { has_ipv6: true, ..network };
        assert_eq!(both.up("eth0", 1)[2], "address add fd46:7265:6570:c800::1/64 dev eth0 nodad");
    }

    #[test]
    fn routes_of_this_machine_are_read() {
        let table = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000A00A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
";
        let found: Vec<_> = routes(table).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["0.0.0.0/0", "10.160.0.0/16"]);
        let network = Network { number: FIRST, has_ipv6: false };
        assert!(routes(table)[1].overlaps(network.pods(Family::Ipv4, 3)));
    }
}
