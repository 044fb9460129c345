//! One Common Area: its watches, its controllers, its Lease. Its failures are its own.

use std::time::{Duration, Instant};

use api::{label, name};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{
    anchor::Anchor,
    boot::Env,
    drive::{Queue, before, drive},
    index::{Index, Shared},
    lease::{self, LeaseView, Presence, Settled},
    vouch::Vouching,
    watch::{Source, Watches},
    write::Writer,
};
use kube::{Api, runtime::watcher};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    cluster_set::{Reporting, Set, Sets},
    service::{
        entry::{Import, Record, ServiceEntry},
        judge::{Judged, Judging, Reported},
        merge::Merging,
    },
};

/// When many members come at once the ClusterSet's status is not written for each.
const REPORT_PACE: Duration = Duration::from_secs(1);

/// Serves the Common Area `common_area` until `stop`; from the beginning again whenever it was restored from a backup. Gives its
/// name back when nothing of it is left here.
pub async fn run(env: Env, common_area: String, stop: CancellationToken) -> String {
    while serve(&env, &common_area, &stop).await == Ended::Restored && !stop.is_cancelled() {
        tracing::warn!("restored from a backup or emptied: looking at all anew");
        env.metrics.restored(&common_area);
    }
    env.metrics.forget(&common_area);
    common_area
}

/// Why serving ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Stopped,
    Restored,
}

async fn serve(env: &Env, common_area: &str, stop: &CancellationToken) -> Ended {
    tracing::info!("serving");
    let leases = Api::<Lease>::namespaced(env.client.clone(), common_area);
    let anchor = Anchor::new(leases, name::LEADER_LEASE.into());
    let services = Shared::<Index<api::ServiceName, ServiceEntry>>::default();
    let reports = Shared::<Index<String, Reported>>::default();
    let vouching = Shared::<Vouching<api::ServiceName>>::default();
    let (sets, reports_due) = (Shared::<Sets>::default(), Queue::new(REPORT_PACE));
    let (merges, judgements) = (Queue::new(Duration::ZERO), Queue::new(Duration::ZERO));
    let watches = Watches::anchored(anchor.clone());
    let mut tasks = JoinSet::new();

    let source = |kind| Source { cluster: "leader", kind };
    let (index, reported, queue, judged) =
        (services.clone(), reports.clone(), merges.clone(), judgements.clone());
    let refused = env.metrics.refused(common_area);
    tasks.spawn(
        watches
            .watch(
                Api::<Record>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("ResourceExport"),
                env.metrics.clone(),
                move |change| {
                    let change = change.map(Judged::from);
                    judged.mark(reported.with(|index| index.change(change.clone())));
                    refused.set(
                        reported.with(|index| i64::try_from(index.count::<Judged>()).unwrap_or(i64::MAX)),
                    );
                    queue.mark(index.with(|index| index.change(change)));
                },
            )
            .in_current_span(),
    );
    let (index, queue) = (services.clone(), merges.clone());
    tasks.spawn(
        watches
            .watch(
                Api::<Import>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("ResourceImport"),
                env.metrics.clone(),
                move |change| queue.mark(index.with(|index| index.change(change))),
            )
            .in_current_span(),
    );
    let (vouched, queue) = (vouching.clone(), merges.clone());
    let (members, report) = (sets.clone(), reports_due.clone());
    tasks.spawn(
        watches
            .watch(
                Api::<LeaseView>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("Lease"),
                env.metrics.clone(),
                move |change| {
                    report.mark(members.with(|sets| {
                        sets.roster.change(&change, Instant::now());
                        sets.names()
                    }));
                    queue.mark(vouched.with(|vouching| vouching.change(change)));
                },
            )
            .in_current_span(),
    );

    // By themselves: a ClusterSet that cannot be watched must not keep Services from being merged.
    let set_watch = Watches::default();
    let (known, report) = (sets.clone(), reports_due.clone());
    tasks.spawn(
        set_watch
            .watch(
                Api::<Set>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("ClusterSet"),
                env.metrics.clone(),
                move |change| {
                    report.mark(known.with(|sets| {
                        sets.change(change);
                        sets.names()
                    }))
                },
            )
            .in_current_span(),
    );

    let (presence, mut present) = watch::channel(Presence::Unknown);
    let settled = {
        let (watches, merges, judgements) = (watches.clone(), merges.clone(), judgements.clone());
        move || Settled::of(watches.are_open(Instant::now()), merges.is_idle() && judgements.is_idle())
    };
    tasks.spawn(lease::keep(anchor, env.holder.clone(), settled, presence).in_current_span());

    let writer = Writer::new(env.client.clone(), label::LEADER, "leader", env.metrics.clone()).strict();
    let merging = Merging {
        index: services,
        queue: merges.clone(),
        vouching,
        writer: writer.clone(),
        client: env.client.clone(),
        common_area: common_area.to_owned(),
    };
    let judging = Judging {
        reports,
        queue: judgements.clone(),
        writer: writer.clone(),
        events: env.events.clone(),
        brevity: Shared::default(),
    };
    let reporting = Reporting {
        sets,
        queue: reports_due.clone(),
        writer,
        env: env.clone(),
        common_area: common_area.to_owned(),
    };
    let (metrics, gauge) = (env.metrics.clone(), env.metrics.present(common_area));
    let controllers = async {
        if before(stop, watches.listed()).await {
            tokio::join!(
                drive("merge", merges, metrics.clone(), stop.clone(), |key| merging.clone().reconcile(key)),
                drive("judge", judgements, metrics.clone(), stop.clone(), |key| judging
                    .clone()
                    .reconcile(key)),
                drive("cluster_set", reports_due, metrics, stop.clone(), |key| reporting
                    .clone()
                    .reconcile(key)),
            );
        }
    };
    tokio::pin!(controllers);
    let ended = loop {
        tokio::select! {
            () = &mut controllers => break Ended::Stopped,
            () = watches.restored() => break Ended::Restored,
            Ok(()) = present.changed() => {
                let now = present.borrow_and_update().clone();
                gauge.set(i64::from(now == Presence::Held));
                tell(&now);
                if now == Presence::Restored {
                    break Ended::Restored;
                }
            }
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    };
    gauge.set(0);
    env.metrics.refused(common_area).set(0);
    for state in ["connected", "disconnected"] {
        env.metrics.members(common_area, state).set(0);
    }
    // What still runs must not count in what is forgotten next.
    tasks.shutdown().await;
    tracing::info!("served");
    ended
}

/// Says how it stands with our Lease: without it the members take us for absent.
fn tell(presence: &Presence) {
    match presence {
        Presence::Unknown => {}
        Presence::Held => tracing::info!("present: the Lease is ours"),
        Presence::Taken { holder } => tracing::warn!(holder, "another cluster holds our Lease"),
        Presence::Restored => tracing::warn!("the Lease is older than we know it, or gone"),
        Presence::Failing { failure } => {
            tracing::warn!(%failure, "cannot renew our Lease: nothing gets through in this Common Area");
        }
    }
}
