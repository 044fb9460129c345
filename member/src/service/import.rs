//! Importing: watches ResourceImports and other clusters' slices in the Common Area, Namespaces, and here the Services,
//! EndpointSlices and ServiceImports it makes; writes and deletes those. Our own cluster's endpoints come from its own
//! slices, not by way of the leader. Safe to run twice: what is written is a function of what is watched, deletions name
//! the uid, and nothing without our label is touched.

mod address;
mod continuity;
mod doubt;
mod metadata;
mod object;
mod place;
mod plan;
mod slice;
mod verdict;

use std::{collections::BTreeSet, time::Duration};

use api::{
    ServiceName,
    antrea::Members,
    condition::{Verdict, already_said, conditions},
    mcs::{EndpointSliceObjects, ImportedCluster, ServiceImportStatus},
    name,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    events::Events,
    index::Part,
    metrics::Metrics,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Client, Resource, ResourceExt};
use presence::vouch::Vouching;

use self::{
    continuity::Writers,
    object::service_import,
    plan::{DesiredImport, Plan, desired},
    verdict::{Refusal, Refusals, Transition},
};
use super::{
    index::{
        IMPORT,
        entry::ServiceEntry,
        known::Known,
        view::{Import, is_ours},
    },
    knowledge::Knowledge,
};
use crate::identity::Identity;

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Importing {
    /// Who we are.
    pub(crate) us: Identity,
    /// Everything this member knows.
    pub(crate) knowledge: Knowledge,
    /// What the writers' Leases say.
    pub(crate) vouching: Vouching<ServiceName>,
    /// Members that run Antrea's controllers.
    pub(crate) antrea: Members,
    /// Reads from the Common Area.
    pub(crate) leader: Client,
    /// Writes to this cluster.
    pub(crate) writer: Writer,
    /// Where to leave Events.
    pub(crate) events: Events,
    /// Counts what is doubted.
    pub(crate) metrics: Metrics,
}

