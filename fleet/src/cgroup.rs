//! The control groups of a fleet with nodes: one group per cluster below one of the fleet, in every hierarchy,
//! whether cgroup v1, v2, or both.
//!
//! A cluster's processes have a cgroup namespace whose root is the cluster's group, so that whatever its node
//! makes is below it. The kernel removes no group by itself: [`remove`] does, when nothing runs in them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

/// Where all hierarchies are.
const ROOT: &str = "/sys/fs/cgroup";
/// The group below the cluster's for processes that are in no Pod: in cgroup v2 a group that gives controllers to
/// groups below it has no processes.
const INIT: &str = "init";
/// The controllers without which runc starts nothing, if all are those of cgroup v2.
const NEEDED: [&str; 3] = ["cpu", "memory", "pids"];
/// The kernel takes a moment from a process' end until its group counts as empty.
const REMOVE_LIMIT: Duration = Duration::from_secs(5);

/// A hierarchy of this machine and the fleet's group in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hierarchy {
    mount_point: PathBuf,
    /// What to mount it with; `None` for cgroup v2.
    v1_options: Option<String>,
    /// The fleet's group.
    group: PathBuf,
}

/// The hierarchies of this machine, with a group for the fleet of this directory.
pub(crate) fn plan(dir: &Path) -> io::Result<Vec<Hierarchy>> {
    let digest = Sha256::digest(dir.as_os_str().as_encoded_bytes());
    let hash: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let own = fs::read_to_string("/proc/self/cgroup")?;
    Ok(hierarchies(&mounts, &own, &format!("freeport-{hash}")))
}

fn hierarchies(mounts: &str, own: &str, name: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for Mount { root, mount_point, kind, options } in mounts.lines().filter_map(parse_mount) {
        let hierarchy = match kind {
            // At the top, since only there a group that has processes may give controllers to groups below it.
            "cgroup2" => Hierarchy { group: mount_point.join(name), mount_point, v1_options: None },
            // Below the group we are in, whose limits hold for the fleet as well.
            "cgroup" => {
                let options = mount_options(options);
                let path = own_path(own, &options).unwrap_or("/");
                let path = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
                Hierarchy { group: mount_point.join(path).join(name), mount_point, v1_options: Some(options) }
            }
            _ => continue,
        };
        // What was mounted last on the same place hides the others.
        found.retain(|earlier| earlier.mount_point != hierarchy.mount_point);
        found.push(hierarchy);
    }
    found
}

struct Mount<'a> {
    root: &'a str,
    mount_point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

/// A line of /proc/self/mountinfo, see proc(5), if it is about a hierarchy.
fn parse_mount(line: &str) -> Option<Mount<'_>> {
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ').skip(3);
    let mut tail = tail.split(' ');
    let (root, mount_point) = (head.next()?, Path::new(head.next()?));
    let (kind, options) = (tail.next()?, tail.nth(1)?);
    mount_point.starts_with(ROOT).then(|| Mount { root, mount_point: mount_point.to_owned(), kind, options })
}

/// The controllers, or the name, of a v1 hierarchy; other options cannot be given again.
fn mount_options(options: &str) -> String {
    let not_ours = |option: &&str| {
        !matches!(*option, "rw" | "ro" | "xattr" | "clone_children" | "seclabel" | "noprefix")
            && !option.starts_with("release_agent=")
    };
    options.split(',').filter(not_ours).collect::<Vec<_>>().join(",")
}

/// The path of this process' group in the v1 hierarchy, from /proc/self/cgroup.
fn own_path<'a>(own: &'a str, options: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = !controllers.is_empty()
            && controllers.split(',').all(|controller| options.split(',').any(|option| option == controller));
        is_it.then_some(path)
    })
}

/// Makes the cluster's groups and puts this process into them: the place to unshare the namespace.
pub(crate) fn join(hierarchies: &[Hierarchy], cluster: &str) -> io::Result<()> {
    for hierarchy in hierarchies {
        let group = hierarchy.group.join(cluster);
        for group in [&hierarchy.group, &group] {
            make(group)?;
        }
        enter(&group)?;
    }
    Ok(())
}

