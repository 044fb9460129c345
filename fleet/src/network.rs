//! The networks of a fleet with nodes: 10.X.0.0/16, where X is the fleet's own number.
//!
//! | network | for |
//! |---|---|
//! | 10.X.0.0/24 | machines: .1 is this machine's, .10 and up are the clusters' |
//! | 10.X.(16 n).0/21 | Pods of the cluster n = 1, 2, ... |
//! | 10.X.(16 n + 8).0/21 | its ClusterIPs |
//!
//! The number is claimed by making this machine's interface to the fleet, `freeportX`: the kernel makes one of that
//! name, and removes it with the fleet's switch, at its other end.

use std::{fmt, fs, net::Ipv4Addr, process::Stdio};

use serde::{Deserialize, Serialize};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{Error, packages};

/// Above what is common in homes, offices and cloud networks, and what fleets without nodes use for ClusterIPs.
const FIRST: u8 = 160;
/// Networks of 16 blocks of 16 times 256 addresses, the first of which is for machines.
pub(crate) const MOST_CLUSTERS: u8 = 15;
/// A wider route (10.0.0.0/8, the default) is one for whatever has no better one.
const WIDE: u32 = 8;
/// Names of interfaces in the switch's namespace.
const BRIDGE: &str = "bridge";
const UPLINK: &str = "uplink";

/// An IPv4 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    first: u32,
    bits: u32,
}

impl Subnet {
    /// The address at a distance from the network's first.
    pub(crate) fn address(self, offset: u32) -> Ipv4Addr {
        (self.first + offset).into()
    }

    fn overlaps(self, other: Self) -> bool {
        let mask = |bits: u32| u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let common = mask(self.bits.min(other.bits));
        self.first & common == other.first & common
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.bits)
    }
}

/// The networks of one fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Network {
    number: u8,
}

impl Network {
    fn subnet(self, third: u8, bits: u32) -> Subnet {
        Subnet { first: Ipv4Addr::new(10, self.number, third, 0).into(), bits }
    }

    /// This machine's interface to the fleet.
    pub(crate) fn interface(self) -> String {
        format!("freeport{}", self.number)
    }

    /// Of the cluster at this position in the fleet.
    pub(crate) fn address(self, index: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, self.number, 0, 10 + index)
    }

    pub(crate) fn pods(self, index: u8) -> Subnet {
        self.subnet(16 * (index + 1), 21)
    }

    pub(crate) fn services(self, index: u8) -> Subnet {
        self.subnet(16 * (index + 1) + 8, 21)
    }

    /// Makes the networks of a fleet with a free number: the switch's bridge and this machine's interface to it.
    pub(crate) async fn claim(switch: u32, clusters: u8) -> Result<Self, Error> {
        let taken = routes(&fs::read_to_string("/proc/net/route").unwrap_or_default());
        for number in FIRST..=u8::MAX {
            let network = Self { number };
            let all = network.subnet(0, 16);
            if taken.iter().any(|route| route.bits > WIDE && route.overlaps(all)) {
                continue;
            }
            let interface = network.interface();
            let link = format!("link add {interface} type veth peer name {UPLINK} netns {switch}");
            match ip(None, &link).await {
                Err(error) if error.to_string().contains("File exists") => continue,
                made => made?,
            }
            let mut lines = vec![
                format!("address add 10.{number}.0.1/24 dev {interface}"),
                format!("link set {interface} up"),
            ];
            lines.extend((0..clusters).map(|index| network.route(index)));
            ip(None, &lines.join("\n")).await?;
            let bridge = format!(
                "link add {BRIDGE} type bridge\nlink set {UPLINK} master {BRIDGE} up\nlink set {BRIDGE} up"
            );
            ip(Some(switch), &bridge).await?;
            return Ok(network);
        }
        Err(Error::NoNetwork)
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
            format!("link add eth0 type veth peer name cluster{index} netns {switch}"),
            format!("address add {}/24 dev eth0", self.address(index)),
            "link set eth0 up".to_owned(),
            // Packets to a ClusterIP need a route before kube-proxy's rules see them.
            format!("route add {} dev eth0", self.services(index)),
        ];
        lines.extend((0..clusters).filter(|other| *other != index).map(|other| self.route(other)));
        ip(Some(machine), &lines.join("\n")).await?;
        ip(Some(switch), &format!("link set cluster{index} master {BRIDGE} up")).await
    }

    fn route(self, index: u8) -> String {
        format!("route add {} via {}", self.pods(index), self.address(index))
    }
}

/// Runs commands of ip(8), a line each, here or in the network namespace of a process.
async fn ip(inside: Option<u32>, lines: &str) -> Result<(), Error> {
    let mut command = match inside {
        None => Command::new("ip"),
        Some(pid) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/proc/{pid}/ns/net")).arg("ip");
            command
        }
    };
    let failed = |said: String| Error::Network { commands: lines.replace('\n', "; "), said };
    let run = async {
        command.args(["-batch", "-"]).env("PATH", packages::path()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(lines.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = run.await.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(())
}

/// The destinations in /proc/net/route.
fn routes(table: &str) -> Vec<Subnet> {
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // In the byte order of the machine, that is swapped on all we build for.
        let number = |field: &str| u32::from_str_radix(field, 16).ok().map(u32::from_be);
        let first = number(fields.get(1)?)?;
        Some(Subnet { first, bits: number(fields.get(7)?)?.count_ones() })
    };
    table.lines().skip(1).filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_a_fleet_are_apart() {
        let network = Network { number: 200 };
        let mut all = vec![network.subnet(0, 24)];
        for index in 0..MOST_CLUSTERS {
            all.extend([network.pods(index), network.services(index)]);
            assert!(
                network.subnet(0, 24).overlaps(Subnet { first: network.address(index).into(), bits: 32 })
            );
        }
        for (position, one) in all.iter().enumerate() {
            assert!(network.subnet(0, 16).overlaps(*one));
            assert!(!Network { number: 201 }.subnet(0, 16).overlaps(*one));
            assert!(all[position + 1..].iter().all(|other| !one.overlaps(*other)), "{one}");
        }
        assert_eq!(network.services(0).to_string(), "10.200.24.0/21");
        assert_eq!(network.services(0).address(10), Ipv4Addr::new(10, 200, 24, 10));
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
        assert!(routes(table)[1].overlaps(Network { number: FIRST }.pods(3)));
    }
}
