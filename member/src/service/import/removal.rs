//! The end of an import: its slices, its Endpoints and its Service are deleted, and last the ServiceImport, which notes what is needed to
//! finish after a restart. Where the API server refuses a deletion, the ServiceImport reports it.

use api::{
    ServiceName,
    condition::{Status, Verdict, already_said, conditions},
    mcs::READY,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{index::Part, write::Error};
use kube::{Resource, ResourceExt};

use super::Importing;
use crate::service::index::{
    IMPORT,
    entry::ServiceEntry,
    known::Known,
    view::{Import, is_made},
};

impl Importing {
    /// Deletes all that is here of an import. Its address is remembered: the import may come back.
    pub(super) async fn remove(&self, known: &Known) -> Result<(), Error> {
        let (entry, mut failed) = (&known.entry, None);
        self.addresses.ends(known, Timestamp::now());
        for slice in entry.imported_slices.values() {
            failed = failed.or(self.delete(&**slice).await.err());
        }
        if let Some(endpoints) = entry.imported_endpoints.as_deref() {
            failed = failed.or(self.delete(endpoints).await.err());
        }
        failed = failed.or(self.remove_service(entry).await.err());
        match (failed, entry.own_import()) {
            (Some(error), Some(import)) => {
                if let Some(words) = error.refusal() {
                    self.report_refused(import, &words).await?;
                }
                Err(error)
            }
            (Some(error), None) => Err(error),
            (None, Some(import)) => self.delete(import).await,
            (None, None) => Ok(()),
        }
    }

    /// Deletes an object of an import, whatever somebody put on it to hold it. What we did not make, a copy that has our name, stays.
    pub(super) async fn delete<P: Part<ServiceName, ServiceEntry, DynamicType = ()>>(
        &self,
        object: &P,
    ) -> Result<(), Error> {
        if !is_made(object) {
            return Ok(());
        }
        let held: Vec<_> = object.finalizers().iter().map(String::as_str).collect();
        if !held.is_empty() {
            self.writer.release(object, &held).await?;
        }
        self.knowledge.services.delete(&self.writer, IMPORT, object, false).await
    }

    /// Reports on the ServiceImport that the API server refuses to delete what belongs to it, with its words.
    async fn report_refused(&self, import: &Import, words: &str) -> Result<(), Error> {
        let (verdict, have) = (refused(words), import.status.0.clone().unwrap_or_default());
        let generation = import.metadata.generation;
        let mut said =
            conditions(std::slice::from_ref(&verdict), &have.conditions, generation, &Time(Timestamp::now()));
        if already_said(&have.conditions, &said) {
            return Ok(());
        }
        said.extend(have.conditions.iter().filter(|had| had.type_ != verdict.type_).cloned());
        let mut want = have;
        want.conditions = said;
        let want = self.writer.known::<Import, _>(&want)?;
        self.knowledge.services.put_status(&self.writer, IMPORT, import, &want).await?;
        self.events.warn(import.object_ref(&()), "Import", &verdict.reason, &verdict.message);
        Ok(())
    }
}

fn refused(words: &str) -> Verdict {
    let message = format!(
        "no cluster exports this Service any more, and the API server refuses to delete what was imported: {words:?}. Change what refuses it; \
         freeport-member tries again within a minute"
    );
    Verdict::new(READY, Status::False, "DeletionRefused", message)
}
