//! What is read out of a run.

use crate::{
    run::{Phase, Run, Side},
    set::{EXPORTER, IMPORTER},
};

/// The size that the targets are about.
const WANTED: usize = 1000;

pub(super) const LEADING: &str = "freeport-leader-leader";
pub(super) const EXPORTING: &str = "freeport-member-east";
pub(super) const IMPORTING: &str = "freeport-member-west";

/// A run, and the number of Services that its figures are about.
pub(super) struct Figures<'a> {
    pub(super) run: &'a Run,
    pub(super) services: usize,
}

impl<'a> Figures<'a> {
    /// At 1,000 Services, or at the most that there were.
    pub(super) fn of(run: &'a Run) -> Self {
        let sizes = sizes(run);
        let wanted = sizes.iter().find(|size| **size == WANTED).or(sizes.last());
        Self { run, services: wanted.copied().unwrap_or_default() }
    }

    pub(super) fn phase(&self, what: &str, side: Side) -> Option<&'a Phase> {
        self.run.phase(what, side, self.services)
    }

    /// What Freeport did, and how many times what the floor did that is.
    pub(super) fn beside_floor(&self, what: &str, of: impl Fn(&Phase) -> Option<f64>) -> Option<(f64, f64)> {
        let freeport = of(self.phase(what, Side::Freeport)?)?;
        let floor = of(self.phase(what, Side::Floor)?)?;
        Some((freeport, freeport / floor))
    }

    /// The same of exports one after the other, of which there is one number.
    pub(super) fn single(&self, of: impl Fn(&Phase) -> Option<f64>) -> Option<(f64, f64)> {
        let phase = |side| self.run.phases.iter().find(|phase| phase.what == "single" && phase.side == side);
        let (freeport, floor) = (of(phase(Side::Freeport)?)?, of(phase(Side::Floor)?)?);
        Some((freeport, freeport / floor))
    }

    /// Writes for each Service, in one cluster, of what is meant.
    pub(super) fn writes(&self, what: &str, cluster: &str, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
        let phase = self.phase(what, Side::Freeport)?;
        let all = phase.costs.writes.get(cluster).into_iter().flatten();
        let count: usize = all.filter(|(kind, _)| is_meant(kind)).map(|(_, count)| count).sum();
        Some(count as f64 / phase.services as f64)
    }

    pub(super) fn in_common_area(&self, what: &str) -> Option<f64> {
        self.writes(what, "leader", |kind| {
            kind.ends_with(" resourceexports") || kind.ends_with(" resourceimports")
        })
    }

    pub(super) fn in_importer(&self, what: &str) -> Option<f64> {
        self.writes(what, IMPORTER, |_| true)
    }

    pub(super) fn of_exporter(&self, kind: &str) -> Option<f64> {
        self.writes("bulk", EXPORTER, |written| written.ends_with(kind))
    }

    /// CPU seconds for all Services in and out.
    pub(super) fn cpu(&self, daemon: &str) -> Option<f64> {
        let of = |what| Some(self.phase(what, Side::Freeport)?.costs.daemons.get(daemon)?.cpu_seconds);
        Some(of("bulk")? + of("withdraw")?)
    }

    /// The most memory in any phase.
    pub(super) fn memory(&self, daemon: &str) -> Option<f64> {
        memory(self.run, daemon, self.services)
    }

    /// The most memory of a member in a cluster with many Services that nobody exports.
    pub(super) fn memory_unused(&self) -> Option<f64> {
        let phase = self.run.phases.iter().find(|phase| phase.what == "unused")?;
        Some(phase.costs.daemons.get(EXPORTING)?.peak_megabytes)
    }

    /// Kilobytes for each Service more, from the fewest to the most.
    pub(super) fn memory_growth(&self, daemon: &str) -> Option<f64> {
        let sizes = sizes(self.run);
        let (few, many) = (*sizes.first()?, *sizes.last()?);
        let more = memory(self.run, daemon, many)? - memory(self.run, daemon, few)?;
        (many > few).then(|| more * 1000.0 / (many - few) as f64)
    }

    /// The phase of this name with the most hollow members.
    pub(super) fn in_a_crowd(&self, what: &str) -> Option<&'a Phase> {
        self.crowds(what).last().copied()
    }

    /// How many times the median of an export among the fewest hollow members is the one among the most.
    pub(super) fn crowd_growth(&self) -> Option<f64> {
        let all = self.crowds("single among");
        (all.len() > 1).then_some(())?;
        Some(p50(all.last()?)? / p50(all.first()?)?)
    }

    /// Phases of this name, by the number of hollow members.
    fn crowds(&self, what: &str) -> Vec<&'a Phase> {
        let members = |phase: &Phase| phase.what.strip_prefix(what)?.trim().parse::<usize>().ok();
        let mut all: Vec<_> = self.run.phases.iter().filter(|phase| members(phase).is_some()).collect();
        all.sort_by_key(|phase| members(phase));
        all
    }

    /// How many times the median of changes with the fewest Services is the one with the most.
    pub(super) fn latency_growth(&self) -> Option<f64> {
        let sizes = sizes(self.run);
        let (few, many) = (*sizes.first()?, *sizes.last()?);
        let of = |size| Some(self.run.phase("churn 50", Side::Freeport, size)?.latency.as_ref()?.p50);
        let growth = of(many)? / of(few)?;
        (many > few).then_some(growth)
    }
}

/// How the names of phases begin that have a number of Services of their own.
const APART: [&str; 4] = ["single", "unused", "hollow", "reconnect"];

fn is_apart(phase: &Phase) -> bool {
    APART.iter().any(|apart| phase.what.starts_with(apart))
}

/// Of all phases with many exports.
pub(super) fn sizes(run: &Run) -> Vec<usize> {
    let many = run.phases.iter().filter(|phase| !is_apart(phase));
    let mut sizes: Vec<_> = many.map(|phase| phase.services).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn memory(run: &Run, daemon: &str, services: usize) -> Option<f64> {
    let phases = run.phases.iter().filter(|phase| !is_apart(phase) && phase.services == services);
    let peaks = phases.filter_map(|phase| Some(phase.costs.daemons.get(daemon)?.peak_megabytes));
    peaks.reduce(f64::max)
}

pub(super) fn seconds(phase: &Phase) -> Option<f64> {
    Some(phase.seconds)
}

pub(super) fn p50(phase: &Phase) -> Option<f64> {
    Some(phase.latency.as_ref()?.p50)
}

pub(super) fn p99(phase: &Phase) -> Option<f64> {
    Some(phase.latency.as_ref()?.p99)
}
