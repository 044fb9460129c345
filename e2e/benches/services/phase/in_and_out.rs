//! Exports, and their end.

use std::time::Instant;

use crate::{
    meter::Meter,
    run::{Latency, Phase, Side},
    seen::Seen,
    set::{IMPORTER, IMPORTERS, Set},
};

/// From a ServiceExport to an import that can be used, one after the other. They stay.
pub(crate) async fn single(set: &Set, side: Side, seen: &Seen, names: &[String]) -> Phase {
    let meter = Meter::start(set, side).await;
    let (begun, mut took) = (Instant::now(), Vec::new());
    for name in names {
        let begun = Instant::now();
        set.export(side, name).await;
        took.push(seen.ready(IMPORTER, name).await - begun);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let costs = meter.stop_when_quiet().await;
    let latency = Some(Latency::of(took));
    Phase {
        what: "single".to_owned(),
        side,
        services: names.len(),
        seconds,
        first_seconds: None,
        latency,
        costs,
    }
}

/// From the first of many ServiceExports to the last import that can be used, in all importing clusters.
pub(crate) async fn bulk(set: &Set, side: Side, seen: &Seen, names: &[String]) -> Phase {
    let meter = Meter::start(set, side).await;
    let begun = Instant::now();
    set.export_all(side, names).await;
    let mut ends = Vec::new();
    for cluster in IMPORTERS {
        ends.push(seen.all_ready(cluster, names.len()).await);
    }
    let seconds = |at: Option<Instant>| (at.unwrap() - begun).as_secs_f64();
    Phase {
        what: "bulk".to_owned(),
        side,
        services: names.len(),
        seconds: seconds(ends.iter().map(|(_, last)| *last).max()),
        first_seconds: Some(seconds(ends.iter().map(|(first, _)| *first).min())),
        latency: None,
        costs: meter.stop_when_quiet().await,
    }
}

/// From the first ServiceExport that is deleted to nothing being left, neither imports nor records.
pub(crate) async fn withdraw(set: &Set, side: Side, seen: &Seen, names: &[String]) -> Phase {
    let meter = Meter::start(set, side).await;
    let begun = Instant::now();
    set.unexport_all(side, names).await;
    let seconds = (seen.all_gone().await - begun).as_secs_f64();
    Phase {
        what: "withdraw".to_owned(),
        side,
        services: names.len(),
        seconds,
        first_seconds: None,
        latency: None,
        costs: meter.stop_when_quiet().await,
    }
}
