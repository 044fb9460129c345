//! Which process is the keeper: its process id together with its start time, so that a recycled id is never
//! taken for it.

use std::{fs, io, path::Path};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use crate::layout::Layout;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    pid: u32,
    /// Clock ticks since the machine started.
    started: u64,
}

pub(super) fn write(layout: &Layout, pid: u32, proc_root: &Path) -> io::Result<()> {
    let started = started(proc_root, pid)
        .ok_or_else(|| io::Error::other(format!("/proc tells nothing about {pid}")))?;
    layout.write_private(&layout.keeper(), &serde_json::to_vec(&Identity { pid, started })?)
}

/// The keeper's process id if that very process is still there.
pub(crate) fn is_alive(layout: &Layout) -> Option<u32> {
    let noted: Identity = serde_json::from_slice(&fs::read(layout.keeper()).ok()?).ok()?;
    (started(Path::new("/proc"), noted.pid) == Some(noted.started)).then_some(noted.pid)
}

/// Kills a keeper that does not answer; its processes end with it.
pub(crate) fn end_leftover(layout: &Layout, signal: Signal) {
    if let Some(pid) = is_alive(layout) {
        let _gone = kill(Pid::from_raw(pid.cast_signed()), signal);
    }
}

/// `None` for a process that is gone or a zombie.
fn started(proc_root: &Path, pid: u32) -> Option<u64> {
    parse_started(&fs::read_to_string(proc_root.join(format!("{pid}/stat"))).ok()?)
}

fn parse_started(stat: &str) -> Option<u64> {
    // The name in parentheses may hold spaces and parentheses itself.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    // Field 22 of proc(5); the state is field 3.
    let started = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_found_behind_any_name() {
        let tail = "1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1000 10";
        assert_eq!(parse_started(&format!("7 (a) b (c)) S {tail}")), Some(4711));
        assert_eq!(parse_started(&format!("7 (a) Z {tail}")), None);
        assert_eq!(parse_started("nonsense"), None);
    }

    #[test]
    fn this_process_has_a_start_time() {
        assert!(started(Path::new("/proc"), std::process::id()).is_some());
    }
}
