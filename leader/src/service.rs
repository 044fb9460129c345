//! Services: the records of one Service name from all members, and the ResourceImport made of them.
//!
//! | room | holds |
//! |---|---|
//! | [`index`] | what is known of one Service name, and whose a record is |
//! | [`judge`] | what a record is worth by itself: pure |
//! | [`records`] | the way of records into what is known; what only all of them show |
//! | [`report`] | `status` of records that are refused |
//! | [`antrea`] | the import of all endpoints that Antrea's members read: pure |
//! | [`merge`] | the ResourceImport of each Service name |

mod antrea;
mod index;
mod judge;
mod merge;
mod records;
mod report;

use std::{collections::BTreeSet, time::Instant};

use api::{ServiceName, unwritten::SERVICES};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    index::{Readers, Shared},
    objects::Change,
    watch::Watches,
    write::Writer,
};
use presence::{leases::News, vouch::Vouching};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    index::{
        entry::{Import, MERGE},
        gather::Gathered,
    },
    merge::Merging,
    records::Records,
    report::Reporting,
};
use crate::feature::{Access, Feature};

/// Stands for all records of which something is to be said, among the names of what is left to write. No Service is called so.
const REPORTS: &str = "reports";

/// The feature.
pub(crate) struct Services {
    access: Access,
    watches: Watches,
    records: Records,
    vouching: Vouching<ServiceName>,
    writer: Writer,
    /// Who was evicted when that was looked at last: imports name them.
    evicted: Shared<BTreeSet<String>>,
}

impl Services {
    pub(crate) fn new(access: Access) -> Self {
        let watches = Watches::guarded(access.guard.clone());
        Self {
            records: Records::new(&access),
            vouching: Vouching::new(SERVICES, access.leases.clone(), watches.latest()),
            watches,
            writer: access.writer(),
            evicted: Shared::default(),
            access,
        }
    }
}

impl Feature for Services {
    fn name(&self) -> &'static str {
        SERVICES
    }

    fn watch(&self, tasks: &mut JoinSet<()>) {
        let (records, watches) = (self.records.clone(), self.watches.clone());
        let Access { quota, antrea, noted, .. } = &self.access;
        let gathered = Gathered::new(*quota, antrea.clone(), noted.clone());
        let noted = noted.clone();
        let list = (gathered, async move { noted.known().await });
        self.access.watch_gathering(&self.watches, "ResourceExport", tasks, list, move |change| {
            if records.change(change) {
                watches.list_again_alone();
            }
        });
        let entries = self.records.entries.clone();
        self.access.watch(&self.watches, "ResourceImport", tasks, move |change: Change<Import>| {
            entries.change(change);
        });
    }

    fn watches(&self) -> &Watches {
        &self.watches
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        let merging = Merging {
            access: self.access.clone(),
            records: self.records.clone(),
            vouching: self.vouching.clone(),
            writer: self.writer.clone(),
        };
        let reporting = Reporting::new(self.access.clone(), self.records.clone(), self.writer.clone());
        async move {
            tokio::join!(merging.run(&stop), reporting.run(&stop));
        }
        .boxed()
    }

    fn hear(&self, news: &News) {
        let keys = self.vouching.hear(news);
        self.records.entries.enqueue(keys.into_iter().map(|service| (service, MERGE)).collect());
        let evicted: BTreeSet<_> =
            self.access.silences.with(|silences| silences.evicted().keys().cloned().collect());
        if self.evicted.with(|before| std::mem::replace(before, evicted.clone()) != evicted) {
            self.records.entries.enqueue_all(MERGE);
        }
        if self.records.pass_time(Instant::now()) {
            self.watches.list_again_alone();
        }
    }

    fn unwritten(&self) -> Vec<String> {
        let Records { entries, reports, .. } = &self.records;
        let services = entries.busy(Readers::ALL).into_iter().map(|service| service.to_string());
        // No import depends on what is said of a record.
        let reports = (!reports.busy(Readers::ALL).is_empty()).then(|| REPORTS.to_owned());
        services.chain(reports).collect()
    }

    fn retry_failed(&self) {
        self.records.entries.retry_failed();
        self.records.reports.retry_failed();
    }

    fn pruned(&self) -> Option<String> {
        self.writer.pruned().map(|error| error.to_string())
    }

    fn write_again(&self) {
        self.writer.forget_undeclared();
        self.records.entries.enqueue_all(Readers::ALL);
        self.records.reports.enqueue_all(Readers::ALL);
    }
}
