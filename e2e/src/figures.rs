//! How figures are said, and one that only this machine knows.

use std::time::Duration;

use crate::world::World;

/// What a daemon had resident at the most, in MiB.
pub async fn peak(world: &World, daemon: &str) -> u64 {
    let pid = world.real().fleet.process(daemon).await.unwrap().unwrap().pid().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.unwrap().parse::<u64>().unwrap() / 1024
}

/// Median, 99th of a hundred, and the longest.
pub struct Percentiles {
    pub count: usize,
    pub p50: Duration,
    pub p99: Duration,
    pub longest: Duration,
}

pub fn percentiles(mut times: Vec<Duration>) -> Percentiles {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    Percentiles { count: times.len(), p50: at(50), p99: at(99), longest: at(100) }
}

pub fn say(what: &str, figures: &Percentiles) {
    let Percentiles { count, p50, p99, longest } = figures;
    println!(
        "{what}: p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms, of {count}",
        ms(*p50),
        ms(*p99),
        ms(*longest)
    );
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