impl Importing {
    /// Brings what is here of one import up to date.
    pub(crate) async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let known = self.knowledge.known(&service).filter(|known| known.namespace.active);
        let Some(known) = known else {
            self.vouching.keep(&service, &BTreeSet::new());
            return Ok(Outcome::Done);
        };
        let writers = self.writers(&known);
        let plan = desired(&known, &writers);
        if self.settle(&known, &writers, plan.doubts()).await? {
            return Ok(Outcome::Requeue(Duration::ZERO));
        }
        let done = match plan {
            Plan::Nothing | Plan::Hold(_) => Ok(()),
            Plan::Remove => self.remove(&known.entry).await,
            Plan::Import(import) => self.apply(&known, &writers, import).await,
        };
        match done {
            // The Namespace is going: if it comes back its event asks again.
            Err(Error::Gone) if !self.knowledge.is_active(&service.namespace) => Ok(Outcome::Done),
            Err(Error::Gone) => Ok(Outcome::Failed),
            other => other.map(|()| Outcome::Done),
        }
    }

    /// What is known of those who write about the Service.
    fn writers(&self, known: &Known) -> Writers {
        let exporters = known.exporters().iter().map(|exporter| exporter.cluster_id.clone());
        let leases = exporters.chain(known.entry.parts()).map(|cluster| name::member_lease(&cluster));
        let leases = leases.chain([name::LEADER_LEASE.to_owned()]);
        Writers {
            leader_uid: self.vouching.uid(name::LEADER_LEASE).unwrap_or_default(),
            restored: self.vouching.is_restored(),
            outdated: leases.filter(|lease| !self.vouching.is_current(&known.service, lease)).collect(),
        }
    }

    async fn remove(&self, entry: &ServiceEntry) -> Result<(), Error> {
        // The import last: it notes what is needed to finish, should we be stopped on the way.
        for slice in entry.imported_slices.values() {
            self.delete(slice).await?;
        }
        self.remove_service(entry).await?;
        match entry.own_import() {
            Some(import) => self.delete(import).await,
            None => Ok(()),
        }
    }

    async fn delete<P: Part<ServiceName, ServiceEntry>>(&self, object: &P) -> Result<(), Error> {
        self.knowledge.services.delete(&self.writer, IMPORT, object, false).await
    }

    async fn apply(&self, known: &Known, writers: &Writers, desired: DesiredImport) -> Result<(), Error> {
        let (service, entry) = (&known.service, &known.entry);
        if let Some(uid) = desired.accepted.as_ref().filter(|uid| known.accepted() != Some(*uid)) {
            self.knowledge.services.note(service, |entry| entry.accepted = Some(uid.clone()));
        }
        if let Some(import) = entry.import.as_ref().filter(|import| !is_ours(&import.metadata)) {
            let message = "a ServiceImport of this name exists and was not created by Freeport; Freeport does not change it";
            tracing::warn!(%service, message);
            self.events.warn(import.object_ref(&()), "Import", "NotOurs", message);
            return Ok(());
        }
        let mut refusals = Refusals::default();
        let import = |addresses| service_import(known, writers, &desired, addresses);
        // One without an address is written first, and one with an address when it has it: nobody finds an address that is
        // not, or not any more.
        let (want, written, is_reachable) = if desired.is_headless() || desired.families.is_empty() {
            let want = import(vec![]);
            let written = self.put_import(entry, &want, &mut refusals).await?;
            self.place(known, &desired, &mut refusals).await?;
            // Endpoints are found by way of a headless import, even where its Service is refused.
            (want, written, desired.is_headless() && !desired.taken)
        } else {
            let addresses = self.place(known, &desired, &mut refusals).await?;
            let is_reachable = !addresses.is_empty();
            let want = import(addresses);
            let written = self.put_import(entry, &want, &mut refusals).await?;
            (want, written, is_reachable)
        };
        if is_reachable {
            self.put_slices(entry, &desired, &mut refusals).await?;
        }
        for slice in desired.leftover.iter().filter_map(|name| entry.imported_slices.get(name)) {
            self.delete(slice).await?;
        }
        match written.or_else(|| entry.import.clone()) {
            Some(import) => self.write_status(&import, &desired, &refusals).await?,
            None => self.warn_of(&want, &refusals),
        }
        refusals.into_error().map_or(Ok(()), Err)
    }

    /// Brings the Service up to date, or takes it away where it cannot be reached. The addresses it has then.
    async fn place(
        &self,
        known: &Known,
        desired: &DesiredImport,
        refusals: &mut Refusals,
    ) -> Result<Vec<String>, Error> {
        if desired.taken {
            return Ok(vec![]);
        }
        if desired.families.is_empty() {
            return self.remove_service(&known.entry).await.map(|()| vec![]);
        }
        let placed = self.put_service(known, desired).await;
        // One that had to be made anew is gone by now.
        let there = || known.entry.own_derived().filter(|there| desired.fits(there)).cloned();
        let service = refusals.note(Refusal::Service, placed)?.or_else(there);
        Ok(service.iter().flat_map(|service| service.spec.addresses()).cloned().collect())
    }

    async fn put_import(
        &self,
        entry: &ServiceEntry,
        want: &Import,
        refusals: &mut Refusals,
    ) -> Result<Option<Import>, Error> {
        let written = self.knowledge.put_imported(&self.writer, entry.import.as_ref(), want).await;
        Ok(refusals.note(Refusal::ServiceImport, written)?.flatten())
    }

    /// One slice that the API server does not take must not keep the others out.
    async fn put_slices(
        &self,
        entry: &ServiceEntry,
        desired: &DesiredImport,
        refusals: &mut Refusals,
    ) -> Result<(), Error> {
        let mut failed = None;
        for slice in &desired.slices {
            let have = entry.imported_slices.get(&slice.name_any());
            let put = self.knowledge.put_imported(&self.writer, have, slice).await;
            if let Err(error) = refusals.note(Refusal::EndpointSlice, put) {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn write_status(
        &self,
        import: &Import,
        desired: &DesiredImport,
        refusals: &Refusals,
    ) -> Result<(), Error> {
        let verdict = verdict::ready(&import.name_any(), desired, refusals);
        let have = import.status.0.clone().unwrap_or_default();
        let want =
            self.writer.known::<Import, _>(&status(desired, &verdict, &have, import.metadata.generation))?;
        if have.clusters == want.clusters
            && have.endpoint_slice_objects == want.endpoint_slice_objects
            && already_said(&have.conditions, &want.conditions)
        {
            return Ok(());
        }
        self.knowledge.services.put_status(&self.writer, IMPORT, import, &want).await?;
        match verdict::transition(&have.conditions, &verdict) {
            Some(Transition::Worse) => {
                self.events.warn(import.object_ref(&()), "Import", &verdict.reason, &verdict.message);
            }
            Some(Transition::Better) => {
                self.events.tell(import.object_ref(&()), "Import", &verdict.reason, &verdict.message);
            }
            None => {}
        }
        Ok(())
    }

    /// Where there is no ServiceImport whose status could say it.
    fn warn_of(&self, import: &Import, refusals: &Refusals) {
        if let Some((reason, message)) = refusals.worst(&import.name_any()) {
            self.events.warn(import.object_ref(&()), "Import", reason, &message);
        }
    }
}

fn status(
    desired: &DesiredImport,
    verdict: &Verdict,
    have: &ServiceImportStatus,
    generation: Option<i64>,
) -> ServiceImportStatus {
    let verdicts = std::slice::from_ref(verdict);
    let cluster = |cluster: &String| ImportedCluster { cluster: cluster.clone() };
    ServiceImportStatus {
        clusters: desired.clusters.iter().map(cluster).collect(),
        conditions: conditions(verdicts, &have.conditions, generation, &Time(Timestamp::now())),
        endpoint_slice_objects: Some(EndpointSliceObjects::Present),
    }
}
