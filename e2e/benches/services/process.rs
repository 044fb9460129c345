//! What the kernel says of a process.

use std::fs;

/// Parts of a second in which the kernel counts CPU time, on all Linux that we know.
const TICKS: f64 = 100.0;

/// CPU seconds since it began, children aside.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may hold spaces.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |field: usize| after_name.split_whitespace().nth(field)?.parse::<f64>().ok();
    let (user, system) = (ticks(11).unwrap_or_default(), ticks(12).unwrap_or_default());
    (user + system) / TICKS
}

/// The most memory it had since it began or since [`forget_peak`].
pub(crate) fn peak_megabytes(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    peak.unwrap_or(0.0) * 1024.0 / 1e6
}

/// From now on the peak is that of what comes.
pub(crate) fn forget_peak(pid: u32) {
    let forgotten = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    if let Err(error) = forgotten {
        eprintln!("the peak of memory of process {pid} is that of its whole life: {error}");
    }
}
