//! ClusterReports that clusters leave behind. A member deletes its own when it leaves; one that could not, or that is silent for too long,
//! reports nothing that is true any more.
//!
//! Reads the names of ClusterReports every now and then; deletes those of clusters that have had no Lease for long, or whose exports were
//! withdrawn in their place, bound to uid and version. A member that is back writes its report again. It watches nothing: where the CRD or
//! the right is missing there is nothing to do, and nothing is amiss. Safe to run twice: each look decides anew.

use std::{collections::BTreeMap, time::Instant};

use api::{report::ClusterReport, view::Named};
use kit::{
    failure::{Failure, classify},
    list,
    write::{Error, Writer},
};
use kube::{ResourceExt, api::ListParams};
use presence::standing::Standing;
use tokio_util::sync::CancellationToken;

use crate::{
    absent::{Absent, end},
    feature::{Access, Look},
};

/// The feature.
pub(crate) struct LeftReports {
    access: Access,
    writer: Writer,
}

impl LeftReports {
    pub(crate) fn new(access: Access) -> Self {
        Self { writer: access.writer(), access }
    }

    /// Deletes the reports of clusters that have been absent for long, or are evicted.
    async fn look(&self, absent: &mut Absent, members: &BTreeMap<String, Standing>) -> Result<(), Error> {
        let now = Instant::now();
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
                // A report that cannot be deleted does not keep the others.
                ended = ended.and(end(&self.writer, report).await);
            }
        }
        ended
    }
}

impl Look for LeftReports {
    const NAME: &'static str = "Reports";

    async fn run(&self, stop: &CancellationToken) {
        let mut absent = Absent::new(self.access.env.pace.stale());
        while let Some(members) = absent.next_look(&self.access, stop).await {
            if let Err(error) = self.look(&mut absent, &members).await {
                tracing::warn!(%error, "cannot look for reports that clusters left behind");
            }
        }
    }
}
