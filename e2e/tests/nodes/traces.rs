//! What a fleet with nodes might leave on this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use e2e::waiting::eventually;
use fleet::{Fleet, ProcessState};

/// Where the programs of a node write if nobody prevents it.
const FIXED_PLACES: [&str; 6] =
    ["/run/containerd", "/run/netns", "/run/runc", "/var/lib/cni", "/var/lib/kubelet", "/var/log/pods"];

/// Settings of the whole machine that the programs of a node would change. Those of connections appear with the first one.
const SETTINGS: [&str; 13] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/ipv6/conf/all/accept_dad",
    "net/ipv6/conf/default/forwarding",
    "net/ipv6/conf/default/accept_dad",
    "net/ipv6/conf/default/accept_ra",
    "net/bridge/bridge-nf-call-iptables",
];

/// The content of places that are not a fleet's, and settings that are the machine's.
#[derive(Debug, PartialEq)]
pub(crate) struct Places {
    dirs: BTreeMap<PathBuf, Option<BTreeSet<PathBuf>>>,
    settings: BTreeMap<&'static str, Option<String>>,
}

impl Places {
    pub(crate) fn look() -> Self {
        let names = |dir: &str| {
            let entries = fs::read_dir(dir).ok()?;
            Some(entries.map(|entry| entry.unwrap().path()).collect::<BTreeSet<_>>())
        };
        let setting = |name: &str| fs::read_to_string(Path::new("/proc/sys").join(name)).ok();
        Self {
            dirs: FIXED_PLACES.iter().map(|place| (place.into(), names(place))).collect(),
            settings: SETTINGS.map(|name| (name, setting(name))).into(),
        }
    }
}

/// What a fleet that runs has made outside of its directory.
#[derive(Debug)]
pub(crate) struct Traces {
    /// Process id and start time, Pods' processes included.
    processes: BTreeSet<(u32, String)>,
    /// Its interface's number, which is never given to another one.
    interface: String,
    cgroups: BTreeSet<PathBuf>,
}

impl Traces {
    /// Looks for them, while nothing of the fleet is mounted where others see it.
    pub(crate) async fn of(fleet: &Fleet) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(fleet.dir().to_str().unwrap()), "{mounts}");
        let processes = fleet.processes().await.unwrap();
        let keeper = parent(pid(processes.first().unwrap())).unwrap();
        let machine = fleet.clusters()[0].machine().await.unwrap();
        let traces = Self {
            processes: descendants(keeper),
            interface: fs::read_to_string(format!("/sys/class/net/{}/ifindex", fleet.interface().unwrap()))
                .unwrap(),
            cgroups: groups(machine),
        };
        assert!(traces.processes.len() > processes.len(), "Pods as well: {traces:?}");
        assert!(traces.cgroups.iter().all(|group| group.is_dir()), "{traces:?}");
        assert!(!traces.cgroups.is_empty());
        traces
    }

    /// All of it goes.
    pub(crate) async fn are_gone(&self) {
        self.have_ended().await;
        assert_eq!(
            self.cgroups.iter().filter(|group| group.exists()).collect::<Vec<_>>(),
            [] as [&PathBuf; 0]
        );
    }

    /// All that the kernel takes back by itself goes.
    pub(crate) async fn have_ended(&self) {
        eventually("processes and interfaces are gone", || async {
            let left: Vec<_> =
                self.processes.iter().filter(|(pid, s)| started(*pid).as_ref() == Some(s)).collect();
            let interfaces = fs::read_dir("/sys/class/net").unwrap().map(|entry| entry.unwrap().path());
            let there = interfaces
                .filter_map(|path| fs::read_to_string(path.join("ifindex")).ok())
                .any(|index| index == self.interface);
            if left.is_empty() && !there {
                Ok(())
            } else {
                Err(format!("interface: {there}, processes {left:?}"))
            }
        })
        .await;
    }
}

fn pid(process: &ProcessState) -> u32 {
    process.pid.unwrap()
}

/// The fleet's control groups, as seen from outside.
fn groups(machine: u32) -> BTreeSet<PathBuf> {
    let own = fs::read_to_string(format!("/proc/{machine}/cgroup")).unwrap();
    let name = own
        .lines()
        .filter_map(|line| line.rsplit(':').next()?.split('/').find(|part| part.starts_with("freeport-")))
        .next()
        .unwrap();
    let mut found = BTreeSet::new();
    let mut dirs = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        for path in
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path())
        {
            if path.file_name().is_some_and(|file| file == name) {
                found.insert(path);
            } else {
                dirs.push(path);
            }
        }
    }
    found
}

fn descendants(root: u32) -> BTreeSet<(u32, String)> {
    let pids: Vec<u32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .collect();
    let mut found = BTreeSet::from([root]);
    loop {
        let known = found.len();
        found.extend(
            pids.iter()
                .copied()
                .filter(|pid| parent(*pid).is_some_and(|parent| found.contains(&parent)))
                .collect::<Vec<_>>(),
        );
        if found.len() == known {
            return found.into_iter().filter_map(|pid| Some((pid, started(pid)?))).collect();
        }
    }
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid, 1)?.parse().ok()
}

/// When a process started; `None` when it has ended.
fn started(pid: u32) -> Option<String> {
    stat(pid, 0).filter(|state| state != "Z" && state != "X").and_then(|_| stat(pid, 19))
}

/// A field of /proc/PID/stat, counted from the state on.
fn stat(pid: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
}
