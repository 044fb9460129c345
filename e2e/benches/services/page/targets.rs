//! What is to be reached, and what was.

use super::{
    figures::{EXPORTING, Figures, IMPORTING, LEADING, p50, p99, seconds},
    head, row,
};
use crate::run::{Run, Side};

/// A figure as it is shown, and whether it is what it is to be.
struct Measured {
    text: String,
    is_reached: bool,
}

struct Target {
    figure: &'static str,
    wanted: &'static str,
    measured: fn(&Figures<'_>) -> Option<Measured>,
}

const fn target(
    figure: &'static str,
    wanted: &'static str,
    measured: fn(&Figures<'_>) -> Option<Measured>,
) -> Target {
    Target { figure, wanted, measured }
}

/// Those of issue 17.
const TARGETS: [Target; 32] = [
    target("writes for an export: Common Area", "3", |of| plain(of.in_common_area("bulk"), 3.0)),
    target("– each importing cluster", "4", |of| plain(of.in_importer("bulk"), 4.0)),
    target("– status of the ServiceExport", "1", |of| plain(of.of_exporter(" serviceexports/status"), 1.0)),
    target("– Events", "0", |of| plain(of.of_exporter(" events"), 0.0)),
    target("writes for a withdrawal: Common Area", "<= 5", |of| plain(of.in_common_area("withdraw"), 5.0)),
    target("– each importing cluster", "3", |of| plain(of.in_importer("withdraw"), 3.0)),
    target("all exported at once", "<= 1.25 floor", |of| ratio(of.beside_floor("bulk", seconds), "s", 1.25)),
    target("all withdrawn", "<= 1.25 floor", |of| ratio(of.beside_floor("withdraw", seconds), "s", 1.25)),
    target("one export, p50", "<= 1.5 floor", |of| ratio(of.single(p50), "ms", 1.5)),
    target("– p99", "<= 2 floor", |of| ratio(of.single(p99), "ms", 2.0)),
    target("endpoint change at 1/s, p50", "", |of| ratio(of.beside_floor("churn 1", p50), "ms", f64::MAX)),
    target("endpoint change at 50/s, p50", "<= 1.5 floor", |of| {
        ratio(of.beside_floor("churn 50", p50), "ms", 1.5)
    }),
    target("– p99", "<= 3 p50", steadiness),
    target("endpoint change at 500/s, p50", "", |of| {
        ratio(of.beside_floor("churn 500", p50), "ms", f64::MAX)
    }),
    target("CPU, all in and out: leader", "1.5 s for 1,000", |of| cpu(of, LEADING, 1.5)),
    target("– exporter", "3 s for 1,000", |of| cpu(of, EXPORTING, 3.0)),
    target("– importer", "2.5 s for 1,000", |of| cpu(of, IMPORTING, 2.5)),
    target("peak memory: leader", "25 MB", |of| unit(of.memory(LEADING), "MB", 25.0)),
    target("– exporter", "35 MB", |of| unit(of.memory(EXPORTING), "MB", 35.0)),
    target("– importer", "30 MB", |of| unit(of.memory(IMPORTING), "MB", 30.0)),
    target("– exporter, for each Service more", "<= 12 kB", |of| {
        unit(of.memory_growth(EXPORTING), "kB", 12.0)
    }),
    target("– exporter beside 20,000 Services that nobody exports", "< 40 MB", |of| {
        unit(of.memory_unused(), "MB", 40.0)
    }),
    target("join: first import", "< 1 s", |of| {
        unit(of.phase("join", Side::Freeport)?.first_seconds, "s", 1.0)
    }),
    target("– all imports", "<= 1.25 floor", |of| ratio(of.beside_floor("join", seconds), "s", 1.25)),
    target("restart of all daemons: all looked at", "< 2 s", |of| {
        unit(of.phase("restart", Side::Freeport)?.first_seconds, "s", 2.0)
    }),
    target("– until all Leases say settled", "", |of| {
        unit(Some(of.phase("restart", Side::Freeport)?.seconds), "s", f64::MAX)
    }),
    target("– writes, Leases aside", "0", |of| plain(Some(restart_writes(of)?), 0.0)),
    target("idle: CPU of the busiest daemon", "< 0.1 % of a core", idle),
    target("endpoint change at 50/s, most Services against fewest", "<= 1.2", |of| {
        plain(of.latency_growth(), 1.2)
    }),
    target("one export, most hollow members against fewest", "<= 1.2", |of| plain(of.crowd_growth(), 1.2)),
    target("most hollow members reconnect at once: all served", "< 30 s", |of| {
        unit(Some(of.in_a_crowd("reconnect")?.seconds), "s", 30.0)
    }),
    target("– leader", "< 150 MB", |of| {
        let daemons = &of.in_a_crowd("reconnect")?.costs.daemons;
        unit(Some(daemons.get(LEADING)?.peak_megabytes), "MB", 150.0)
    }),
];

pub(super) fn table(runs: &[Run]) -> String {
    let all: Vec<_> = runs.iter().map(Figures::of).collect();
    let columns = all.iter().map(|of| {
        let daemons = if of.run.optimized { "" } else { ", not optimized" };
        format!("{} ({} Services{daemons})", of.run.release, of.services)
    });
    let mut text = head(["figure".to_owned(), "to reach".to_owned()].into_iter().chain(columns));
    for Target { figure, wanted, measured } in &TARGETS {
        let cells = all.iter().map(|of| match measured(of) {
            Some(Measured { text, is_reached: true }) => text,
            Some(Measured { text, .. }) => format!("**{text}**"),
            None => "–".to_owned(),
        });
        text.push_str(&row([(*figure).to_owned(), (*wanted).to_owned()].into_iter().chain(cells)));
    }
    text + "\nBold: not reached. A figure beside the floor is followed by how many times the floor it is.\n"
}

fn plain(value: Option<f64>, most: f64) -> Option<Measured> {
    let value = value?;
    // A few repetitions are no habit, but they show.
    Some(Measured { text: format!("{value:.2}"), is_reached: value <= most + 0.005 })
}

fn unit(value: Option<f64>, unit: &str, most: f64) -> Option<Measured> {
    let value = value?;
    Some(Measured { text: format!("{value:.1} {unit}"), is_reached: value <= most })
}

fn ratio(value: Option<(f64, f64)>, unit: &str, most: f64) -> Option<Measured> {
    let (value, ratio) = value?;
    Some(Measured { text: format!("{value:.1} {unit}: {ratio:.2}"), is_reached: ratio <= most })
}

/// p99 against the median.
fn steadiness(of: &Figures<'_>) -> Option<Measured> {
    let latency = of.phase("churn 50", Side::Freeport)?.latency.as_ref()?;
    let (p99, times) = (latency.p99, latency.p99 / latency.p50);
    Some(Measured { text: format!("{p99:.1} ms: {times:.1}"), is_reached: times <= 3.0 })
}

/// What was measured with another number of Services counts in proportion.
fn cpu(of: &Figures<'_>, daemon: &str, most: f64) -> Option<Measured> {
    unit(of.cpu(daemon), "s", most * of.services as f64 / 1000.0)
}

fn restart_writes(of: &Figures<'_>) -> Option<f64> {
    let writes = &of.phase("restart", Side::Freeport)?.costs.writes;
    Some(writes.values().flat_map(|kinds| kinds.values()).sum::<usize>() as f64)
}

fn idle(of: &Figures<'_>) -> Option<Measured> {
    let idle = of.phase("idle", Side::Freeport)?;
    let share = |process: &crate::run::Process| process.cpu_seconds / idle.costs.seconds * 100.0;
    let busiest = idle.costs.daemons.values().map(share).reduce(f64::max)?;
    Some(Measured { text: format!("{busiest:.2} %"), is_reached: busiest < 0.1 })
}
