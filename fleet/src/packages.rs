//! What nodes need of this machine: programs that distributions have, rather than Go modules.

use std::{fs, process::Stdio};

use tokio::process::Command;

use crate::{
    ClusterSpec, Family, cgroup,
    installed::{CNI_PLUGINS, cni_dir, find, has_static_libc, path},
};

/// Programs, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 9] = [
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("containerd", "containerd"),
    ("containerd-shim-runc-v2", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
];
/// Has the plugins that connect Pods with their node.
const CNI_PACKAGE: &str = "containernetworking-plugins";
/// Has the C library's static form, for images that hold nothing else.
const LIBC_PACKAGE: &str = "libc6-dev";
/// Tries what a node's machine needs, in namespaces that leave nothing behind.
const TRIAL: &str =
    "mount -t tmpfs none /mnt && ip link add trial type bridge && nft list ruleset > /dev/null";
/// Tries what clusters with IPv6 need, likewise.
const IPV6_TRIAL: &str = "ip link add trial type bridge && ip address add fd46:7265:6570::1/64 dev trial nodad && \
     nft add table ip6 trial && nft 'add chain ip6 trial trial { type nat hook prerouting priority 0 ; }'";
/// Holds 1 if new interfaces get no IPv6.
const IPV6_DISABLED: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";

/// Why this machine can have no nodes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Become root, and install them.
    #[error("nodes need {}", needs(*is_root, missing, packages))]
    Missing {
        /// Whether we are root, which it takes.
        is_root: bool,
        /// Programs, plugins, libraries.
        missing: Vec<String>,
        /// The Debian packages that have them.
        packages: Vec<&'static str>,
    },
    /// Use a machine, or a container, that may do more.
    #[error(
        "nodes need namespaces, mounts and control groups of their own, which this machine does not allow: {0}"
    )]
    Forbidden(String),
    /// Do without clusters with IPv6, or let this machine have it.
    #[error("clusters with IPv6 need a machine that has it: {0}")]
    NoIpv6(String),
    /// Read what apt-get says.
    #[error("installing failed: {0}")]
    Install(String),
}

fn needs(is_root: bool, missing: &[String], packages: &[&str]) -> String {
    let root = (!is_root).then(|| "root".to_owned());
    let programs = (!missing.is_empty()).then(|| format!("{} (missing here)", missing.join(", ")));
    let needed: Vec<_> = root.into_iter().chain(programs).collect();
    let cure = if packages.is_empty() {
        String::new()
    } else {
        format!(". On Debian and Ubuntu, --install runs this, as root: {}", command(packages))
    };
    format!("{}{cure}", needed.join(" and "))
}

/// Whether this machine can have nodes.
///
/// # Errors
/// [`Error::Missing`] with all that is missing; [`Error::Forbidden`].
pub fn check() -> Result<(), Error> {
    let wanted = PROGRAMS.into_iter().filter(|(program, _)| find(program).is_none());
    let (mut missing, mut packages): (Vec<String>, Vec<&'static str>) =
        wanted.map(|(program, package)| (program.to_owned(), package)).unzip();
    if cni_dir().is_none() {
        missing.push(format!("the CNI plugins {}", CNI_PLUGINS.join(", ")));
        packages.push(CNI_PACKAGE);
    }
    if !has_static_libc() {
        missing.push("libc.a".into());
        packages.push(LIBC_PACKAGE);
    }
    packages.dedup();
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root || !missing.is_empty() {
        return Err(Error::Missing { is_root, missing, packages });
    }
    try_out(TRIAL).and_then(|()| cgroup::check()).map_err(Error::Forbidden)
}

/// Whether this machine can have nodes for these clusters.
///
/// # Errors
/// Those of [`check`], and [`Error::NoIpv6`].
pub fn check_for(clusters: &[ClusterSpec]) -> Result<(), Error> {
    check()?;
    if !clusters.iter().any(|cluster| cluster.families.has(Family::Ipv6)) {
        return Ok(());
    }
    let why_not = match fs::read_to_string(IPV6_DISABLED) {
        Err(error) => Err(format!("{IPV6_DISABLED}: {error}")),
        Ok(value) if value.trim() == "1" => Err(format!("{IPV6_DISABLED} is 1")),
        Ok(_) => try_out(IPV6_TRIAL),
    };
    why_not.map_err(Error::NoIpv6)
}

fn try_out(trial: &str) -> Result<(), String> {
    let tried = std::process::Command::new("unshare")
        .args(["--mount", "--net", "--cgroup", "--propagation", "private", "sh", "-ec", trial])
        .env("PATH", path())
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

/// Installs what is missing, with apt-get.
///
/// # Errors
/// [`Error::Missing`] without root, or if something is missing still; [`Error::Install`] if apt-get cannot.
pub async fn install(progress: &impl Fn(&str)) -> Result<(), Error> {
    let packages = match check() {
        Ok(()) => {
            progress("everything that nodes need is installed");
            return Ok(());
        }
        Err(Error::Missing { is_root: true, packages, .. }) => packages,
        other => return other,
    };
    let command = command(&packages);
    progress(&format!("running {command}"));
    let run = Command::new("sh")
        .args(["-c", &command])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    match run.await {
        Ok(status) if status.success() => check(),
        Ok(status) => Err(Error::Install(status.to_string())),
        Err(error) => Err(Error::Install(error.to_string())),
    }
}

fn command(packages: &[&str]) -> String {
    format!("apt-get update && apt-get install --yes --no-install-recommends {}", packages.join(" "))
}
