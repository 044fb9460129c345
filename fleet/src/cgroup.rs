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
    let name = format!("freeport-{hash}");
    let found = places("self")?.into_iter().map(|Place { mount_point, v1_options, own }| {
        // Below the group we are in, whose limits hold for the fleet as well; but with cgroup v2 at the top, since
        // only there a group that has processes may give controllers to groups below it.
        let above = if v1_options.is_some() { own } else { mount_point.clone() };
        Hierarchy { group: above.join(&name), mount_point, v1_options }
    });
    Ok(found.collect())
}

/// A hierarchy and where a process is in it.
#[derive(Debug, PartialEq)]
struct Place {
    mount_point: PathBuf,
    v1_options: Option<String>,
    own: PathBuf,
}

/// The groups of a process, as paths in the mounts of this one.
fn places(pid: &str) -> io::Result<Vec<Place>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    Ok(parse_places(&mounts, &groups))
}

fn parse_places(mounts: &str, groups: &str) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for Mount { root, mount_point, kind, options } in mounts.lines().filter_map(parse_mount) {
        let v1_options = match kind {
            "cgroup2" => None,
            "cgroup" => Some(mount_options(options)),
            _ => continue,
        };
        let path = Path::new(group_path(groups, v1_options.as_deref()).unwrap_or("/"));
        let path = path.strip_prefix(root).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        // What was mounted last on the same place hides the others.
        found.retain(|earlier| earlier.mount_point != mount_point);
        found.push(Place { own: mount_point.join(path), mount_point, v1_options });
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

/// The path of a process' group in a hierarchy, from its /proc/PID/cgroup. The controllers of v2 are not listed.
fn group_path<'a>(groups: &'a str, v1_options: Option<&str>) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = match v1_options {
            None => controllers.is_empty(),
            Some(options) => {
                let is_option = |controller| options.split(',').any(|option| option == controller);
                !controllers.is_empty() && controllers.split(',').all(is_option)
            }
        };
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

/// Whether nodes can have control groups. With cgroup v2 alone, a group that has processes gives no controllers to groups
/// below it, except for the root group of the whole machine: a container has only what the group at its top gives.
pub(crate) fn check() -> Result<(), String> {
    let places = places("self").map_err(|error| format!("/proc/self: {error}"))?;
    let [Place { mount_point: top, v1_options: None, .. }] = places.as_slice() else {
        return if places.is_empty() { Err(format!("no control groups in {ROOT}")) } else { Ok(()) };
    };
    let read = |file: &str| fs::read_to_string(top.join(file)).unwrap_or_default();
    let is_of_the_machine = !top.join("cgroup.type").exists();
    let gives = if is_of_the_machine || read("cgroup.procs").is_empty() {
        read("cgroup.controllers")
    } else {
        read("cgroup.subtree_control")
    };
    match missing(&gives) {
        None => Ok(()),
        Some(missing) => Err(format!("{} gives no controllers {missing} to groups below it", top.display())),
    }
}

/// Needed controllers that are not among these.
fn missing(controllers: &str) -> Option<String> {
    let lacks = |needed: &&str| !controllers.split_whitespace().any(|controller| controller == *needed);
    let missing: Vec<_> = NEEDED.into_iter().filter(lacks).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
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
        if let Some(missing) = missing(&has) {
            return Err(io::Error::other(format!("this machine gives no control groups for {missing}")));
        }
    }
    Ok(())
}

/// Puts this process where the one with this id is. Not from within the namespace: who comes from outside of it may be
/// refused (`nsdelegate`).
pub(crate) fn follow(pid: &str) -> io::Result<()> {
    places(pid)?.iter().try_for_each(|place| enter(&place.own))
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
    if let Err(error) = fs::create_dir(group)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(io::Error::new(error.kind(), format!("{}: {error}", group.display())));
    }
    // Another machine of the fleet may have made it an instant ago, and not have come to this.
    copy_cpuset(parent, group)
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

    fn own(mounts: &str, groups: &str) -> Vec<(String, Option<String>)> {
        let found = parse_places(mounts, groups);
        found.into_iter().map(|place| (place.own.to_string_lossy().into_owned(), place.v1_options)).collect()
    }

    #[test]
    fn missing_controllers_are_named() {
        assert_eq!(missing("cpuset cpu io memory hugetlb pids"), None);
        assert_eq!(missing("cpuset io memory\n").as_deref(), Some("cpu, pids"), "cpuset is not cpu");
    }

    #[test]
    fn unified_hierarchy() {
        let mounts = "\
22 1 8:1 / / rw - ext4 /dev/sda rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let groups = "0::/user.slice/session-1.scope\n";
        assert_eq!(own(mounts, groups), [("/sys/fs/cgroup/user.slice/session-1.scope".to_owned(), None)]);
        assert_eq!(parse_places(mounts, groups)[0].mount_point, Path::new("/sys/fs/cgroup"));
    }

    #[test]
    fn hierarchies_of_both_versions() {
        let mounts = "\
30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
31 23 0:27 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 23 0:28 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,release_agent=/x,name=systemd
33 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let groups = "5:memory:/limited/1\n4:cpu,cpuacct:/docker/1\n1:name=systemd:/\n0::/\n";
        assert_eq!(
            own(mounts, groups),
            [
                ("/sys/fs/cgroup/memory/limited/1".to_owned(), Some("memory".to_owned())),
                ("/sys/fs/cgroup/cpu,cpuacct/".to_owned(), Some("cpu,cpuacct".to_owned())),
                ("/sys/fs/cgroup/systemd/".to_owned(), Some("name=systemd".to_owned())),
                ("/sys/fs/cgroup/unified/".to_owned(), None),
            ]
        );
    }
}
