//! Services: the records of one Service name from all members, and the ResourceImport made of them.
//!
//! | room | holds |
//! |---|---|
//! | [`index`] | what is known of one Service name, and whose a record is |
//! | [`judge`] | which records are valid; `status` of those that are not |
//! | [`merged`] | one Service out of all exports, and where they differ: pure |
//! | [`antrea`] | the import of all endpoints that Antrea's members read: pure |
//! | [`merge`] | the ResourceImport of each Service name |

mod antrea;
mod index;
mod judge;
mod merge;
mod merged;

use std::time::Duration;

use api::ServiceName;
use futures::{FutureExt, future::BoxFuture};
use kit::{index::Readers, objects::Change, queue::Queue, store::Store, watch::Watches, write::Writer};
use presence::{leases::News, vouch::Vouching};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    index::{
        entry::{Import, MERGE, ServiceEntry},
        judged::Judged,
        record::Record,
    },
    judge::{Judging, Report, judged},
    merge::Merging,
};
use crate::feature::{Access, Feature};

/// The feature.
pub(crate) struct Services {
    access: Access,
    watches: Watches,
    entries: Store<ServiceName, ServiceEntry>,
    reports: Store<String, Report>,
    vouching: Vouching<ServiceName>,
    writer: Writer,
}

impl Services {
    pub(crate) fn new(access: Access) -> Self {
        access.env.metrics.refused(&access.common_area).set(0);
        Self {
            watches: Watches::guarded(access.guard.clone()),
            entries: Store::new([Queue::new(Duration::ZERO)]),
            reports: Store::new([Queue::new(Duration::ZERO)]),
            vouching: Vouching::new(access.leases.clone()),
            writer: access.writer(),
            access,
        }
    }

    fn watch_records(&self, tasks: &mut JoinSet<()>) {
        let (entries, reports) = (self.entries.clone(), self.reports.clone());
        let antrea = self.access.antrea.clone();
        let refused = self.access.env.metrics.refused(&self.access.common_area);
        self.access.watch(&self.watches, "ResourceExport", tasks, move |change: Change<Record>| {
            let change = change.map(|record| judged(record, &antrea));
            reports.change(change.clone());
            refused.set(i64::try_from(reports.count::<Judged>()).unwrap_or(i64::MAX));
            entries.change(change);
        });
    }
}

impl Feature for Services {
    fn name(&self) -> &'static str {
        "Services"
    }

    fn watch(&self, tasks: &mut JoinSet<()>) {
        self.watch_records(tasks);
        let entries = self.entries.clone();
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
            entries: self.entries.clone(),
            vouching: self.vouching.clone(),
            writer: self.writer.clone(),
        };
        let judging = Judging::new(self.access.clone(), self.reports.clone(), self.writer.clone());
        async move {
            tokio::join!(merging.run(&stop), judging.run(&stop));
        }
        .boxed()
    }

    fn hear(&self, news: &News) {
        let keys = self.vouching.hear(news);
        self.entries.enqueue(keys.into_iter().map(|service| (service, MERGE)).collect());
    }

    fn is_idle(&self) -> bool {
        self.entries.is_idle(Readers::ALL) && self.reports.is_idle(Readers::ALL)
    }

    fn retry_failed(&self) {
        self.entries.retry_failed();
        self.reports.retry_failed();
    }

    fn pruned(&self) -> Option<String> {
        self.writer.pruned().map(|error| error.to_string())
    }
}
