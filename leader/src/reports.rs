//! ClusterReports that clusters leave behind. A member deletes its own when it leaves; one that could not, or that is silent for too long,
//! reports nothing that is true any more.
//!
//! Reads the names of ClusterReports every now and then; deletes those of clusters that have had no Lease for long, or whose exports were
//! withdrawn in their place, bound to uid and version. A member that is back writes its report again. It watches nothing: where the CRD or
//! the right is missing there is nothing to do, and nothing is amiss. Safe to run twice: each look decides anew.

use std::time::Instant;

use api::{report::ClusterReport, view::Named};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    drive::before,
    failure::{Failure, classify},
    list,
    watch::Watches,
    write::{Error, Writer},
};
use kube::{ResourceExt, api::ListParams};
use presence::leases::News;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    absent::{Absent, EVERY, PATIENCE},
    feature::{Access, Feature},
};

/// The feature.
pub(crate) struct LeftReports {
    access: Access,
    none: Watches,
    writer: Writer,
}

impl LeftReports {
    pub(crate) fn new(access: Access) -> Self {
        Self { none: Watches::default(), writer: access.writer(), access }
    }

    async fn sweep(&self, stop: &CancellationToken) {
        let lease = self.access.env.pace.stale();
        let mut absent = Absent::new(lease * PATIENCE);
        while before(stop, tokio::time::sleep(lease * EVERY)).await {
            if let Err(error) = self.look(&mut absent).await {
                tracing::warn!(%error, "cannot look for reports that clusters left behind");
            }
        }
    }

    /// Deletes the reports of clusters that have been absent for long, or are evicted.
    async fn look(&self, absent: &mut Absent) -> Result<(), Error> {
        let now = Instant::now();
        let members = self.access.leases.with(|leases| leases.is_heard(now).then(|| leases.members()));
        let Some(members) = members else {
            absent.forget();
            return Ok(());
        };
        let reports = self.access.api::<Named<ClusterReport>>();
        let reports = match list::all(&reports, ListParams::default(), |report| report).await {
            Ok(reports) => reports,
            Err(error) if matches!(classify(&error), Failure::KindMissing | Failure::Forbidden(_)) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let names: Vec<_> = reports.iter().map(ResourceExt::name_any).collect();
        absent.look(names.iter().map(String::as_str).filter(|id| !members.contains_key(*id)), now);
        let evicted = |id: &str| self.access.silences.with(|silences| silences.evicted().contains_key(id));
        let mut ended = Ok(());
        for (report, id) in reports.iter().zip(&names) {
            if absent.has_left(id, now) || evicted(id) {
                // One that cannot be deleted keeps no other one.
                ended = ended.and(self.end(report).await);
            }
        }
        ended
    }

    async fn end(&self, report: &Named<ClusterReport>) -> Result<(), Error> {
        match self.writer.delete(report, true).await {
            Ok(()) => {
                tracing::info!(report = report.name_any(), "the cluster of this report has left: deleted");
                Ok(())
            }
            // It was written meanwhile: the next look decides.
            Err(Error::Stale | Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Feature for LeftReports {
    fn name(&self) -> &'static str {
        "Reports"
    }

    fn watch(&self, _: &mut JoinSet<()>) {}

    fn watches(&self) -> &Watches {
        &self.none
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move { self.sweep(&stop).await }.boxed()
    }

    fn hear(&self, _: &News) {}

    fn unwritten(&self) -> Vec<String> {
        Vec::new()
    }

    fn retry_failed(&self) {}

    fn pruned(&self) -> Option<String> {
        None
    }

    fn write_again(&self) {}
}
