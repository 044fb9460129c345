//! Endpoints that change.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use e2e::waiting::{MEASURED, within};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use crate::{
    endpoints,
    meter::Meter,
    run::{Latency, Phase, Side},
    seen::Seen,
    set::{IMPORTER, Set},
};

/// Writes of users at once.
const AT_ONCE: usize = 64;

/// No number is used twice.
static MARK: AtomicU32 = AtomicU32::new(endpoints::FIRST + 1);

/// A write that a user made.
struct Change {
    service: String,
    mark: u32,
    begun: Instant,
}

/// From the write of an EndpointSlice to these or later endpoints in the importer, the Services in turn.
pub(crate) async fn churn(
    set: &Set,
    side: Side,
    seen: &Seen,
    names: &[String],
    rate: u32,
    seconds: u32,
) -> Phase {
    let meter = Meter::start(set, side).await;
    let begun = Instant::now();
    let changes = changes(set, side, names, rate, rate * seconds).await;
    within(MEASURED, "all changes are seen", || async {
        let unseen = changes.iter().filter(|change| arrived(seen, change).is_none()).count();
        if unseen == 0 { Ok(()) } else { Err(format!("{unseen} are not")) }
    })
    .await;
    let took = changes.iter().filter_map(|change| Some(arrived(seen, change)? - change.begun));
    let latency = Some(Latency::of(took.collect()));
    let last = changes.iter().filter_map(|change| arrived(seen, change)).max().unwrap_or(begun);
    Phase {
        what: format!("churn {rate}"),
        side,
        services: names.len(),
        seconds: (last - begun).as_secs_f64(),
        first_seconds: None,
        latency,
        costs: meter.stop_when_quiet().await,
    }
}

fn arrived(seen: &Seen, change: &Change) -> Option<Instant> {
    seen.changed(IMPORTER, &change.service, change.mark)
}

/// Makes so many at this rate; a machine that is too slow for it makes them later. A Service gets one change at a time: of two at once the
/// later one could be overtaken, and would never be seen.
async fn changes(set: &Set, side: Side, names: &[String], rate: u32, count: u32) -> Vec<Change> {
    let mut begins = interval(Duration::from_secs(1) / rate);
    begins.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut made, mut making, mut busy) = (Vec::<Change>::new(), JoinSet::new(), HashSet::new());
    for name in names.iter().cycle().take(count as usize) {
        begins.tick().await;
        while making.len() >= AT_ONCE || busy.contains(name) {
            let change: Change = making.join_next().await.unwrap().unwrap();
            busy.remove(&change.service);
            made.push(change);
        }
        busy.insert(name.clone());
        let (set, service, mark) = (set.clone(), name.clone(), MARK.fetch_add(1, Ordering::Relaxed));
        making.spawn(async move {
            let begun = Instant::now();
            set.change(side, &service, mark).await;
            Change { service, mark, begun }
        });
    }
    made.extend(making.join_all().await);
    made
}