/// Mounts the hierarchies as the new namespace shows them and moves on below its root.
pub(crate) fn mount_own(hierarchies: &[Hierarchy]) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RELATIME;
    for Hierarchy { mount_point, v1_options, .. } in hierarchies {
        // In its place, not over it, which the kernel refuses.
        umount2(mount_point, MntFlags::MNT_DETACH)?;
        let kind = if v1_options.is_some() { "cgroup" } else { "cgroup2" };
        mount(Some(kind), mount_point, Some(kind), flags, v1_options.as_deref())
            .map_err(|error| io::Error::other(format!("mounting {}: {error}", mount_point.display())))?;
        let init = mount_point.join(INIT);
        fs::create_dir(&init)?;
        copy_cpuset(mount_point, &init)?;
        enter(&init)?;
        give_controllers(mount_point);
    }
    if let [Hierarchy { mount_point, v1_options: None, .. }] = hierarchies {
        let has = fs::read_to_string(mount_point.join("cgroup.controllers"))?;
        let missing = |needed: &&str| !has.split_whitespace().any(|controller| controller == *needed);
        let missing: Vec<_> = NEEDED.into_iter().filter(missing).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(io::Error::other(format!("no control groups for {missing} are to be had here")));
        }
    }
    Ok(())
}

/// Puts this process, which has a cluster's namespaces, where the cluster's processes are.
pub(crate) fn enter_init() -> io::Result<()> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    for hierarchy in hierarchies(&mounts, "", "") {
        enter(&hierarchy.mount_point.join(INIT))?;
    }
    Ok(())
}

/// Removes the fleet's groups with all that is below them.
pub(crate) async fn remove(hierarchies: &[Hierarchy]) -> io::Result<()> {
    let deadline = Instant::now() + REMOVE_LIMIT;
    for Hierarchy { group, .. } in hierarchies {
        while let Err(error) = remove_tree(group) {
            match error.kind() {
                io::ErrorKind::NotFound => break,
                _ if Instant::now() >= deadline => return Err(error),
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    }
    Ok(())
}

/// Groups hold files that cannot be removed, and go with them.
fn remove_tree(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

fn make(group: &Path) -> io::Result<()> {
    let Some(parent) = group.parent() else { return Ok(()) };
    give_controllers(parent);
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", group.display()))),
        Ok(()) => copy_cpuset(parent, group),
    }
}

fn enter(group: &Path) -> io::Result<()> {
    let file = group.join("cgroup.procs");
    fs::write(&file, "0")
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

/// Cgroup v1: nothing can run in a group that was given no processors and no memory.
fn copy_cpuset(from: &Path, to: &Path) -> io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if !to.join("cgroup.controllers").exists() && to.join(file).exists() {
            fs::write(to.join(file), fs::read_to_string(from.join(file))?)?;
        }
    }
    Ok(())
}

/// Cgroup v2: groups below may use the controllers. Each by itself, since one that cannot be had is the kubelet's
/// to miss.
fn give_controllers(group: &Path) {
    let Ok(controllers) = fs::read_to_string(group.join("cgroup.controllers")) else { return };
    for controller in controllers.split_whitespace() {
        let _not_to_be_had = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(mounts: &str, own: &str) -> Vec<(String, Option<String>)> {
        let found = hierarchies(mounts, own, "freeport-1");
        found.into_iter().map(|h| (h.group.to_string_lossy().into_owned(), h.v1_options)).collect()
    }

    #[test]
    fn unified_hierarchy_is_used_at_its_top() {
        let mounts = "\
22 1 8:1 / / rw - ext4 /dev/sda rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let own = "0::/user.slice/session-1.scope\n";
        assert_eq!(groups(mounts, own), [("/sys/fs/cgroup/freeport-1".to_owned(), None)]);
    }

    #[test]
    fn limits_of_v1_groups_are_kept() {
        let mounts = "\
30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 23 0:27 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 23 0:28 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,release_agent=/x,name=systemd
33 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let own = "5:memory:/limited/1\n4:cpu,cpuacct:/docker/1\n1:name=systemd:/\n0::/\n";
        assert_eq!(
            groups(mounts, own),
            [
                ("/sys/fs/cgroup/memory/limited/1/freeport-1".to_owned(), Some("memory".to_owned())),
                ("/sys/fs/cgroup/cpu,cpuacct/freeport-1".to_owned(), Some("cpu,cpuacct".to_owned())),
                ("/sys/fs/cgroup/systemd/freeport-1".to_owned(), Some("name=systemd".to_owned())),
                ("/sys/fs/cgroup/unified/freeport-1".to_owned(), None),
            ]
        );
    }
}
