//! Which charts there are.

use std::{fs, path::Path};

use super::{
    chart::{Chart, Group},
    figures::{EXPORTING, Figures, IMPORTING, LEADING, p50, p99},
};
use crate::run::{Phase, Run, Side};

/// Draws all charts of these runs into a folder.
pub(crate) fn draw(folder: &Path, runs: &[Run]) {
    fs::create_dir_all(folder).unwrap();
    let all: Vec<_> = runs.iter().map(Figures::of).collect();
    for (name, chart) in [
        ("times", times(&all)),
        ("latency", latency(&all)),
        (
            "cpu",
            daemons("CPU for all Services in and out", "s", [1.5, 3.0, 2.5], &all, |of, daemon| {
                of.cpu(daemon)
            }),
        ),
        ("memory", daemons("Peak memory", "MB", [25.0, 35.0, 30.0], &all, |of, daemon| of.memory(daemon))),
        ("writes", writes(&all)),
    ] {
        chart.draw(&folder.join(format!("{name}.svg")));
    }
}

/// What is drawn of one side of a run.
type OfSide = dyn Fn(&Figures<'_>, Side) -> Option<f64>;

/// Two bars for each run: its own, and its floor.
fn beside_floors(
    title: &'static str,
    unit: &'static str,
    all: &[Figures<'_>],
    groups: &[(&str, &OfSide)],
) -> Chart {
    let bars = all.iter().flat_map(|of| [of.run.release.clone(), format!("{}: floor", of.run.release)]);
    let groups = groups.iter().map(|(name, value)| Group {
        name: (*name).to_owned(),
        values: all.iter().flat_map(|of| [value(of, Side::Freeport), value(of, Side::Floor)]).collect(),
        target: None,
    });
    Chart { title, unit, bars: bars.collect(), groups: groups.collect() }
}

fn times(all: &[Figures<'_>]) -> Chart {
    let of = |what: &'static str| move |of: &Figures<'_>, side| Some(of.phase(what, side)?.seconds);
    beside_floors(
        "All Services at once",
        "s",
        all,
        &[("exported", &of("bulk")), ("withdrawn", &of("withdraw")), ("a member joins", &of("join"))],
    )
}

fn latency(all: &[Figures<'_>]) -> Chart {
    let single = |figure: fn(&Phase) -> Option<f64>| {
        move |of: &Figures<'_>, side| {
            figure(of.run.phases.iter().find(|phase| phase.what == "single" && phase.side == side)?)
        }
    };
    let change =
        |figure: fn(&Phase) -> Option<f64>| move |of: &Figures<'_>, side| figure(of.phase("churn 50", side)?);
    beside_floors(
        "One export, and a change of endpoints at 50 a second",
        "ms",
        all,
        &[
            ("export, p50", &single(p50)),
            ("export, p99", &single(p99)),
            ("change, p50", &change(p50)),
            ("change, p99", &change(p99)),
        ],
    )
}

fn daemons(
    title: &'static str,
    unit: &'static str,
    targets: [f64; 3],
    all: &[Figures<'_>],
    value: impl Fn(&Figures<'_>, &str) -> Option<f64>,
) -> Chart {
    let names = [("leader", LEADING), ("exporter", EXPORTING), ("importer", IMPORTING)];
    let groups = names.iter().zip(targets).map(|((name, daemon), target)| Group {
        name: (*name).to_owned(),
        values: all.iter().map(|of| value(of, daemon)).collect(),
        target: Some(target),
    });
    Chart { title, unit, bars: releases(all), groups: groups.collect() }
}

fn writes(all: &[Figures<'_>]) -> Chart {
    let group = |name: &str, target, value: &dyn Fn(&Figures<'_>) -> Option<f64>| Group {
        name: name.to_owned(),
        values: all.iter().map(value).collect(),
        target: Some(target),
    };
    let groups = vec![
        group("export: Common Area", 3.0, &|of| of.in_common_area("bulk")),
        group("importing cluster", 4.0, &|of| of.in_importer("bulk")),
        group("exporter's status", 1.0, &|of| of.of_exporter(" serviceexports/status")),
        group("withdrawal: Common Area", 5.0, &|of| of.in_common_area("withdraw")),
        group("importing cluster", 3.0, &|of| of.in_importer("withdraw")),
    ];
    Chart { title: "Writes for each Service", unit: "requests", bars: releases(all), groups }
}

fn releases(all: &[Figures<'_>]) -> Vec<String> {
    all.iter().map(|of| of.run.release.clone()).collect()
}
