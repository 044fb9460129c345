//! The processes of a fleet with nodes that are nothing but namespaces.
//!
//! * The *machine* of a cluster holds a network, a cgroup and a mount namespace, in which the cluster's other
//!   processes run as if they had a machine for themselves: two kubelets share neither addresses nor /run.
//! * The *switch* holds the network namespace with the bridge that connects the machines.
//!
//! No name or mount refers to any of these namespaces: whatever is in them (interfaces, routes, packet filters,
//! mounts) is gone when their processes are gone, even if no process is left to clean up.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::{self, File},
    io,
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    sys::prctl,
    unistd,
};
use serde::{Deserialize, Serialize};

use crate::{
    cgroup::{self, Hierarchy},
    layout::Layout,
};

/// First argument of a switch.
pub(crate) const SWITCH: &str = "__switch";
/// First argument of a machine, followed by its [`MachineSpec`] in JSON.
pub(crate) const MACHINE: &str = "__machine";
/// First argument of a process on its way into a machine, followed by the machine's process id and the program.
pub(super) const ENTER: &str = "__enter";

/// Directories where the programs of a node write at fixed places. Each machine writes to its own copy.
const OWN_COPIES: [&str; 3] = ["/run", "/var/lib", "/var/log"];
/// Directories of a node that are on the disk: where the node finds them, and where in the cluster's directory they
/// are.
const ON_DISK: [(&str, &str); 3] =
    [("/var/lib/containerd", "containerd"), ("/var/lib/kubelet", "kubelet"), ("/var/log/pods", "pods")];
/// Settings of the whole machine that a kubelet checks: it sees a file with the value it requires instead.
const KERNEL_SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// Of the machine's own network, if a cluster of the fleet has IPv6: it routes for its Pods, whose gateway has to be usable at once, and
/// no router advertises routes.
const IPV6_SETTINGS: [(&str, &str); 5] = [
    ("all/disable_ipv6", "0"),
    ("all/forwarding", "1"),
    ("all/accept_dad", "0"),
    ("default/accept_dad", "0"),
    ("default/accept_ra", "0"),
];

/// What a machine is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MachineSpec {
    /// Of the group of its processes, below the fleet's in each hierarchy.
    pub(crate) group: String,
    pub(crate) cgroups: Vec<Hierarchy>,
    /// Seen in the machine as it is outside.
    pub(crate) shared_dir: PathBuf,
    /// What the machine has on disk.
    pub(crate) own_dir: PathBuf,
    pub(crate) has_ipv6: bool,
}

/// Holds a network namespace until SIGTERM.
pub(super) fn be_switch() -> io::Result<()> {
    prctl::set_name(c"fleet-switch")?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    hold()
}

/// Holds the namespaces of a cluster until SIGTERM. The network namespace comes last: whoever sees that this process
/// has its own knows that all is done.
pub(super) fn be_machine(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let spec = args.next().ok_or_else(|| io::Error::other("the machine's specification is missing"))?;
    let spec: MachineSpec = serde_json::from_slice(spec.as_encoded_bytes())?;
    prctl::set_name(c"fleet-machine")?;
    cgroup::join(&spec.cgroups, &spec.group)?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWCGROUP)?;
    make_file_systems(&spec)?;
    unistd::chdir("/")?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    if spec.has_ipv6 {
        for (setting, value) in IPV6_SETTINGS {
            fs::write(Path::new("/proc/sys/net/ipv6/conf").join(setting), value)?;
        }
    }
    hold()
}

/// What the machine's processes see in place of this machine's directories.
fn make_file_systems(spec: &MachineSpec) -> io::Result<()> {
    // The fleet's directory stays shared, wherever it is.
    let fleet_dir = File::open(&spec.shared_dir)?;
    cgroup::mount_own(&spec.cgroups)?;
    let scratch = spec.own_dir.join("scratch");
    Layout::make_private_dir(&scratch)?;
    mount(Some("tmpfs"), &scratch, Some("tmpfs"), MsFlags::empty(), Some("mode=755"))?;
    // The paths of overlays: relative, since colons and commas have a meaning to the kernel.
    unistd::chdir(&scratch)?;
    for dir in OWN_COPIES {
        own_copy(dir)?;
    }
    let real_dir = fs::canonicalize(&spec.shared_dir)?;
    if OWN_COPIES.iter().any(|copied| real_dir.starts_with(copied)) {
        bind(Path::new(&format!("/proc/self/fd/{}", fleet_dir.as_raw_fd())), &real_dir)?;
    }
    for (place, name) in ON_DISK {
        let dir = spec.own_dir.join(name);
        Layout::make_private_dir(&dir)?;
        fs::create_dir_all(place)?;
        bind(&dir, Path::new(place))?;
    }
    for (setting, value) in KERNEL_SETTINGS {
        let shown = PathBuf::from(setting.replace('/', "."));
        let file = Path::new("/proc/sys").join(setting);
        if file.exists() {
            fs::write(&shown, value)?;
            bind(&shown, &file)?;
        }
    }
    Ok(())
}

fn hold() -> io::Result<()> {
    loop {
        unistd::pause();
    }
}

/// Mounts an overlay in memory over a directory: reads see the directory, writes go to the overlay.
fn own_copy(dir: &str) -> io::Result<()> {
    let Ok(dir) = fs::canonicalize(dir) else { return Ok(()) };
    let own = dir.to_string_lossy().trim_start_matches('/').replace('/', "-");
    for part in ["upper", "work"] {
        fs::create_dir_all(format!("{own}/{part}"))?;
    }
    let options = format!("lowerdir={},upperdir={own}/upper,workdir={own}/work", dir.display());
    mount(Some("overlay"), &dir, Some("overlay"), MsFlags::empty(), Some(options.as_str()))
        .map_err(|error| io::Error::other(format!("overlay over {}: {error}", dir.display())))
}

fn bind(from: &Path, to: &Path) -> io::Result<()> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(|error| {
        io::Error::other(format!("mounting {} on {}: {error}", from.display(), to.display()))
    })
}

/// Becomes the program named in `args` (machine's pid, program, its arguments) in a machine, or returns the error.
pub(super) fn enter(mut args: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    let missing = || io::Error::other("no machine and program");
    let machine = args.next().and_then(|pid| pid.into_string().ok()).ok_or_else(missing)?;
    let program = args.next().ok_or_else(missing)?;
    let open = |kind: &str| File::open(format!("/proc/{machine}/ns/{kind}"));
    let [net, cgroups, mounts] = [open("net")?, open("cgroup")?, open("mnt")?];
    cgroup::follow(&machine)?;
    setns(net, CloneFlags::CLONE_NEWNET)?;
    setns(cgroups, CloneFlags::CLONE_NEWCGROUP)?;
    setns(mounts, CloneFlags::CLONE_NEWNS)?;
    let failed = Command::new(&program).args(args).exec();
    Err(io::Error::new(failed.kind(), format!("{}: {failed}", program.display())))
}

/// Whether a switch or machine with this process id, as seen from here, has made its namespaces.
pub(crate) fn is_complete(pid: u32) -> Result<(), String> {
    let network = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).map_err(|error| error.to_string());
    if network(&pid.to_string())? == network("self")? {
        return Err("its network namespace is not made yet".into());
    }
    Ok(())
}
