//! One Common Area: its watches, its controllers, its Lease. Its failures are its own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    antrea::Members,
    label,
    lease::{LeaseView, Settled},
    name,
};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kit::{
    boot::Env,
    drive::{Queue, before, drive},
    index::Shared,
    objects::{Change, Objects},
    store::Store,
    watch::{Source, Watches},
    write::Writer,
};
use kube::{Api, ResourceExt, runtime::watcher};
use presence::{
    heartbeat::{Announce, Heartbeats},
    lease::{Keeper, Presence},
    leases::{Leases, News},
    restore::RestoreDetector,
    vouch::Vouching,
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    cluster_set::{Reporting, Set},
    service::{
        antrea::{
            Account,
            leaving::{self, Leaving},
            marked,
        },
        entry::{Import, MERGE, Record, ServiceEntry},
        judge::{Judged, Judging, Reported},
        merge::Merging,
    },
};

/// When many members come at once the ClusterSet's status is not written for each.
const REPORT_PACE: Duration = Duration::from_secs(1);

/// Serves the Common Area `common_area` until `stop`; from the beginning again whenever it was restored from a backup. Gives its
/// name back when nothing of it is left here.
pub async fn run(env: Env, common_area: String, stop: CancellationToken) -> String {
    let mut antrea = Members::default();
    while !stop.is_cancelled() {
        match serve(&env, &common_area, antrea.clone(), &stop).await {
            Ended::Stopped => break,
            Ended::Restored => {
                tracing::warn!("restored from a backup or emptied: looking at all anew");
                env.metrics.restored(&common_area);
            }
            Ended::Marked(members) => {
                tracing::info!(members = members.annotation(), "members that run Antrea's controllers");
                antrea = members;
            }
        }
    }
    env.metrics.forget(&common_area);
    common_area
}

/// Why serving ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Stopped,
    Restored,
    /// These members run Antrea's controllers, and no others: every record may mean something else now.
    Marked(Members),
}

