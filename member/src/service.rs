//! Services: exporting those of this cluster, importing those of the set.
//!
//! | module | holds |
//! |---|---|
//! | [`index`] | what is known of each Service name; depends on nothing below |
//! | [`offer`] | what this cluster exports: pure |
//! | [`antrea`] | members and leaders that run Antrea's controllers |
//! | [`keys`] | exported labels and annotations that Services of imports do not get: pure |
//! | [`addresses`] | addresses of imports that have ended, for when they come back |
//! | [`copies`] | copies that somebody made of what an import consists of: pure |
//! | [`irregular`] | Services about which somebody has to decide |
//! | [`knowledge`] | the index, and the queues of the controllers |
//! | [`export`], [`import`], [`status`], [`reading`] | the controllers |
//! | [`report`] | what this cluster reports of its exports and imports, and what others report |
//! | [`unanswered`] | that no endpoint can answer: when it is said |
//! | [`reach`] | whether endpoints of other clusters answer from here |
//! | [`watches`], [`families`], [`machines`], [`allowance`] | how it is learned, and how much of it |
//! | [`here`] | what needs no leader |
//! | [`shortfalls`] | what is not as it should be though nothing failed, in words |
//! | [`leave`], [`signs`] | before and after sessions |

mod addresses;
mod allowance;
mod antrea;
mod copies;
mod export;
mod families;
mod here;
mod import;
mod index;
mod irregular;
mod knowledge;
mod leave;
mod machines;
mod offer;
mod reach;
mod reading;
mod report;
mod shortfalls;
mod signs;
mod status;
mod unanswered;
mod watches;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{ServiceName, label, membership::Wire, unwritten::SERVICES};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    boot::Env,
    drive::{before, drive},
    failure::Failure,
    index::{Readers, Shared},
    watch::Watches,
    write::{Error, Writer},
};
use presence::{leases::News, vouch::Vouching};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    addresses::noting::Kept,
    allowance::Allowance,
    export::{ExportCrd, Exporting},
    here::Here,
    import::{Importing, NO_NAMESPACE, Room, TOO_MANY, Withdrawals},
    index::{IMPORT, reports::Reports},
    knowledge::Knowledge,
    reach::{Probing, Reach},
    report::{Features, Pacing, Reporting},
    status::ExportStatus,
};
pub(crate) use self::{index::cluster::EndpointIp, reach::Probe};
use crate::feature::{Access, Feature, Local, Run, Shortfall};

/// What the administrator chose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choices {
    /// What of a Service is exported.
    pub(crate) endpoint_ip: EndpointIp,
    /// Whether an import has core Endpoints beside its slices.
    pub(crate) endpoints_objects: bool,
    /// How many imports are made here at the most.
    pub(crate) max_imports: usize,
    /// Whether it is tried to connect to endpoints of other clusters.
    pub(crate) probe: Probe,
    /// How long the address of an import that has ended is kept for it.
    pub(crate) keep_address: Duration,
}

/// Services, as a feature of the member.
pub(crate) struct Services {
    choices: Choices,
    /// What is known of the ways to other clusters, whatever becomes of sessions.
    reach: Shared<Reach>,
    /// Addresses of imports that have ended, likewise.
    addresses: Kept,
    /// How often this cluster has reported, likewise.
    pacing: Pacing,
}

impl Services {
    /// With these choices, in a member that has these features.
    pub(crate) fn new(choices: Choices, features: Features) -> Self {
        let addresses = Kept::new(choices.keep_address);
        Self { choices, reach: Shared::default(), addresses, pacing: Pacing::new(features) }
    }
}

impl Feature for Services {
    fn name(&self) -> &'static str {
        SERVICES
    }

    fn crds(&self) -> &'static [&'static str] {
        &["serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io"]
    }

    fn knows_freeport(&self, access: Access) -> BoxFuture<'_, Result<bool, Failure>> {
        async move { signs::of_freeport(&access).await }.boxed()
    }

    fn begin(&self, access: Access) -> Box<dyn Run> {
        let kept = (self.reach.clone(), self.addresses.clone(), self.pacing.clone());
        Box::new(ServicesRun::new(access, self.choices, kept))
    }

    fn run_alone(&self, local: Local, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move {
            let here = Here::new(local, self.choices);
            let probing = here.probing(self.reach.clone(), Arc::default());
            here.run_alone(&probing, &stop).await;
        }
        .boxed()
    }

    fn withdraw(&self, access: Access) -> BoxFuture<'_, Result<(), Failure>> {
        self.pacing.forget();
        async move { leave::withdraw(&access).await.and(report::withdraw(&access).await) }.boxed()
    }

    fn remove_imports<'a>(&'a self, env: &'a Env, _us: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>> {
        leave::remove_imports(env).boxed()
    }

    fn clear_status<'a>(&'a self, env: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        leave::clear_status(env).boxed()
    }
}

