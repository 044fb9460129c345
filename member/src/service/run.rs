//! Services in one session with a leader: watches this cluster and the Common Area, and runs the controllers of exports, imports and
//! statuses. Ends with the session; what outlives it is handed in.

use std::{collections::BTreeSet, time::Instant};

use api::{ServiceName, label, membership::Wire, unwritten::SERVICES};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    crowd::Place,
    drive::{before, drive},
    index::{Readers, Shared},
    watch::Watches,
    write::Writer,
};
use presence::{leases::News, vouch::Vouching};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Choices,
    addresses::noting::Kept,
    allowance::Allowance,
    export::{ExportCrd, Exporting},
    here::Here,
    import::{Importing, NO_NAMESPACE, Room, TOO_MANY, Withdrawals},
    index::{IMPORT, reports::Reports},
    knowledge::Knowledge,
    reach::{Probing, Reach},
    report::{Pacing, Reporting},
    shortfalls,
    status::ExportStatus,
};
use crate::feature::{Access, Run, Shortfall};

/// Services in one session.
pub(super) struct ServicesRun {
    pub(super) access: Access,
    pub(super) here: Here,
    /// Of [`here`](Self::here), with what the leader says.
    pub(super) knowledge: Knowledge,
    vouching: Vouching<ServiceName>,
    /// Which imports there is room for.
    room: Shared<Room>,
    /// What the leader takes back.
    withdrawals: Shared<Withdrawals>,
    pub(super) leader: Watches,
    pub(super) allowance: Allowance,
    /// Writes our records.
    leader_writer: Writer,
    probing: Probing,
    addresses: Kept,
    reporting: Reporting,
}

impl ServicesRun {
    pub(super) fn new(access: Access, choices: Choices, kept: (Shared<Reach>, Kept, Pacing)) -> Self {
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

    /// With what the session watches, this is all that fits into one round.
    fn take_turns(&self, place: Option<Place>) {
        let place = place.map(|place| place.in_round(0));
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
