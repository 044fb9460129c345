//! What nodes need of this machine: programs that distributions have, rather than Go modules.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

/// Programs, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 8] = [
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("containerd", "containerd"),
    ("containerd-shim-runc-v2", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
];
/// What connects Pods with their node.
const CNI_PLUGINS: [&str; 3] = ["loopback", "ptp", "host-local"];
const CNI_PACKAGE: &str = "containernetworking-plugins";
/// Where Debian, upstream and Fedora put them.
const CNI_DIRS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
/// Where programs for administrators are; not in everybody's `PATH`.
const SYSTEM_DIRS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Why this machine can have no nodes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Become root.
    #[error("nodes need network namespaces and mounts, and so root: run as root, or without nodes")]
    NotRoot,
    /// Install them.
    #[error(
        "nodes need {}, missing here. On Debian and Ubuntu this installs them, and so does \
         `fleet up --nodes --install`:\n  {}",
        missing.join(", "),
        command(packages)
    )]
    Missing {
        /// Programs and plugins.
        missing: Vec<String>,
        /// The Debian packages that have them.
        packages: Vec<&'static str>,
    },
    /// Read what apt-get says.
    #[error("installing failed: {0}")]
    Install(String),
}

/// Whether this machine can have nodes.
///
/// # Errors
/// [`Error::NotRoot`], [`Error::Missing`] with all that is missing.
pub fn check() -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    let wanted = PROGRAMS.into_iter().filter(|(program, _)| find(program).is_none());
    let mut missing: Vec<String> = Vec::new();
    let mut packages: Vec<&'static str> = Vec::new();
    for (program, package) in wanted {
        missing.push(program.to_owned());
        packages.push(package);
    }
    if cni_dir().is_none() {
        missing.push(format!("the CNI plugins {}", CNI_PLUGINS.join(", ")));
        packages.push(CNI_PACKAGE);
    }
    packages.dedup();
    if missing.is_empty() { Ok(()) } else { Err(Error::Missing { missing, packages }) }
}

/// Installs what is missing, with apt-get.
///
/// # Errors
/// [`Error::NotRoot`]; [`Error::Install`] if apt-get cannot, or if something is missing still.
pub async fn install(progress: &impl Fn(&str)) -> Result<(), Error> {
    let packages = match check() {
        Err(Error::Missing { packages, .. }) => packages,
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

/// A program of the list.
pub(crate) fn program(name: &str) -> io::Result<PathBuf> {
    find(name).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no {name}")))
}

/// `PATH` for programs that look for others.
pub(crate) fn path() -> String {
    env::join_paths(search_path()).unwrap_or_default().to_string_lossy().into_owned()
}

/// The directory that has all plugins we need.
pub(crate) fn cni_dir() -> Option<&'static Path> {
    let has_all = |dir: &&str| CNI_PLUGINS.iter().all(|plugin| Path::new(dir).join(plugin).is_file());
    CNI_DIRS.iter().find(|dir| has_all(dir)).map(Path::new)
}

fn find(program: &str) -> Option<PathBuf> {
    search_path().into_iter().map(|dir| dir.join(program)).find(|path| path.is_file())
}

fn search_path() -> Vec<PathBuf> {
    let set = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&set).chain(SYSTEM_DIRS.map(PathBuf::from)).collect()
}