/// Services in one session.
struct ServicesRun {
    access: Access,
    here: Here,
    /// Of [`here`](Self::here), with what the leader says.
    knowledge: Knowledge,
    vouching: Vouching<ServiceName>,
    /// Which imports there is room for.
    room: Shared<Room>,
    /// What the leader takes back.
    withdrawals: Shared<Withdrawals>,
    leader: Watches,
    allowance: Allowance,
    /// Writes our records.
    leader_writer: Writer,
    probing: Probing,
    addresses: Kept,
    reporting: Reporting,
}

impl ServicesRun {
    fn new(access: Access, choices: Choices, kept: (Shared<Reach>, Kept, Pacing)) -> Self {
        let Access { env, leases, leader, guard, .. } = &access;
        let here = Here::new(access.local(), choices);
        let (reach, addresses, pacing) = kept;
        let room = Shared::new(Room::new(choices.max_imports));
        let watches = guard.clone().map(Watches::guarded).unwrap_or_default();
        Self {
            reporting: Reporting::new(&access, here.knowledge.clone(), room.clone(), pacing),
            probing: here.probing(reach, access.changed.clone()),
            knowledge: here.knowledge.clone(),
            here,
            vouching: Vouching::new(SERVICES, leases.clone(), watches.latest()),
            room,
            withdrawals: Shared::default(),
            allowance: Allowance::default(),
            leader: watches,
            leader_writer: Writer::new(leader.clone(), label::MEMBER, "leader", env.metrics.clone()).strict(),
            addresses,
            access,
        }
    }

    async fn run_status(&self, stop: &CancellationToken) {
        let env = &self.access.env;
        let (knowledge, writer) = (self.knowledge.clone(), self.here.writer.clone());
        let status = ExportStatus::new(knowledge, self.leader.clone(), writer, env.events.clone());
        let reconcile = |service| self.reporting.after(status.clone().reconcile(service));
        drive("status", self.knowledge.services.queue(2), env.metrics.clone(), stop.clone(), reconcile).await;
    }

    async fn run_export(&self, stop: &CancellationToken) {
        let Access { env, antrea, .. } = &self.access;
        let exporting = Exporting {
            knowledge: self.knowledge.clone(),
            antrea: antrea.clone(),
            crd: ExportCrd::new(env.client.clone()),
            home: self.access.home.clone(),
            writer: self.leader_writer.clone(),
            events: env.events.clone(),
        };
        let reconcile = |service| exporting.clone().reconcile(service);
        drive("export", self.knowledge.services.queue(0), env.metrics.clone(), stop.clone(), reconcile).await;
    }

    async fn run_import(&self, stop: &CancellationToken) {
        let Access { env, us, antrea, leader, .. } = &self.access;
        let importing = Importing {
            us: us.clone(),
            knowledge: self.knowledge.clone(),
            vouching: self.vouching.clone(),
            room: self.room.clone(),
            withdrawals: self.withdrawals.clone(),
            unanswered: Shared::default(),
            addresses: self.addresses.clone(),
            antrea: antrea.clone(),
            leader: leader.clone(),
            writer: self.here.writer.clone(),
            events: env.events.clone(),
            metrics: env.metrics.clone(),
        };
        importing.begin();
        let reconcile = |service| self.reporting.after(importing.clone().reconcile(service));
        drive("import", self.knowledge.services.queue(1), env.metrics.clone(), stop.clone(), reconcile).await;
    }

    /// Exports and imports as soon as it is known what there is; until then, what this cluster alone decides.
    async fn exchange(&self, begin: BoxFuture<'static, ()>, stop: &CancellationToken) {
        let alone = stop.child_token();
        let all = async {
            self.complete().await;
            begin.await;
            self.addresses.read(&self.access.env).await;
            alone.cancel();
        };
        let (has_begun, ()) = tokio::join!(before(stop, all), self.here.follow(&alone));
        if has_begun {
            // Those that were reconciled without the leader meanwhile.
            self.knowledge.services.enqueue_all(IMPORT);
            let noted = self.addresses.keep_noted(&self.access.env, stop);
            tokio::join!(self.run_export(stop), self.run_import(stop), noted, self.reporting.run(stop));
        }
    }

