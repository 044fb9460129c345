//! The way of all records into what the controllers know: each is judged by itself, then by what only all together show.

use std::time::{Duration, Instant};

use api::{ServiceName, antrea::Members, resource_import::Objection};
use kit::{index::Shared, metrics::Metrics, objects::Change, queue::Queue, store::Store};
use kube::api::ObjectMeta;

use super::{
    index::{entry::ServiceEntry, judged::Judged, ledger::Ledger, record::Record, report::Report},
    judge::judged,
};
use crate::{bounds::Noted, feature::Access};

/// The records of one Common Area. Cloning shares it.
#[derive(Clone)]
pub(super) struct Records {
    /// By Service names.
    pub(super) entries: Store<ServiceName, ServiceEntry>,
    /// By the names of records.
    pub(super) reports: Store<String, Report>,
    ledger: Shared<Ledger>,
    /// Members that write theirs as Antrea does.
    antrea: Members,
    /// Which addresses they may export.
    noted: Noted,
    metrics: Metrics,
    common_area: String,
}

impl Records {
    pub(super) fn new(access: &Access) -> Self {
        let records = Self {
            entries: Store::new([Queue::new(Duration::ZERO)]),
            reports: Store::new([Queue::new(Duration::ZERO)]),
            ledger: Shared::new(Ledger::new(access.quota)),
            antrea: access.antrea.clone(),
            noted: access.noted.clone(),
            metrics: access.env.metrics.clone(),
            common_area: access.common_area.clone(),
        };
        records.measure(0);
        records
    }

    /// Takes in what the watch told. Whether all is to be listed again: see [`Ledger::wants_list`].
    pub(super) fn change(&self, change: Change<Record>) -> bool {
        let bounds = self.noted.bounds();
        let change = change.map(|record| judged(record, &self.antrea, &bounds));
        self.ledger.with(|ledger| {
            self.enter(ledger, change);
            ledger.wants_list(Instant::now())
        })
    }

    /// Time has passed: admits what was refused and has room since a while. Whether all is to be listed again.
    pub(super) fn pass_time(&self, now: Instant) -> bool {
        self.ledger.with(|ledger| {
            let admitted = ledger.admit_late(now);
            if !admitted.is_empty() {
                admitted.into_iter().for_each(|record| self.tell(Change::Apply(record)));
                self.measure(ledger.over());
            }
            ledger.wants_list(now)
        })
    }

    /// What the record is worth, beside all the others.
    pub(super) fn judged(&self, record: Record) -> Judged {
        let judged = self.by_itself(record);
        self.ledger.with(|ledger| ledger.ruled(judged))
    }

    /// Refuses this version of a record for what it does not show by itself.
    pub(super) fn refuse(&self, record: &ObjectMeta, objection: Objection) {
        self.ledger.with(|ledger| {
            if let Some(refused) = ledger.refuse(record, objection) {
                self.tell(Change::Apply(refused));
            }
            self.measure(ledger.over());
        });
    }

    /// Takes in a record that was refused for what it does not show by itself. Whether it is still as it was read.
    pub(super) fn admit(&self, record: Record) -> bool {
        self.ledger.with(|ledger| {
            let is_current = ledger.is_current(&record.metadata);
            if is_current {
                ledger.admit(&record.metadata);
                self.enter(ledger, Change::Apply(self.by_itself(record)));
            }
            is_current
        })
    }

    /// Takes in a record whose content was not kept. One that changed or went meanwhile comes by the watch.
    pub(super) fn read_again(&self, record: Record) {
        self.ledger.with(|ledger| {
            if ledger.is_current(&record.metadata) {
                self.enter(ledger, Change::Apply(self.by_itself(record)));
            }
        });
    }

    fn by_itself(&self, record: Record) -> Judged {
        judged(record, &self.antrea, &self.noted.bounds())
    }

    fn enter(&self, ledger: &mut Ledger, change: Change<Judged>) {
        ledger.change(change, Instant::now()).into_iter().for_each(|change| self.tell(change));
        self.measure(ledger.over());
    }

    fn tell(&self, change: Change<Judged>) {
        self.reports.change(change.clone());
        self.entries.change(change);
    }

    fn measure(&self, over_quota: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.refused(&self.common_area).set(number(self.reports.count::<Judged>()));
        self.metrics.over_quota(&self.common_area).set(number(over_quota));
    }
}
