//! What is installed on this machine: programs, plugins and libraries of the distribution.

use std::{
    env, io,
    path::{Path, PathBuf},
};

/// What connects Pods with their node.
pub(crate) const CNI_PLUGINS: [&str; 4] = ["loopback", "tuning", "ptp", "host-local"];
/// Where Debian, upstream and Fedora put them.
const CNI_DIRS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
/// Where programs for administrators are; the `PATH` of other users often lacks them.
const SYSTEM_DIRS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The C library's static form, for images that hold nothing else.
const STATIC_LIBC: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/libc.a",
    "/usr/lib/aarch64-linux-gnu/libc.a",
    "/usr/lib64/libc.a",
    "/usr/lib/libc.a",
];

/// Whether programs can be linked statically.
pub(crate) fn has_static_libc() -> bool {
    STATIC_LIBC.iter().any(|library| Path::new(library).is_file())
}

/// A program that has to be there.
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

/// Where a program is, if it is there.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    search_path().into_iter().map(|dir| dir.join(program)).find(|path| path.is_file())
}

fn search_path() -> Vec<PathBuf> {
    let set = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&set).chain(SYSTEM_DIRS.map(PathBuf::from)).collect()
}
