//! Many members.

use std::time::Instant;

use super::single;
use crate::{
    hollow::Hollow,
    meter::Meter,
    run::{Phase, Side},
    seen::Seen,
    set::Set,
};

/// Exports one after the other among so many hollow members, each with so many Services.
const SAMPLES: usize = 50;

/// So many hollow members connect (`seconds`: until all are served and their Services merged), are there while others export one Service after
/// the other, and lose all their connections at once (until all are served again).
pub(crate) async fn hollow(set: &Set, members: usize, services: usize) -> Vec<Phase> {
    let (side, leader) = (Side::Freeport, set.world.leader());
    let seen = Seen::watch(set, side);
    let meter = Meter::start(set, side).await;
    let begun = Instant::now();
    let crowd = Hollow::connect(set, members).await;
    crowd.served().await;
    let exported = crowd.export(leader, services).await;
    seen.merged(exported).await;
    let seconds = begun.elapsed().as_secs_f64();
    let costs = meter.stop_when_quiet().await;
    let phase = |what: &str, seconds, costs| Phase {
        what: format!("{what} {members}"),
        side,
        services: exported,
        seconds,
        first_seconds: None,
        latency: None,
        costs,
    };
    let mut phases = vec![phase("hollow", seconds, costs)];

    let names = set.services(side, &format!("among-{members}"), SAMPLES).await;
    let among = single(set, side, &seen, &names).await;
    phases.push(Phase { what: format!("single among {members}"), ..among });
    set.unexport_all(side, &names).await;
    set.remove_services(side, &names).await;
    set.quiet().await;

    let meter = Meter::start(set, side).await;
    drop(crowd);
    let begun = Instant::now();
    let crowd = Hollow::connect(set, members).await;
    crowd.served().await;
    phases.push(phase("reconnect", begun.elapsed().as_secs_f64(), meter.stop().await));
    crowd.leave(leader).await;
    seen.all_gone().await;
    phases
}
