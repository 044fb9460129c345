//! The watch of the reports: begins when the leader's cluster serves the kind, and tells what they say as it counts here.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use api::report::ClusterReportStatus;
use kit::{
    backoff,
    failure::{Failure, classify},
    objects::Objects,
    watch::Source,
};
use kube::{Api, ResourceExt, api::ListParams, runtime::watcher};
use tokio::time::sleep;

use super::{Reporting, heard::Heard, view::Report};
use crate::service::index::reports::Reports;

/// Shortest time between two looks at what others report.
const LISTEN: Duration = Duration::from_secs(1);
/// Time until it is tried again to read a kind that is not served.
const SERVED: Duration = Duration::from_secs(300);

impl Reporting {
    /// Watches the reports as soon as there can be some; never ends.
    pub(crate) async fn watch(self) {
        self.is_served().await;
        let (reports, told, this) = (self.reports.clone(), self.told.clone(), self.clone());
        let sink = move |change| {
            reports.with(|all| all.change(change));
            told.notify_one();
            this.look_again();
        };
        let source = Source { cluster: "leader", kind: "ClusterReport" };
        let watch =
            self.watches.watch(self.api(), watcher::Config::default(), source, self.metrics.clone(), sink);
        let hear = async {
            self.watches.listed().await;
            self.is_listed.send_replace(true);
            let mut heard = Heard::default();
            loop {
                let wait = heard.take_in(self.said(), Instant::now());
                self.knowledge.have_reports(&Reports::Known(Arc::new(heard.reported())));
                sleep(LISTEN).await;
                let waited = async {
                    match wait {
                        Some(wait) => sleep(wait).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = self.told.notified() => {}
                    () = waited => {}
                }
            }
        };
        tokio::join!(watch, hear);
    }

    /// Waits until the leader's cluster serves the kind to us. A watch would ask every few seconds.
    async fn is_served(&self) {
        let mut waits = backoff::LEADER.waits();
        loop {
            let wait = match self.api().list(&ListParams::default().limit(1)).await {
                Ok(_) => return,
                Err(error) if is_absent(&classify(&error)) => {
                    self.knowledge.have_reports(&Reports::Absent);
                    SERVED
                }
                Err(_) => waits.wait(),
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.installed.notified() => {}
            }
        }
    }

    /// What each cluster of the set reports. A report that does not decode says nothing.
    fn said(&self) -> BTreeMap<String, ClusterReportStatus> {
        let of = |report: &Report| Some((report.name_any(), report.status.0.clone().ok()?));
        let said = |all: &mut Objects<Report>| all.iter().filter_map(of).collect::<BTreeMap<_, _>>();
        self.reports.with(said)
    }

    fn api(&self) -> Api<Report> {
        Api::namespaced(self.leader.clone(), &self.us.common_area)
    }
}

/// Whether there are no reports for us: the leader's cluster does not have the kind, or did not give us the right to it.
pub(super) fn is_absent(failure: &Failure) -> bool {
    matches!(failure, Failure::KindMissing | Failure::Forbidden(_))
}
