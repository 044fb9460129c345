//! The link to a leader: watches here and in the Common Area, the controllers between them, and our presence there.

mod report;
mod schemas;
mod watches;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{ServiceName, antrea::Members, label, name};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{
    anchor::Anchor,
    boot::Env,
    drive::{before, drive},
    index::Shared,
    lease::{self, Presence, Settled},
    vouch::Vouching,
    watch::Watches,
    write::Writer,
};
use kube::{Api, Client};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

pub use self::report::{Report, State};
use crate::{
    membership::Target,
    presence::{self, Heard},
    service::{export::Exporting, import::Importing, knowledge::Knowledge, status::ExportStatus},
};

/// Once present at the leader, the first lists come within seconds, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);
/// How soon an announce that was not written is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// What all parts of a link share.
#[derive(Clone)]
struct Link {
    env: Env,
    knowledge: Knowledge,
    vouching: Shared<Vouching<ServiceName>>,
    heard: Shared<Heard>,
    /// Members that run Antrea's controllers, as we take it.
    antrea: Members,
    /// Who they are as the leader said last.
    marked: Arc<watch::Sender<Members>>,
    told: Arc<Notify>,
    /// What the CRDs of this cluster do not know.
    lacking: Shared<schemas::Lacking>,
    local: Watches,
    hub: Watches,
    /// Writes our records.
    there: Writer,
    /// Writes to this cluster.
    here: Writer,
}

/// Why a link ended.
#[derive(PartialEq, Eq)]
enum Ended {
    /// It was stopped, or our ID turned out to be taken.
    Over,
    /// The Common Area was restored from a backup: all that is known of it is to be looked at anew.
    Restored,
    /// These members run Antrea's controllers, and no others: all is to be looked at anew.
    Marked(Members),
}

/// Exports and imports by way of the leader that `client` reaches, until `stop`, or until our ID turns out to be taken. Nothing is
/// exported or imported before `begin` says that it is noted whom we belong to.
pub async fn run(
    env: Env,
    target: Target,
    client: Client,
    report: watch::Sender<Report>,
    begin: watch::Receiver<bool>,
    stop: CancellationToken,
) {
    let (mut restored, mut antrea) = (false, Members::default());
    loop {
        match once(&env, &target, &client, (restored, antrea.clone()), &report, &begin, &stop).await {
            Ended::Over => break,
            Ended::Restored => {
                tracing::warn!(
                    "the Common Area was restored from a backup or emptied: what is imported is kept until vouched for"
                );
                env.metrics.restored(&target.us.common_area);
                restored = true;
            }
            Ended::Marked(members) => {
                tracing::info!(members = members.annotation(), "members that run Antrea's controllers");
                antrea = members;
            }
        }
    }
}

async fn once(
    env: &Env,
    target: &Target,
    client: &Client,
    (restored, antrea): (bool, Members),
    report: &watch::Sender<Report>,
    begin: &watch::Receiver<bool>,
    stop: &CancellationToken,
) -> Ended {
    let leases = Api::<Lease>::namespaced(client.clone(), &target.us.common_area);
    let anchor = Anchor::new(leases, name::member_lease(&target.us.cluster));
    let link = Link {
        env: env.clone(),
        knowledge: Knowledge::default(),
        vouching: Shared::new(Vouching::new(restored)),
        heard: Shared::default(),
        marked: Arc::new(watch::Sender::new(antrea.clone())),
        antrea,
        told: Arc::default(),
        lacking: Shared::default(),
        local: Watches::default(),
        hub: Watches::anchored(anchor.clone()),
        there: Writer::new(client.clone(), label::MEMBER, "leader", env.metrics.clone()).strict(),
        here: Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone()),
    };
    let mut tasks = JoinSet::new();
    link.watch_here(&mut tasks);
    link.watch_there(&mut tasks, client, target);
    link.watch_schemas(&mut tasks);

    let (presence, mut present) = watch::channel(Presence::Unknown);
    let settled = {
        let link = link.clone();
        move || {
            let now = Instant::now();
            let open = link.local.are_open(now) && link.hub.are_open(now);
            Settled::of(open, link.knowledge.exports.is_idle())
        }
    };
    tasks.spawn(lease::keep(anchor, env.holder.clone(), settled, presence));
    tasks.spawn(introduce(env.clone(), target.clone(), client.clone(), present.clone()));

    let gauge = env.metrics.present(&target.us.common_area);
    let ours = {
        let (mut present, mut begin) = (present.clone(), begin.clone());
        async move {
            let held = present.wait_for(|now| *now == Presence::Held).await.is_ok();
            if !(held && begin.wait_for(|noted| *noted).await.is_ok()) {
                // Nobody keeps our Lease any more: the link ends.
                std::future::pending::<()>().await;
            }
        }
    };
    let controllers = link.control(target, client, ours, stop.clone());
    tokio::pin!(controllers);
    let mut marks = link.marked.subscribe();
    let (mut since, mut lost) = (None::<Instant>, false);
    loop {
        let now = present.borrow_and_update().clone();
        gauge.set(i64::from(now == Presence::Held));
        if now == Presence::Held && lost {
            // What waits since the leader went need not wait for its turn.
            link.knowledge.exports.hurry();
            link.knowledge.imports.hurry();
        }
        lost = matches!(now, Presence::Failing { .. });
        let waiting = !(link.local.are_listed() && link.hub.are_listed());
        let state = match now {
            Presence::Unknown => State::Connecting,
            Presence::Held => link.sees(since.get_or_insert_with(Instant::now).elapsed()),
            Presence::Failing { failure } => State::Lost { failure },
            // Whoever took our ID while we were silent exports under it now: everything starts anew, and waits.
            Presence::Taken { .. } if since.is_some() => break,
            Presence::Taken { holder } => State::IdTaken { holder },
            Presence::Restored => return Ended::Restored,
        };
        let told = Report { state, members: link.heard.with(|heard| heard.roster.members()) };
        report.send_if_modified(|old| std::mem::replace(old, told.clone()) != told);
        tokio::select! {
            () = &mut controllers => break,
            () = link.hub.restored() => return Ended::Restored,
            Ok(members) = marks.wait_for(|members| *members != link.antrea) => return Ended::Marked(members.clone()),
            Ok(()) = present.changed() => {}
            () = link.told.notified() => {}
            () = everything_listed(&link), if waiting => {}
            () = tokio::time::sleep(PATIENCE) => {}
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    }
    gauge.set(0);
    env.metrics.doubted(0);
    Ended::Over
}