    /// Waits until all is known that exports and imports depend on.
    async fn complete(&self) {
        self.here.seen().await;
        self.leader.listed().await;
        self.knowledge.services.enqueue_all(Readers::ALL);
    }
}

impl Run for ServicesRun {
    fn watch(&self, tasks: &mut JoinSet<()>) {
        self.here.watch(tasks);
        self.watch_leader(tasks);
        match self.access.wire {
            Wire::Freeport => drop(tasks.spawn(self.reporting.clone().watch())),
            Wire::Antrea => self.knowledge.have_reports(&Reports::Absent),
        }
    }

    fn local(&self) -> &Watches {
        &self.here.watches
    }

    fn leader(&self) -> &Watches {
        &self.leader
    }

    fn restored(&self) -> BoxFuture<'_, ()> {
        async move {
            tokio::select! {
                () = self.leader.restored() => {}
                () = self.reporting.watches().restored() => {}
            }
        }
        .boxed()
    }

    fn take_turns(&self, place: Option<usize>) {
        self.leader.take_turns(place);
        self.reporting.watches().take_turns(place);
    }

    /// What users see is written as soon as this cluster has been seen, and imports follow our own endpoints.
    fn run(&self, begin: BoxFuture<'static, ()>, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move {
            let status = async {
                if before(&stop, self.here.watches.listed()).await {
                    self.run_status(&stop).await;
                }
            };
            let exchange = async {
                if before(&stop, self.here.begin(&self.probing)).await {
                    tokio::join!(before(&stop, self.probing.run()), self.exchange(begin, &stop));
                }
            };
            tokio::join!(status, exchange);
        }
        .boxed()
    }

    fn hear(&self, news: &News) {
        let keys = self.vouching.hear(news);
        self.knowledge.services.enqueue(keys.into_iter().map(|service| (service, IMPORT)).collect());
        let (silent, unheard) = self.access.leases.with(|leases| leases.silent());
        self.knowledge.have_links(|links| (links.silent, links.unheard) = (silent, unheard));
        if let Some(bounds) = &news.bounds {
            self.knowledge.have_limits(|limits| limits.bounds.clone_from(bounds));
        }
        if let Some(lacking) = &news.lacking {
            self.knowledge.have_lacking(lacking);
        }
        if self.allowance.hear(news.quota, Instant::now()) {
            self.leader().list_again_alone();
        }
    }

    fn let_go(&self, said: Option<&str>) {
        let these = self.withdrawals.with(|all| all.hear(said));
        if !these.is_empty() {
            tracing::warn!(
                imports = these.len(),
                "what the leader has taken back goes, as the ClusterSet says"
            );
        }
        self.knowledge.services.enqueue(these.into_iter().map(|service| (service, IMPORT)).collect());
    }

    fn unwritten(&self) -> Vec<String> {
        self.knowledge.unwritten().into_iter().map(|service| service.to_string()).collect()
    }

    fn lacks(&self) -> Option<BTreeSet<String>> {
        self.room.with(|room| {
            let lacks = || room.nowhere().map(|service| service.namespace.clone()).collect();
            room.has_begun().then(lacks)
        })
    }

    fn retry_failed(&self) {
        self.knowledge.services.retry_failed();
        self.reporting.retry_failed();
    }

    fn pruned(&self) -> Option<String> {
        self.leader_writer.pruned().map(|error| error.to_string())
    }

    fn shortfalls(&self) -> Option<Vec<Shortfall>> {
        let irregular = &self.knowledge.irregular;
        let withheld = self.withdrawals.with(|all| all.withheld().clone());
        let unreached = self.probing.unreached();
        self.room.with(|room| {
            let said = || {
                let left_out = self.allowance.left_out();
                irregular.with(|irregular| shortfalls::of(room, irregular, &withheld, left_out, &unreached))
            };
            room.has_begun().then(said)
        })
    }

    fn local_again(&self) {
        self.local().list_again();
        self.here.writer.forget_undeclared();
        self.knowledge.services.enqueue_all(Readers::ALL);
    }

    fn records_again(&self) {
        self.leader().list_again();
        self.reporting.list_again();
        self.knowledge.services.enqueue_all(Readers::ALL);
    }
}

impl Drop for ServicesRun {
    fn drop(&mut self) {
        let metrics = &self.access.env.metrics;
        metrics.doubted(0);
        metrics.left_out(0);
        metrics.endpoints_left_out(0);
        metrics.reach().unreached(0);
        metrics.imports_withheld(0);
        for reason in [TOO_MANY, NO_NAMESPACE] {
            metrics.imports_waiting(reason, 0);
        }
    }
}

#[cfg(test)]
mod attempts;
