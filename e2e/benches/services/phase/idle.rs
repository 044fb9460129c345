//! Nothing happens.

use std::time::Duration;

use crate::{
    meter::Meter,
    run::{Phase, Side},
    set::Set,
};

pub(crate) async fn idle(set: &Set, services: usize, time: Duration) -> Phase {
    set.quiet().await;
    let meter = Meter::start(set, Side::Freeport).await;
    tokio::time::sleep(time).await;
    let costs = meter.stop().await;
    Phase {
        what: "idle".to_owned(),
        side: Side::Freeport,
        services,
        seconds: costs.seconds,
        first_seconds: None,
        latency: None,
        costs,
    }
}
