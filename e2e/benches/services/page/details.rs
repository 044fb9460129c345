//! Everything about one run.

use std::collections::BTreeMap;

use super::{figures::Figures, head, row};
use crate::run::{Phase, Run, Side};

pub(super) fn tables(run: &Run) -> String {
    let of = Figures::of(run);
    format!(
        "\n### Times of {}\n\n{}\n### Daemons\n\nCPU seconds and peak memory in MB, while all happened and until nobody wrote any more.\n\n{}\n\
         ### API servers\n\nCPU seconds of etcd, kube-apiserver and kube-controller-manager together.\n\n{}\n\
         ### Writes for each of {} Services\n\nOf the daemons, by the audit logs; bytes are those of all requests of that kind to that API server.\n\n{}",
        run.release,
        times(run),
        daemons(run),
        servers(run),
        of.services,
        writes(&of),
    )
}

fn times(run: &Run) -> String {
    let mut text = head(["phase", "Services", "Freeport", "floor", "times"].map(str::to_owned));
    for phase in run.phases.iter().filter(|phase| phase.side == Side::Freeport) {
        let floor = run.phase(&phase.what, Side::Floor, phase.services);
        let times = floor.map(|floor| match (&phase.latency, &floor.latency) {
            (Some(ours), Some(its)) => format!("{:.2} / {:.2}", ours.p50 / its.p50, ours.p99 / its.p99),
            _ => format!("{:.2}", phase.seconds / floor.seconds),
        });
        text.push_str(&row([
            phase.what.clone(),
            phase.services.to_string(),
            time(phase),
            floor.map(time).unwrap_or_default(),
            times.unwrap_or_default(),
        ]));
    }
    text
}

fn time(phase: &Phase) -> String {
    match (&phase.latency, phase.first_seconds) {
        (Some(of), _) => format!(
            "p50 {:.0}, p99 {:.0}, longest {:.0} ms of {} in {:.1} s",
            of.p50, of.p99, of.longest, of.count, phase.seconds
        ),
        (None, Some(first)) => format!("{:.1} s, first {first:.1} s", phase.seconds),
        (None, None) => format!("{:.1} s", phase.seconds),
    }
}

fn daemons(run: &Run) -> String {
    let with_daemons = || run.phases.iter().filter(|phase| !phase.costs.daemons.is_empty());
    let mut names: Vec<_> = with_daemons().flat_map(|phase| phase.costs.daemons.keys()).collect();
    names.sort();
    names.dedup();
    let columns = names.iter().map(|name| name.trim_start_matches("freeport-").to_owned());
    let mut text = head(["phase".to_owned(), "Services".to_owned()].into_iter().chain(columns));
    for phase in with_daemons() {
        let cells = names.iter().map(|name| match phase.costs.daemons.get(*name) {
            Some(used) => format!("{:.2} s, {:.1}", used.cpu_seconds, used.peak_megabytes),
            None => String::new(),
        });
        text.push_str(&row([phase.what.clone(), phase.services.to_string()].into_iter().chain(cells)));
    }
    text
}

fn servers(run: &Run) -> String {
    let mut names: Vec<_> = run.phases.iter().flat_map(|phase| phase.costs.servers.keys()).collect();
    names.sort();
    names.dedup();
    let columns = names.iter().map(|name| (*name).clone()).chain(["requests".to_owned()]);
    let first = ["phase", "Services", "side"].map(str::to_owned);
    let mut text = head(first.into_iter().chain(columns));
    for phase in &run.phases {
        let cpu = names.iter().map(|name| match phase.costs.servers.get(*name) {
            Some(server) => format!("{:.1}", server.cpu_seconds.values().sum::<f64>()),
            None => String::new(),
        });
        let side = if phase.side == Side::Floor { "floor" } else { "Freeport" };
        let first = [phase.what.clone(), phase.services.to_string(), side.to_owned()];
        text.push_str(&row(first.into_iter().chain(cpu).chain([requests(phase)])));
    }
    text
}

/// By verb, of all API servers.
fn requests(phase: &Phase) -> String {
    let mut verbs = BTreeMap::<&str, f64>::new();
    for (kind, count) in phase.costs.servers.values().flat_map(|server| &server.requests) {
        *verbs.entry(kind.split(' ').next().unwrap_or_default()).or_default() += count;
    }
    let verbs: Vec<_> = verbs.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
    verbs.join(", ")
}

/// In and out at the size of the targets, on both sides.
fn writes(of: &Figures<'_>) -> String {
    let mut text = head(["phase", "cluster", "write", "Freeport", "floor", "bytes"].map(str::to_owned));
    for what in ["bulk", "withdraw"] {
        let (Some(phase), floor) = (of.phase(what, Side::Freeport), of.phase(what, Side::Floor)) else {
            continue;
        };
        for (cluster, kinds) in &phase.costs.writes {
            for (kind, count) in kinds {
                let each = |count: f64, of: &Phase| format!("{:.2}", count / of.services as f64);
                let at_floor = floor.map(|floor| {
                    let count = floor.costs.writes.get(cluster).and_then(|kinds| kinds.get(kind));
                    each(count.copied().unwrap_or_default() as f64, floor)
                });
                text.push_str(&row([
                    what.to_owned(),
                    cluster.clone(),
                    kind.clone(),
                    each(*count as f64, phase),
                    at_floor.unwrap_or_default(),
                    bytes(phase, cluster, kind),
                ]));
            }
        }
    }
    text
}

/// For each Service. The API server counts those of a status with those of the object.
fn bytes(phase: &Phase, cluster: &str, kind: &str) -> String {
    let kind = kind.split('/').next().unwrap_or_default();
    let bytes = phase.costs.servers.get(cluster).and_then(|server| server.bytes.get(kind));
    bytes.map(|bytes| format!("{:.0}", bytes / phase.services as f64)).unwrap_or_default()
}
