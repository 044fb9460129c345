//! What is known and done by this cluster alone: in a session until the leader has told what there is, and while there is none.

use std::sync::Arc;

use api::label;
use kit::{
    drive::{before, drive},
    index::Shared,
    watch::Watches,
    write::Writer,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Choices,
    import::OwnEndpoints,
    index::{cluster::Cluster, limits::Limits, links::Links, reports::Reports},
    knowledge::Knowledge,
    reach::{Probing, Reach},
};
use crate::feature::Local;

/// This cluster's side of Services.
pub(super) struct Here {
    pub(super) local: Local,
    pub(super) choices: Choices,
    pub(super) knowledge: Knowledge,
    /// Watches of this cluster.
    pub(super) watches: Watches,
    /// Writes to this cluster.
    pub(super) writer: Writer,
    /// Whether it is known which IP families this cluster has, as far as it can be known.
    pub(super) families: watch::Sender<bool>,
    /// Whether it is known which addresses are this cluster's own, as far as it can be known.
    pub(super) addresses: watch::Sender<bool>,
}

impl Here {
    pub(super) fn new(local: Local, choices: Choices) -> Self {
        let writer = Writer::new(local.env.client.clone(), label::MEMBER, "local", local.env.metrics.clone());
        Self {
            knowledge: Knowledge::new(cluster(&local, choices)),
            watches: Watches::guarded(local.home.guard()),
            writer,
            families: watch::Sender::new(false),
            addresses: watch::Sender::new(false),
            local,
            choices,
        }
    }

    /// Waits until all of this cluster is known that imports depend on.
    pub(super) async fn seen(&self) {
        self.watches.listed().await;
        for known in [&self.families, &self.addresses] {
            drop(known.subscribe().wait_for(|known| *known).await);
        }
    }

    /// Who asks endpoints of other clusters, with what is known of the ways.
    pub(super) fn probing(&self, reach: Shared<Reach>, changed: Arc<Notify>) -> Probing {
        let env = &self.local.env;
        Probing {
            probe: self.choices.probe,
            hold: env.hold.clone(),
            home: self.local.home.clone(),
            knowledge: self.knowledge.clone(),
            reach,
            metrics: env.metrics.reach().clone(),
            changed,
        }
    }

    /// Waits until what is here can be decided about: all of this cluster is known, and what was found out of the ways to others.
    pub(super) async fn begin(&self, probing: &Probing) {
        self.seen().await;
        probing.begin().await;
    }

    /// Lets what is imported here follow our own endpoints and the ways to others, until `stop` or until another process of this cluster
    /// does.
    pub(super) async fn follow(&self, stop: &CancellationToken) {
        let own = OwnEndpoints { knowledge: self.knowledge.clone(), writer: self.writer.clone() };
        let reconcile = |service| own.clone().reconcile(service);
        let (metrics, stop) = (self.local.env.metrics.clone(), stop.child_token());
        let driven = async {
            drive("import", self.knowledge.services.queue(1), metrics, stop.clone(), reconcile).await;
            stop.cancel();
        };
        let replaced = async {
            if before(&stop, self.local.home.replaced()).await {
                stop.cancel();
            }
        };
        tokio::join!(driven, replaced);
    }

    /// [`Self::follow`] without a session.
    pub(super) async fn run_alone(&self, probing: &Probing, stop: &CancellationToken) {
        let mut tasks = JoinSet::new();
        self.watch(&mut tasks);
        let watched = async {
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap_or_else(kit::drive::resume);
            }
            std::future::pending::<()>().await;
        };
        let follow = async {
            if before(stop, self.begin(probing)).await {
                tokio::select! {
                    () = self.follow(stop) => {}
                    () = probing.run() => {}
                }
            }
        };
        tokio::select! {
            () = follow => {}
            () = watched => {}
        }
        tasks.shutdown().await;
    }
}

/// What holds for this cluster, as far as it is known from the beginning.
pub(super) fn cluster(local: &Local, choices: Choices) -> Cluster {
    let Choices { endpoint_ip, endpoints_objects, .. } = choices;
    Cluster {
        us: local.us.clone(),
        endpoint_ip,
        endpoints_objects,
        wire: local.wire,
        families: vec![],
        links: Links::default(),
        limits: Limits::default(),
        lacking: None,
        reports: Reports::default(),
    }
}