async fn serve(env: &Env, common_area: &str, antrea: Members, stop: &CancellationToken) -> Ended {
    tracing::info!("serving");
    let detector = RestoreDetector::new(
        Api::<Lease>::namespaced(env.client.clone(), common_area),
        name::LEADER_LEASE.into(),
    );
    let (merges, judgements) = (Queue::new(Duration::ZERO), Queue::new(Duration::ZERO));
    let services = Store::<api::ServiceName, ServiceEntry>::new([merges.clone()]);
    let reports = Store::<String, Reported>::new([judgements.clone()]);
    let leases = Shared::new(Leases::new(env.pace, Heartbeats::new(antrea.clone()), false));
    let vouching = Vouching::<api::ServiceName>::new(leases.clone());
    let (sets, reports_due) = (Shared::<Objects<Set>>::default(), Queue::new(REPORT_PACE));
    let watches = Watches::guarded(Arc::new(detector.clone()));
    let mut tasks = JoinSet::new();

    let source = |kind| Source { cluster: "leader", kind };
    let (mark, mut marks) = watch::channel(antrea.clone());
    let mut accounts = Objects::<Account>::default();
    tasks.spawn(
        watches
            .watch(
                Api::<Account>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("ServiceAccount"),
                env.metrics.clone(),
                move |change| {
                    accounts.change(change);
                    let now = marked(&accounts);
                    mark.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
                },
            )
            .in_current_span(),
    );
    let (offered, reported) = (services.clone(), reports.clone());
    let members = antrea.clone();
    let refused = env.metrics.refused(common_area);
    tasks.spawn(
        watches
            .watch(
                Api::<Record>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("ResourceExport"),
                env.metrics.clone(),
                move |change| {
                    let change = change.map(|record| Judged::of(record, &members));
                    reported.change(change.clone());
                    refused.set(i64::try_from(reported.count::<Judged>()).unwrap_or(i64::MAX));
                    offered.change(change);
                },
            )
            .in_current_span(),
    );
    let imported = services.clone();
    tasks.spawn(
        watches
            .watch(
                Api::<Import>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("ResourceImport"),
                env.metrics.clone(),
                move |change: Change<Import>| imported.change(change),
            )
            .in_current_span(),
    );
    let heard = {
        let (vouched, store) = (vouching.clone(), services.clone());
        let (members, report) = (sets.clone(), reports_due.clone());
        move |news: &News| {
            report.enqueue(members.with(|sets| sets.iter().map(ResourceExt::name_any).collect::<Vec<_>>()));
            store.enqueue(vouched.hear(news).into_iter().map(|service| (service, MERGE)).collect());
        }
    };
    let (beats, hear) = (leases.clone(), heard.clone());
    let (announces, departures) = (Shared::<Objects<Announce>>::default(), Queue::new(Duration::ZERO));
    let (known, queue) = (announces.clone(), departures.clone());
    tasks.spawn(
        watches
            .watch(
                Api::<Announce>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("MemberClusterAnnounce"),
                env.metrics.clone(),
                move |change| {
                    let heard = leaving::heard(&change);
                    known.with(|known| known.change(change.clone()));
                    queue.enqueue(heard);
                    hear(&beats.with(|leases| leases.announced(change, Instant::now(), Timestamp::now())));
                },
            )
            .in_current_span(),
    );
    let told = leases.clone();
    tasks.spawn(
        watches
            .watch(
                Api::<LeaseView>::namespaced(env.client.clone(), common_area),
                watcher::Config::default(),
                source("Lease"),
                env.metrics.clone(),
                move |change| {
                    heard(&told.with(|leases| leases.change(change, Instant::now(), Timestamp::now())))
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
                    report.enqueue(known.with(|sets| {
                        sets.change(change);
                        sets.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
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
    let says = {
        let (watches, known) = (watches.clone(), marks.clone());
        // Nothing is said of who is marked before that is known.
        move || {
            let known = watches.are_listed().then(|| known.borrow().annotation());
            known.into_iter().map(|members| (label::ANTREA_MEMBERS.to_owned(), members)).collect()
        }
    };
    let keeper = Keeper { detector, us: env.holder.clone(), pace: env.pace };
    tasks.spawn(keeper.keep_saying(says, settled, presence).in_current_span());

    let writer = Writer::new(env.client.clone(), label::LEADER, "leader", env.metrics.clone()).strict();
    let merging = Merging {
        store: services,
        vouching,
        writer: writer.clone(),
        client: env.client.clone(),
        common_area: common_area.to_owned(),
        antrea: antrea.clone(),
    };
    let judging = Judging {
        reports,
        antrea: antrea.clone(),
        writer: writer.clone(),
        events: env.events.clone(),
        log_limit: Shared::default(),
    };
    let leaving = Leaving {
        announces,
        writer: writer.clone(),
        client: env.client.clone(),
        common_area: common_area.to_owned(),
        antrea: antrea.clone(),
    };
    let reporting = Reporting {
        sets,
        leases,
        queue: reports_due.clone(),
        writer,
        env: env.clone(),
        common_area: common_area.to_owned(),
    };
    let (metrics, gauge) = (env.metrics.clone(), env.metrics.present(common_area));
    let known = marks.clone();
    let listed = async {
        watches.listed().await;
        if *known.borrow() != antrea {
            // All begins anew with those who are marked.
            std::future::pending::<()>().await;
        }
    };
    let controllers = async {
        if before(stop, listed).await {
            tokio::join!(
                drive("merge", merges, metrics.clone(), stop.clone(), |key| merging.clone().reconcile(key)),
                drive("judge", judgements, metrics.clone(), stop.clone(), |key| judging
                    .clone()
                    .reconcile(key)),
                drive("antrea", departures, metrics.clone(), stop.clone(), |key| leaving
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
            Ok(()) = marks.changed() => break Ended::Marked(marks.borrow_and_update().clone()),
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
