//! How figures are said.

use std::time::Duration;

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
