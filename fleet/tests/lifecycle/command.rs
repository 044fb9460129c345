//! Running `fleet`, and waiting for what it does.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use fleet::{Lifetime, Options};
use tokio::time::sleep;

/// A condition takes as long as it takes; this is for one that never comes.
const LIMIT: Duration = Duration::from_secs(90);
pub(crate) fn options(dir: &Path, clusters: &[&str]) -> Options {
    Options {
        dir: dir.to_owned(),
        clusters: clusters.iter().map(|cluster| cluster.parse().unwrap()).collect(),
        nodes: false,
        lifetime: Lifetime::Attached { remove: true },
    }
}

pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

pub(crate) fn fleet_command(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
    command.args(args).arg("--dir").arg(dir).env_remove("KUBEBUILDER_ASSETS").stdin(Stdio::null());
    command
}

pub(crate) fn run(args: &[&str], dir: &Path) -> Output {
    let output = fleet_command(args, dir).output().unwrap();
    eprintln!("fleet {args:?}: {}\n{}", output.status, text(&output));
    output
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < LIMIT, "still not: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Process ids of everything that has the directory in its command line, keeper included.
pub(crate) fn processes_of(dir: &Path) -> Vec<u32> {
    let dir = dir.to_str().unwrap();
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(dir).then_some(pid)
    });
    pids.filter(|pid| *pid != std::process::id()).collect()
}

pub(crate) fn script(path: &Path, body: &str) {
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
