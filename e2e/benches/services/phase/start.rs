//! Daemons that start.

use std::time::Instant;

use api::{
    lease::{LeaseView, Settled},
    name,
};
use e2e::{
    fixture::{AREA, CLUSTERS},
    waiting::{MEASURED, within},
};
use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};

use crate::{
    floor::Floor,
    meter::Meter,
    run::{Phase, Side},
    seen::Seen,
    set::{EXPORTER, IMPORTER, Set},
};

/// A member that starts with imports waiting: until the first and until all can be used. `floor` is who starts on that side.
pub(crate) async fn join(set: &Set, seen: &Seen, names: &[String], mut floor: Option<&mut Floor>) -> Phase {
    let side = if floor.is_some() { Side::Floor } else { Side::Freeport };
    set.export_all(side, names).await;
    seen.all_ready(EXPORTER, names.len()).await;
    set.quiet().await;
    let meter = Meter::start(set, side).await;
    let begun = Instant::now();
    match &mut floor {
        Some(floor) => floor.imports(IMPORTER),
        None => set.world.launch(&member(IMPORTER)).await,
    }
    let (first, last) = seen.all_ready(IMPORTER, names.len()).await;
    Phase {
        what: "join".to_owned(),
        side,
        services: names.len(),
        seconds: (last - begun).as_secs_f64(),
        first_seconds: Some((first - begun).as_secs_f64()),
        latency: None,
        costs: meter.stop_when_quiet().await,
    }
}

/// All daemons end and start again: until none has a key left to look at, and (`seconds`) until each has said on its Lease that it has
/// nothing left to write, which it says at its renewals only.
pub(crate) async fn restart(set: &Set, services: usize) -> Phase {
    set.stop_all().await;
    let meter = Meter::start(set, Side::Freeport).await;
    let (begun, at) = (Instant::now(), Timestamp::now());
    let daemons: Vec<_> = set.world.real().daemons.iter().map(|daemon| daemon.spec.name.clone()).collect();
    join_all(daemons.iter().map(|daemon| set.world.launch(daemon))).await;
    within(MEASURED, "all is reconciled", || async {
        for daemon in &daemons {
            has_looked_at(set, daemon, services).await?;
        }
        Ok(())
    })
    .await;
    let reconciled = begun.elapsed().as_secs_f64();
    within(MEASURED, "all Leases say settled", || settled_since(set, at)).await;
    Phase {
        what: "restart".to_owned(),
        side: Side::Freeport,
        services,
        seconds: begun.elapsed().as_secs_f64(),
        first_seconds: Some(reconciled),
        latency: None,
        costs: meter.stop_when_quiet().await,
    }
}

/// The daemon that is no member.
const LEADER: &str = "freeport-leader-leader";

pub(crate) fn member(cluster: &str) -> String {
    format!("freeport-member-{cluster}")
}

pub(super) async fn has_looked_at(set: &Set, daemon: &str, services: usize) -> Result<(), String> {
    let metrics = set.world.metrics(daemon).await?;
    let present = metrics.sum("freeport_present");
    let listed = |kind: &&str| metrics.of("freeport_watch_lists_total", "kind", kind).is_some();
    if daemon != LEADER && !["Service", "EndpointSlice"].iter().all(listed) {
        return Err(format!("{daemon} has not listed what is in its cluster"));
    }
    let (waiting, looked) = (metrics.sum("freeport_queue_keys"), metrics.sum("freeport_reconcile_total"));
    match present > 0.0 && waiting == 0.0 && looked >= services as f64 {
        true => Ok(()),
        false => Err(format!("{daemon}: present: {present}, {looked} keys looked at, {waiting} waiting")),
    }
}

async fn settled_since(set: &Set, at: Timestamp) -> Result<(), String> {
    let leases = Api::<LeaseView>::namespaced(set.world.leader().client.clone(), AREA);
    let leases = leases.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let says = |name: &String| {
        let is_so = |lease: &&LeaseView| lease.settled() == Settled::Yes && lease.renew_time() > Some(at);
        leases.iter().filter(|lease| lease.name_any() == *name).any(|lease| is_so(&lease))
    };
    let names = CLUSTERS.map(name::member_lease).into_iter().chain([name::LEADER_LEASE.to_owned()]);
    let silent: Vec<_> = names.filter(|name| !says(name)).collect();
    if silent.is_empty() { Ok(()) } else { Err(format!("{silent:?} do not")) }
}
