//! Services: exporting those of this cluster, importing those of the set.
//!
//! | module | holds |
//! |---|---|
//! | [`index`] | what is known of each Service name; depends on nothing below |
//! | [`offer`] | what this cluster exports: pure |
//! | [`antrea`] | members and leaders that run Antrea's controllers |
//! | [`irregular`] | Services about which somebody has to decide |
//! | [`knowledge`] | the index, and the queues of the controllers |
//! | [`export`], [`import`], [`status`] | the controllers |
//! | [`watches`], [`families`], [`allowance`] | how it is learned, and how much of it |
//! | [`here`] | what needs no leader |
//! | [`shortfalls`] | what is not as it should be though nothing failed, in words |
//! | [`leave`], [`signs`] | before and after sessions |

mod allowance;
mod antrea;
mod export;
mod families;
mod here;
mod import;
mod index;
mod irregular;
mod knowledge;
mod leave;
mod offer;
mod shortfalls;
mod signs;
mod status;
mod watches;

use std::time::Instant;

use api::{ServiceName, label, unwritten::SERVICES};
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

pub(crate) use self::index::cluster::EndpointIp;
use self::{
    allowance::Allowance,
    export::{ExportCrd, Exporting},
    here::Here,
    import::{Importing, NO_NAMESPACE, Room, TOO_MANY},
    index::{EXPORT, IMPORT},
    knowledge::Knowledge,
    status::ExportStatus,
};
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
}

/// Services, as a feature of the member.
pub(crate) struct Services {
    choices: Choices,
}

impl Services {
    /// With these choices.
    pub(crate) fn new(choices: Choices) -> Self {
        Self { choices }
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
        Box::new(ServicesRun::new(access, self.choices))
    }

    fn run_alone(&self, local: Local, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move { Here::new(local, self.choices).run_alone(&stop).await }.boxed()
    }

    fn withdraw(&self, access: Access) -> BoxFuture<'_, Result<(), Failure>> {
        async move { leave::withdraw(&access).await }.boxed()
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
    leader: Watches,
    allowance: Allowance,
    /// Writes our records.
    leader_writer: Writer,
}

impl ServicesRun {
    fn new(access: Access, choices: Choices) -> Self {
        let Access { env, leases, leader, guard, .. } = &access;
        let here = Here::new(access.local(), choices);
        Self {
            knowledge: here.knowledge.clone(),
            here,
            vouching: Vouching::new(SERVICES, leases.clone()),
            room: Shared::new(Room::new(choices.max_imports)),
            allowance: Allowance::default(),
            leader: guard.clone().map(Watches::guarded).unwrap_or_default(),
            leader_writer: Writer::new(leader.clone(), label::MEMBER, "leader", env.metrics.clone()).strict(),
            access,
        }
    }

    async fn run_status(&self, stop: &CancellationToken) {
        let env = &self.access.env;
        let (knowledge, writer) = (self.knowledge.clone(), self.here.writer.clone());
        let status = ExportStatus::new(knowledge, self.leader.clone(), writer, env.events.clone());
        let reconcile = |service| status.clone().reconcile(service);
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
            antrea: antrea.clone(),
            leader: leader.clone(),
            writer: self.here.writer.clone(),
            events: env.events.clone(),
            metrics: env.metrics.clone(),
        };
        importing.begin();
        let reconcile = |service| importing.clone().reconcile(service);
        drive("import", self.knowledge.services.queue(1), env.metrics.clone(), stop.clone(), reconcile).await;
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
    }

    fn local(&self) -> &Watches {
        &self.here.watches
    }

    fn leader(&self) -> &Watches {
        &self.leader
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
                let alone = stop.child_token();
                let all = async {
                    self.complete().await;
                    begin.await;
                    alone.cancel();
                };
                let (has_begun, ()) = tokio::join!(before(&stop, all), self.here.follow(&alone));
                if has_begun {
                    // Those that were reconciled without the leader meanwhile.
                    self.knowledge.services.enqueue_all(IMPORT);
                    tokio::join!(self.run_export(&stop), self.run_import(&stop));
                }
            };
            tokio::join!(status, exchange);
        }
        .boxed()
    }

    fn hear(&self, news: &News) {
        let keys = self.vouching.hear(news);
        self.knowledge.services.enqueue(keys.into_iter().map(|service| (service, IMPORT)).collect());
        if self.allowance.hear(news.quota, Instant::now()) {
            self.leader().list_again();
        }
    }

    fn unwritten(&self) -> Vec<String> {
        self.knowledge.services.busy(EXPORT).into_iter().map(|service| service.to_string()).collect()
    }

    fn retry_failed(&self) {
        self.knowledge.services.retry_failed();
    }

    fn pruned(&self) -> Option<String> {
        self.leader_writer.pruned().map(|error| error.to_string())
    }

    fn shortfalls(&self) -> Option<Vec<Shortfall>> {
        let irregular = &self.knowledge.irregular;
        self.room.with(|room| {
            let said =
                || irregular.with(|irregular| shortfalls::of(room, irregular, self.allowance.left_out()));
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
        self.knowledge.services.enqueue_all(Readers::ALL);
    }
}

impl Drop for ServicesRun {
    fn drop(&mut self) {
        let metrics = &self.access.env.metrics;
        metrics.doubted(0);
        metrics.left_out(0);
        for reason in [TOO_MANY, NO_NAMESPACE] {
            metrics.imports_waiting(reason, 0);
        }
    }
}

#[cfg(test)]
mod attempts;
