//! The controllers of a link.

use kit::{
    drive::{before, drive},
    index::Readers,
};
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Link;
use crate::{
    membership::Target,
    service::{export::Exporting, import::Importing, status::ExportStatus},
};

impl Link {
    /// Runs the controllers until `stop`. What users see is told as soon as this cluster has been seen; nothing is exported
    /// or imported before the Common Area has been seen too, the `families` of this cluster are known and our ID is `ours`.
    pub(super) async fn control(
        &self,
        target: &Target,
        leader: &Client,
        ours: impl Future<Output = ()>,
        mut families: watch::Receiver<bool>,
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
                drive("status", self.knowledge.services.queue(2), metrics.clone(), stop.clone(), look).await;
            }
        };
        let exchange = async {
            let everything = async {
                self.local.listed().await;
                self.hub.listed().await;
                // Nobody is left to ask when that is not answered any more: the link ends.
                if families.wait_for(|known| *known).await.is_err() {
                    std::future::pending::<()>().await;
                }
                if *self.marked.borrow() != self.antrea {
                    // All begins anew with those who are marked.
                    std::future::pending::<()>().await;
                }
                self.knowledge.services.enqueue_all(Readers::ALL);
                ours.await
            };
            if before(&stop, everything).await {
                tokio::join!(
                    drive("export", self.knowledge.services.queue(0), metrics.clone(), stop.clone(), |key| {
                        exporting.clone().reconcile(key)
                    }),
                    drive("import", self.knowledge.services.queue(1), metrics.clone(), stop.clone(), |key| {
                        importing.clone().reconcile(key)
                    }),
                );
            }
        };
        tokio::join!(tell, exchange);
    }
}