async fn everything_listed(link: &Link) {
    link.local.listed().await;
    link.hub.listed().await;
}

impl Link {
    /// What we see, having been present at the leader for so long.
    fn sees(&self, present_for: Duration) -> State {
        let now = Instant::now();
        let troubles: Vec<_> = [&self.local, &self.hub].iter().flat_map(|w| w.troubles(now)).collect();
        let unlisted: Vec<_> = [&self.local, &self.hub].iter().flat_map(|w| w.unlisted()).collect();
        match troubles.is_empty() && unlisted.is_empty() {
            true if let Some(pruned) = self.there.pruned() => State::Pruned { what: pruned.to_string() },
            true => self.heard.with(|heard| State::Connected {
                skew: heard.skew,
                leader_is_silent: heard.roster.leader_is_silent(),
                lacking: self.lacking.with(|lacking| schemas::words(lacking)),
            }),
            false if present_for < PATIENCE => State::Connecting,
            false => State::Blind { troubles, unlisted },
        }
    }

    /// Runs the controllers until `stop`. What users see is told as soon as this cluster has been seen; nothing is exported
    /// or imported before the Common Area has been seen too and our ID is `ours`.
    async fn control(
        &self,
        target: &Target,
        leader: &Client,
        ours: impl Future<Output = ()>,
        stop: CancellationToken,
    ) {
        let metrics = &self.env.metrics;
        let status = ExportStatus {
            cluster: target.us.cluster.clone(),
            knowledge: self.knowledge.clone(),
            hub: self.hub.clone(),
            writer: self.here.clone(),
            events: self.env.events.clone(),
        };
        let exporting = Exporting {
            us: target.us.clone(),
            knowledge: self.knowledge.clone(),
            antrea: self.antrea.clone(),
            local: self.env.client.clone(),
            writer: self.there.clone(),
            events: self.env.events.clone(),
        };
        let importing = Importing {
            us: target.us.clone(),
            knowledge: self.knowledge.clone(),
            vouching: self.vouching.clone(),
            antrea: self.antrea.clone(),
            leader: leader.clone(),
            writer: self.here.clone(),
            events: self.env.events.clone(),
            metrics: metrics.clone(),
        };
        let tell = async {
            if before(&stop, self.local.listed()).await {
                let look = |key| status.clone().reconcile(key);
                drive("status", self.knowledge.statuses.clone(), metrics.clone(), stop.clone(), look).await;
            }
        };
        let exchange = async {
            let everything = async {
                self.local.listed().await;
                self.hub.listed().await;
                if *self.marked.borrow() != self.antrea {
                    // All begins anew with those who are marked.
                    std::future::pending::<()>().await;
                }
                self.knowledge.mark_all();
                ours.await
            };
            if before(&stop, everything).await {
                tokio::join!(
                    drive("export", self.knowledge.exports.clone(), metrics.clone(), stop.clone(), |key| {
                        exporting.clone().reconcile(key)
                    }),
                    drive("import", self.knowledge.imports.clone(), metrics.clone(), stop.clone(), |key| {
                        importing.clone().reconcile(key)
                    }),
                );
            }
        };
        tokio::join!(tell, exchange);
    }
}

/// Announces us once we are present.
async fn introduce(env: Env, target: Target, client: Client, mut present: watch::Receiver<Presence>) {
    let writer = Writer::new(client.clone(), label::MEMBER, "leader", env.metrics.clone());
    while present.wait_for(|now| *now == Presence::Held).await.is_ok() {
        let announced =
            presence::announce(&target.us, &target.cluster_set, target.leader.as_deref(), &client, &writer)
                .await;
        match announced {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "the announce was not written, trying again"),
        }
        tokio::time::sleep(RETRY).await;
    }
}
