//! Services: exporting those of this cluster, importing those of the set.
//!
//! | module | holds |
//! |---|---|
//! | [`index`] | what is known of each Service name; depends on nothing below |
//! | [`offer`] | what this cluster exports: pure |
//! | [`antrea`] | members and leaders that run Antrea's controllers |
//! | [`knowledge`] | the index, and the queues of the controllers |
//! | [`export`], [`import`], [`status`] | the controllers |
//! | [`watches`], [`families`] | how it is learned |
//! | [`leave`], [`signs`] | before and after sessions |

mod antrea;
mod export;
mod families;
mod import;
mod index;
mod knowledge;
mod leave;
mod offer;
mod signs;
mod status;
mod watches;

use api::{ServiceName, label};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    boot::Env,
    drive::{before, drive},
    failure::Failure,
    index::Readers,
    watch::Watches,
    write::{Error, Writer},
};
use presence::{leases::News, vouch::Vouching};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) use self::index::cluster::EndpointIp;
use self::{
    export::Exporting,
    import::Importing,
    index::{EXPORT, IMPORT, cluster::Cluster},
    knowledge::Knowledge,
    status::ExportStatus,
};
use crate::feature::{Access, Feature, Run};

/// Services, as a feature of the member.
pub(crate) struct Services {
    endpoint_ip: EndpointIp,
}

impl Services {
    /// `endpoint_ip`: what of a Service is exported.
    pub(crate) fn new(endpoint_ip: EndpointIp) -> Self {
        Self { endpoint_ip }
    }
}

impl Feature for Services {
    fn name(&self) -> &'static str {
        "Services"
    }

    fn crds(&self) -> &'static [&'static str] {
        &["serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io"]
    }

    fn knows_freeport(&self, access: Access) -> BoxFuture<'_, Result<bool, Failure>> {
        async move { signs::of_freeport(&access).await }.boxed()
    }

    fn begin(&self, access: Access) -> Box<dyn Run> {
        Box::new(ServicesRun::new(access, self.endpoint_ip))
    }

    fn withdraw(&self, access: Access) -> BoxFuture<'_, Result<(), Failure>> {
        async move { leave::withdraw(&access).await }.boxed()
    }

    fn remove_imports<'a>(&'a self, env: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        leave::remove_imports(env).boxed()
    }

    fn clear_status<'a>(&'a self, env: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        leave::clear_status(env).boxed()
    }
}

/// What holds for this cluster in a session, as far as it is known when the session begins.
fn cluster(access: &Access, endpoint_ip: EndpointIp) -> Cluster {
    Cluster { us: access.us.clone(), endpoint_ip, wire: access.wire, families: vec![] }
}

/// Services in one session.
struct ServicesRun {
    access: Access,
    knowledge: Knowledge,
    vouching: Vouching<ServiceName>,
    local: Watches,
    leader: Watches,
    /// Writes to this cluster.
    local_writer: Writer,
    /// Writes our records.
    leader_writer: Writer,
    /// Whether it is known which IP families this cluster has, as far as it can be known.
    families: watch::Sender<bool>,
}

impl ServicesRun {
    fn new(access: Access, endpoint_ip: EndpointIp) -> Self {
        let Access { env, leases, leader, guard, .. } = &access;
        let writer = |client, cluster| Writer::new(client, label::MEMBER, cluster, env.metrics.clone());
        Self {
            knowledge: Knowledge::new(cluster(&access, endpoint_ip)),
            vouching: Vouching::new(leases.clone()),
            local: Watches::default(),
            leader: guard.clone().map(Watches::guarded).unwrap_or_default(),
            local_writer: writer(env.client.clone(), "local"),
            leader_writer: writer(leader.clone(), "leader").strict(),
            families: watch::Sender::new(false),
            access,
        }
    }

    async fn run_status(&self, stop: &CancellationToken) {
        let env = &self.access.env;
        let status = ExportStatus {
            knowledge: self.knowledge.clone(),
            leader_watches: self.leader.clone(),
            writer: self.local_writer.clone(),
            events: env.events.clone(),
        };
        let reconcile = |service| status.clone().reconcile(service);
        drive("status", self.knowledge.services.queue(2), env.metrics.clone(), stop.clone(), reconcile).await;
    }

    async fn run_export(&self, stop: &CancellationToken) {
        let Access { env, antrea, .. } = &self.access;
        let exporting = Exporting {
            knowledge: self.knowledge.clone(),
            antrea: antrea.clone(),
            local: env.client.clone(),
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
            antrea: antrea.clone(),
            leader: leader.clone(),
            writer: self.local_writer.clone(),
            events: env.events.clone(),
            metrics: env.metrics.clone(),
        };
        let reconcile = |service| importing.clone().reconcile(service);
        drive("import", self.knowledge.services.queue(1), env.metrics.clone(), stop.clone(), reconcile).await;
    }

    /// Waits until all is known that exports and imports depend on.
    async fn complete(&self) {
        self.local.listed().await;
        self.leader.listed().await;
        drop(self.families.subscribe().wait_for(|known| *known).await);
        self.knowledge.services.enqueue_all(Readers::ALL);
    }
}

impl Run for ServicesRun {
    fn watch(&self, tasks: &mut JoinSet<()>) {
        self.watch_local(tasks);
        self.watch_leader(tasks);
        tasks.spawn(families::learn(self.access.env.clone(), self.knowledge.clone(), self.families.clone()));
    }

    fn local(&self) -> &Watches {
        &self.local
    }

    fn leader(&self) -> &Watches {
        &self.leader
    }

    /// What users see is written as soon as this cluster has been seen.
    fn run(&self, begin: BoxFuture<'static, ()>, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move {
            let status = async {
                if before(&stop, self.local.listed()).await {
                    self.run_status(&stop).await;
                }
            };
            let exchange = async {
                let all = async {
                    self.complete().await;
                    begin.await;
                };
                if before(&stop, all).await {
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
    }

    fn is_idle(&self) -> bool {
        self.knowledge.services.is_idle(EXPORT)
    }

    fn retry_failed(&self) {
        self.knowledge.services.retry_failed();
    }

    fn pruned(&self) -> Option<String> {
        self.leader_writer.pruned().map(|error| error.to_string())
    }

    fn write_again(&self) {
        self.local_writer.forget_undeclared();
        self.knowledge.services.enqueue_all(Readers::ALL);
    }
}

impl Drop for ServicesRun {
    fn drop(&mut self) {
        self.access.env.metrics.doubted(0);
    }
}
