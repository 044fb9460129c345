//! Reports: watches the ClusterReports in the Common Area, and takes in what other clusters say of their imports, for the status of our
//! ServiceExports; writes our own, which says how our exports and imports are doing; deletes it when this cluster leaves. Safe to run
//! twice: a report is a function of what is watched and of what it said before, and only differences are written.
//!
//! Where the leader's cluster does not have the kind, or our rights are older than it, nothing is reported and nothing fails.
//!
//! | module | holds |
//! |---|---|
//! | [`watching`] | the watch of all reports |
//! | [`view`] | a report as it is read and written |
//! | [`standing`] | how an import stands: pure |
//! | [`content`] | what our report says: pure |
//! | [`pace`] | when it is written, and how often those of others count: pure |
//! | [`heard`] | what others report, as it counts here: pure |

mod content;
mod heard;
mod pace;
mod standing;
mod view;
mod watching;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{condition::Status, label, mcs::VALID};
use jiff::Timestamp;
use kit::{
    boot::Env,
    drive::{before, drive},
    failure::{Failure, classify},
    index::Shared,
    metrics::Metrics,
    objects::Objects,
    queue::{Outcome, Queue},
    watch::Watches,
    write::{Error, Writer},
};
use kube::{Api, Client};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::{
    content::{Found, desired, difference, whole_seconds},
    pace::Pace,
    standing::standing,
    view::Report,
    watching::is_absent,
};
use super::{import::Room, index::view::Export, knowledge::Knowledge};
use crate::{feature::Access, identity::Identity};

/// Shortest time between two looks at what there is to report.
const LOOK: Duration = Duration::from_secs(2);

/// What the features of this member are called, in the reports.
pub(crate) type Features = Arc<[&'static str]>;

/// What the daemon keeps of its report, whatever becomes of sessions. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Pacing {
    features: Features,
    pace: Shared<Pace>,
}

impl Pacing {
    /// A member that has these features, and has written no report.
    pub(crate) fn new(features: Features) -> Self {
        Self { features, pace: Shared::default() }
    }

    /// Begins anew: this cluster leaves, and its report is deleted.
    pub(crate) fn forget(&self) {
        self.pace.with(|pace| *pace = Pace::default());
    }
}

/// Our report and those of others, in one session. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Reporting {
    us: Identity,
    knowledge: Knowledge,
    room: Shared<Room>,
    pacing: Pacing,
    leader: Client,
    metrics: Metrics,
    writer: Writer,
    watches: Watches,
    reports: Shared<Objects<Report>>,
    is_listed: watch::Sender<bool>,
    queue: Queue<String>,
    /// Others report something else.
    told: Arc<Notify>,
    /// The kind may be served by now.
    installed: Arc<Notify>,
}

impl Reporting {
    /// For a session in which imports have this room.
    pub(crate) fn new(access: &Access, knowledge: Knowledge, room: Shared<Room>, pacing: Pacing) -> Self {
        let Access { env, us, leader, guard, .. } = access;
        Self {
            us: us.clone(),
            knowledge,
            room,
            pacing,
            leader: leader.clone(),
            metrics: env.metrics.clone(),
            writer: writer(env, leader),
            watches: guard.clone().map(Watches::guarded).unwrap_or_default(),
            reports: Shared::default(),
            is_listed: watch::Sender::new(false),
            queue: Queue::new(LOOK),
            told: Arc::default(),
            installed: Arc::default(),
        }
    }

    /// The watch of the reports, for which nothing else waits.
    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    /// Something of our exports or imports may be another than it was.
    pub(crate) fn look_again(&self) {
        self.queue.enqueue([self.us.cluster.clone()]);
    }

    /// Carries out a reconcile of an export or an import, which may change what there is to report.
    pub(crate) fn after<T>(
        &self,
        reconcile: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static
    where
        T: Send,
    {
        let this = self.clone();
        async move {
            let done = reconcile.await;
            this.look_again();
            done
        }
    }

    /// The CRD of the reports may be another one.
    pub(crate) fn list_again(&self) {
        self.watches.list_again();
        self.writer.forget_undeclared();
        self.installed.notify_one();
        self.look_again();
    }

    /// Tries at once what failed.
    pub(crate) fn retry_failed(&self) {
        self.queue.retry_failed();
    }

    /// Keeps our report up to date until `stop`.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let mut is_listed = self.is_listed.subscribe();
        if !before(stop, is_listed.wait_for(|listed| *listed)).await {
            return;
        }
        self.look_again();
        let reconcile = |_| self.clone().reconcile();
        drive("report", self.queue.clone(), self.metrics.clone(), stop.clone(), reconcile).await;
    }

    async fn reconcile(self) -> Result<Outcome, Error> {
        let have = self.reports.with(|all| all.get(&self.us.cluster).cloned());
        let said = have.as_ref().map(|report| report.status.0.clone().unwrap_or_default());
        let us = (env!("CARGO_PKG_VERSION"), &*self.pacing.features);
        let now = whole_seconds(Timestamp::now());
        let want = desired(self.found(), us, &said.clone().unwrap_or_default(), &now);
        let want = self.writer.known::<Report, _>(&want)?;
        let difference = difference(said.as_ref(), &want);
        match self.pacing.pace.with(|pace| pace.wait(difference, Instant::now())) {
            None => return Ok(Outcome::Done),
            Some(wait) if !wait.is_zero() => return Ok(Outcome::Requeue(wait)),
            Some(_) => {}
        }
        let lists = self.reports.with(|all| all.lists());
        let report = match have {
            Some(report) => report,
            None => {
                let new = Report::named(&self.us.common_area, &self.us.cluster);
                self.writer.put(None, &new).await?.unwrap_or(new)
            }
        };
        match self.writer.put_status(&report, &want).await {
            Ok(answer) => self.reports.with(|all| all.answered(answer, lists)),
            // Somebody has deleted it.
            Err(Error::Gone) => return Ok(Outcome::Failed),
            Err(error) => return Err(error),
        }
        self.pacing.pace.with(|pace| pace.wrote(Instant::now()));
        Ok(Outcome::Done)
    }

    /// What there is to report.
    fn found(&self) -> Found {
        let mut found = Found::default();
        for service in self.knowledge.services.keys() {
            let Some(known) = self.knowledge.known(&service) else { continue };
            if let Some(export) = known.entry.export.as_deref() {
                found.export(!is_invalid(export));
            }
            let full = self.room.with(|room| room.leaves_out(&service).then(|| room.max()));
            let noted = self.knowledge.irregular.with(|all| all.not_ready.get(&service).cloned());
            found.import(service, standing(&known, full, noted.as_ref()));
        }
        found
    }
}

/// Whether its status says that it is not valid.
fn is_invalid(export: &Export) -> bool {
    let conditions = export.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|said| said.type_ == VALID && said.status == Status::False.as_str())
}

/// Deletes our report, because we leave.
pub(crate) async fn withdraw(access: &Access) -> Result<(), Failure> {
    let Access { env, us, leader, .. } = access;
    let reports = Api::<Report>::namespaced(leader.clone(), &us.common_area);
    match reports.get_opt(&us.cluster).await {
        Ok(None) => Ok(()),
        Ok(Some(report)) => match writer(env, leader).delete(&report, false).await {
            Ok(()) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error.failure()),
        },
        Err(error) if is_absent(&classify(&error)) => Ok(()),
        Err(error) => Err(classify(&error)),
    }
}

fn writer(env: &Env, leader: &Client) -> Writer {
    Writer::new(leader.clone(), label::MEMBER, "leader", env.metrics.clone())
}
