//! Merging: watches records of kind `Service`, ResourceImports and Leases; writes ResourceImports; deletes records whose
//! withdrawal is merged, and a ResourceImport nobody exports to any more, but for one that says who was evicted. For members that run Antrea's controllers ([`antrea`]) it
//! writes a second one with all endpoints, and takes finalizers off. Safe to run twice: what is written is a function
//! of the records, and every deletion names the version it decided on.
//!
//! An import that the API server refuses is written without the export because of which it does ([`culprit`]).

mod culprit;
mod evicted;

use std::{collections::BTreeSet, time::Duration};

use api::{
    ServiceName,
    antrea::RECORD_FINALIZERS,
    name,
    resource_export::ResourceExport,
    resource_import::ResourceImportSpec,
    view::{Lenient, Meta},
};
use kit::{
    drive::drive,
    planted::Defect,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::api::ObjectMeta;
use presence::vouch::Vouching;
use rules::merge::import as merged_import;
use tokio_util::sync::CancellationToken;

use self::evicted::{is_over, lost};
use super::{
    antrea,
    index::{
        entry::{Import, MERGE, ServiceEntry},
        judged::Judged,
        record::is_held,
    },
    records::Records,
};
use crate::feature::Access;

/// After this time an export is tried again because of which an API server refused the import.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// What to do about a Service name.
#[derive(Clone, Debug, PartialEq)]
enum Plan {
    /// The import never named its exporters: it is not known whether it has lost them, and stays as it is.
    Hold,
    /// The import as it has to be (`None`: there is none and there must be none), then these records to delete. Records of the
    /// `missing` clusters vanished without being withdrawn: their parts stay as they are until their members vouch.
    Write { import: Option<ResourceImportSpec>, withdrawn: Vec<ObjectMeta>, missing: BTreeSet<String> },
}

fn desired(service: &ServiceName, entry: &ServiceEntry) -> Plan {
    let have = entry.import.as_ref().and_then(|import| import.spec.0.as_ref().ok());
    let named = have.and_then(|spec| spec.exporters.as_deref()).unwrap_or_default();
    let vanished = |cluster: &String| !entry.has_record(cluster) && !entry.confirmed_gone.contains(cluster);
    let missing: BTreeSet<_> = named.iter().map(|e| e.cluster_id.clone()).filter(vanished).collect();
    let (gone, live): (Vec<_>, Vec<_>) = entry.offers.iter().partition(|(_, offer)| offer.payload.withdrawn);
    let withdrawn = gone.into_iter().map(|(_, offer)| offer.metadata.clone()).collect();
    let is_kept = |cluster: &String| entry.refused.contains_key(cluster) || missing.contains(cluster);
    let kept: Vec<_> = named.iter().filter(|e| is_kept(&e.cluster_id)).collect();
    if live.is_empty() && kept.is_empty() && have.is_none() {
        return Plan::Write { import: None, withdrawn, missing };
    }
    if live.is_empty() && have.is_some_and(|spec| spec.exporters.is_none()) {
        return Plan::Hold;
    }
    let live = live.into_iter().map(|(cluster, offer)| (cluster.as_str(), &**offer)).collect();
    let had = have.and_then(|spec| spec.service_import.as_ref());
    let spec = merged_import(service, live, had, kept);
    Plan::Write { import: Some(spec), withdrawn, missing }
}

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Merging {
    pub(super) access: Access,
    pub(super) records: Records,
    pub(super) vouching: Vouching<ServiceName>,
    pub(super) writer: Writer,
}

impl Merging {
    /// Runs the controller until `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        let metrics = self.access.env.metrics.clone();
        let reconcile = |service| self.clone().reconcile(service);
        drive("merge", self.records.entries.queue(0), metrics, stop.clone(), reconcile).await;
    }

    /// Brings the ResourceImport of one Service name up to date.
    async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let Some(entry) = self.records.entries.get(&service) else {
            self.vouching.keep(&service, &BTreeSet::new());
            return Ok(Outcome::Done);
        };
        let Plan::Write { mut import, withdrawn, missing } = desired(&service, &entry) else {
            self.vouching.keep(&service, &BTreeSet::new());
            return Ok(Outcome::Done);
        };
        if let Some(import) = &mut import {
            let had = entry.import.as_ref().and_then(|import| import.spec.0.as_ref().ok());
            import.evicted = self.access.silences.with(|silences| lost(had, import, silences.evicted()));
            let count = |spec: &ResourceImportSpec| spec.exporters.as_ref().map(Vec::len);
            if Defect::WrongDelete.is_planted() && had.and_then(count) > count(import) {
                import.exporters = Some(vec![]);
            }
        }
        let is_complete = missing.is_empty();
        // What the others export is written all the same, where a read cannot confirm what vanished.
        let gone = self.are_gone(&service, missing).await;
        if matches!(gone, Ok(true)) {
            return Ok(Outcome::Requeue(Duration::ZERO));
        }
        // What is made for Antrea's members has all endpoints in one object, and no parts that could stay.
        let (endpoints, held) = match is_complete {
            true => {
                let endpoints = antrea::desired(&service, &entry, import.as_ref(), &self.access.antrea);
                (endpoints, antrea::held(&entry))
            }
            false => (antrea::Step::Keep, vec![]),
        };
        let outcome = self.write(&service, &entry, import, endpoints, [withdrawn, held].concat()).await?;
        let is_left_out = !entry.left_out.is_empty() && self.try_again(&service, &entry).await?;
        gone?;
        Ok(if is_left_out { Outcome::Requeue(TRY_AGAIN) } else { outcome })
    }

    /// Whether the record of one of the `missing` turned out to be gone for good.
    async fn are_gone(&self, service: &ServiceName, missing: BTreeSet<String>) -> Result<bool, Error> {
        let writers = missing.iter().map(|cluster| name::member_lease(cluster)).collect();
        self.vouching.keep(service, &writers);
        for cluster in missing {
            let writer = name::member_lease(&cluster);
            let record = self.access.antrea.service_export(&cluster, service);
            let missing = [record.clone()].into();
            if !self.vouching.doubt(service, &writer, &missing) {
                tracing::info!(%service, cluster, "a record vanished without being withdrawn: keeping the cluster's part of the ResourceImport");
                continue;
            }
            let records = self.access.api::<Meta<ResourceExport>>();
            // Without a resourceVersion this is a consistent read, not one from a cache.
            if records.get_opt(&record).await?.is_none() {
                tracing::info!(%service, cluster, "a record is gone, and its member confirms it");
                self.records.entries.note(service, |entry| {
                    // Unless it came back while we asked.
                    if !entry.has_record(&cluster) {
                        entry.confirmed_gone.insert(cluster);
                    }
                });
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn write(
        &self,
        service: &ServiceName,
        have: &ServiceEntry,
        want: Option<ResourceImportSpec>,
        endpoints: antrea::Step,
        withdrawn: Vec<ObjectMeta>,
    ) -> Result<Outcome, Error> {
        let is_over = want.as_ref().is_some_and(is_over);
        let written = match want {
            Some(spec) => {
                let want = self.import(name::service_import(service), spec);
                match self.put(have.import.as_deref(), &want).await {
                    Err(Error::Refused(why)) => return self.leave_out(service, have, why).await,
                    written => written,
                }
            }
            None => Ok(None),
        };
        // Whoever reads this one does not wait for the other.
        let endpoints = match endpoints {
            antrea::Step::Keep => Ok(()),
            antrea::Step::Put(spec) => {
                let have = have.endpoints_import.as_deref();
                self.put(have, &self.import(name::endpoints_import(service), *spec)).await.map(drop)
            }
            antrea::Step::Remove(import) => self.remove(&import).await,
        };
        let written = written?;
        endpoints?;
        let deleted = self.delete(withdrawn).await;
        if let Some(import) = written.as_ref().or(have.import.as_deref()).filter(|_| is_over) {
            self.remove(import).await?;
        }
        deleted.map(|()| Outcome::Done)
    }

    fn import(&self, name: String, spec: ResourceImportSpec) -> Import {
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: Some(self.access.common_area.clone()),
            finalizers: Some(vec![]),
            owner_references: Some(vec![]),
            ..ObjectMeta::default()
        };
        Import { metadata, spec: Lenient(Ok(spec)) }
    }

    async fn put(&self, have: Option<&Import>, want: &Import) -> Result<Option<Import>, Error> {
        // If the import exists already, the create fails with `Stale`. This plan does not know the import's exporters; the retry observes them.
        self.records.entries.put(&self.writer, MERGE, have, want).await
    }

    async fn remove(&self, import: &Import) -> Result<(), Error> {
        self.records.entries.delete(&self.writer, MERGE, import, true).await
    }

    /// Deletes withdrawn records, each only as it was when its withdrawal was merged: it may be an offer again by now. Where the
    /// member deleted the record itself, takes the finalizer off. One that does not go does not hold the others.
    async fn delete(&self, withdrawn: Vec<ObjectMeta>) -> Result<(), Error> {
        let mut failed = None;
        for metadata in withdrawn {
            let record = Judged::named(metadata);
            let entries = &self.records.entries;
            let gone = if is_held(&record.metadata) {
                let released = self.writer.release(&record, &RECORD_FINALIZERS).await;
                released.map(|()| entries.deleted(MERGE, &record))
            } else {
                entries.delete(&self.writer, MERGE, &record, true).await
            };
            failed = failed.or(gone.err());
        }
        failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
