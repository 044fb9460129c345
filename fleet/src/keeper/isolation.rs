//! How a keeper makes sure that its processes end with it, however it ends.
//!
//! * [`Isolation::Namespace`] (root): the keeper is PID 1 of a PID namespace, and the kernel ends a namespace
//!   with its PID 1. It has its own /proc, since programs look themselves up there by their process id.
//! * [`Isolation::DeathSignal`]: every child asks for SIGKILL at its parent's death before it becomes the
//!   program. The signal follows the parent's *thread*: the keeper runs on its main thread alone. What such a
//!   child starts itself is not covered.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd,
        unix::process::{CommandExt, parent_id},
    },
    path::{Path, PathBuf},
    process::Command,
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::Pid,
};

use super::machine;

/// Stays right when cargo replaces the file while a keeper runs.
pub(crate) const OWN_EXECUTABLE: &str = "/proc/self/exe";
/// First argument of a child on its way to become the program.
pub(super) const CHILD: &str = "__child";

pub(super) enum Isolation {
    Namespace {
        /// The /proc outside of the namespace, which has process ids as users see them.
        outer_proc: File,
        /// The keeper's own process id outside.
        keeper: u32,
    },
    DeathSignal,
}

impl Isolation {
    /// Prepares this process so that the next child is PID 1 of a new namespace. False where rights are missing.
    pub(super) fn unshare() -> bool {
        unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS).is_ok()
    }

    /// To be called by PID 1 of the new namespace.
    pub(super) fn enter_namespace() -> io::Result<Self> {
        let outer_proc = File::open("/proc")?;
        let keeper = fs::read_link("/proc/self")?
            .to_str()
            .and_then(|pid| pid.parse().ok())
            .ok_or_else(|| io::Error::other("/proc/self is no process id"))?;
        // Slave, not private: a private copy would keep busy what is unmounted outside.
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_SLAVE | MsFlags::MS_REC, None::<&str>)?;
        mount(
            Some("proc"),
            "/proc",
            Some("proc"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
            None::<&str>,
        )?;
        Ok(Self::Namespace { outer_proc, keeper })
    }

    /// The keeper's process id as seen outside.
    pub(super) fn keeper_pid(&self) -> u32 {
        match self {
            Self::Namespace { keeper, .. } => *keeper,
            Self::DeathSignal => std::process::id(),
        }
    }

    /// The /proc in which [`Isolation::keeper_pid`] and [`Isolation::outer_pid`] are found.
    pub(super) fn proc_root(&self) -> PathBuf {
        match self {
            Self::Namespace { outer_proc, .. } => format!("/proc/self/fd/{}", outer_proc.as_raw_fd()).into(),
            Self::DeathSignal => "/proc".into(),
        }
    }

    /// A command that runs `program` as a child that ends with the keeper, in the namespaces of the process
    /// `inside` if there is one. (A keeper with the rights to make those has a PID namespace as well.)
    pub(super) fn command(&self, program: &Path, inside: Option<Pid>) -> Command {
        match (self, inside) {
            (Self::Namespace { .. }, None) => Command::new(program),
            (_, Some(machine)) => {
                let mut command = Command::new(OWN_EXECUTABLE);
                command.arg(machine::ENTER).arg(machine.to_string()).arg(program);
                command
            }
            (Self::DeathSignal, None) => {
                let mut command = Command::new(OWN_EXECUTABLE);
                command.arg(CHILD).arg(std::process::id().to_string()).arg(program);
                command
            }
        }
    }

    /// Sends SIGKILL to whatever runs in the keeper's PID namespace and is not `ours`. False if there is nothing, or
    /// no such namespace.
    pub(super) fn kill_others(&self, ours: &[Pid]) -> bool {
        let (Self::Namespace { .. }, Ok(entries)) = (self, fs::read_dir("/proc")) else { return false };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let others = pids.map(Pid::from_raw).filter(|pid| *pid != Pid::this() && !ours.contains(pid));
        others.filter(|pid| kill(*pid, Signal::SIGKILL).is_ok()).count() > 0
    }

    /// The process id outside of the keeper's child `pid`.
    pub(super) fn outer_pid(&self, pid: Pid) -> Option<u32> {
        let Self::Namespace { keeper, .. } = self else {
            return u32::try_from(pid.as_raw()).ok();
        };
        fs::read_dir(self.proc_root()).ok()?.flatten().find_map(|entry| {
            let outer: u32 = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
            let inner = field("NSpid:")?.split_whitespace().next_back()?;
            (field("PPid:")? == keeper.to_string() && inner == pid.to_string()).then_some(outer)
        })
    }
}

/// Becomes the program named in `args` (keeper's pid, program, its arguments), or returns the error.
pub(super) fn become_program(mut args: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    let keeper = args.next().and_then(|pid| pid.to_str()?.parse::<u32>().ok());
    let program = args.next().ok_or_else(|| io::Error::other("no program"))?;
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The keeper may have died before the request for the signal took effect.
    if keeper != Some(parent_id()) {
        return Err(io::Error::other("the keeper is gone"));
    }
    let failed = Command::new(&program).args(args).exec();
    Err(io::Error::new(failed.kind(), format!("{}: {failed}", program.display())))
}
