//! Importing: watches ResourceImports and other clusters' slices in the Common Area, Namespaces, and here the Services,
//! EndpointSlices and ServiceImports it makes; writes and deletes those. Our own cluster's endpoints come from its own
//! slices, not by way of the leader. Safe to run twice: what is written is a function of what is watched, deletions name
//! the uid, and nothing without our label is touched.

mod address;
pub mod belief;
mod doubt;
mod exported;
mod object;
mod place;
pub mod plan;
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
    belief::Hub,
    object::service_import,
    plan::{Plan, Realise, desired},
    verdict::{Refusal, Refusals, Transition},
};
use super::{
    entry::{IMPORT, ServiceEntry},
    knowledge::Knowledge,
    view::{Import, is_ours},
};
use crate::identity::Identity;

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Importing {
    /// Who we are.
    pub us: Identity,
    /// Everything this member knows.
    pub knowledge: Knowledge,
    /// What the writers' Leases say.
    pub vouching: Vouching<ServiceName>,
    /// Members that run Antrea's controllers.
    pub antrea: Members,
    /// Reads from the Common Area.
    pub leader: Client,
    /// Writes to this cluster.
    pub writer: Writer,
    /// Where to leave Events.
    pub events: Events,
    /// Counts what is doubted.
    pub metrics: Metrics,
}

impl Importing {
    /// Brings what realises one import up to date.
    pub async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let known = self.knowledge.entry(&service).filter(|_| self.knowledge.is_active(&service.namespace));
        let Some(entry) = known else {
            self.vouching.keep(&service, &BTreeSet::new());
            return Ok(Outcome::Done);
        };
        let hub = self.hub(&service, &entry);
        let plan = desired(&self.us.cluster, &service, &hub, &entry);
        let doubts = match &plan {
            Plan::Hold(doubts) => doubts,
            Plan::Realise(realise) => &realise.doubts,
            Plan::Nothing | Plan::Remove => &vec![],
        };
        if self.settle(&service, &hub, &entry, doubts).await? {
            return Ok(Outcome::Requeue(Duration::ZERO));
        }
        let done = match plan {
            Plan::Nothing | Plan::Hold(_) => Ok(()),
            Plan::Remove => self.remove(&entry).await,
            Plan::Realise(realise) => self.realise(&service, &hub, &entry, realise).await,
        };
        match done {
            // The Namespace is going: if it comes back its event asks again.
            Err(Error::Gone) if !self.knowledge.is_active(&service.namespace) => Ok(Outcome::Done),
            Err(Error::Gone) => Ok(Outcome::Failed),
            other => other.map(|()| Outcome::Done),
        }
    }

    /// What is known of those who write about the Service.
    fn hub(&self, service: &ServiceName, entry: &ServiceEntry) -> Hub {
        let named = entry.hub_import.iter().flat_map(|import| import.spec.exporters.iter().flatten());
        let clusters = named.map(|e| e.cluster_id.clone()).chain(belief::parts(entry));
        let writers =
            clusters.map(|cluster| name::member_lease(&cluster)).chain([name::LEADER_LEASE.to_owned()]);
        Hub {
            uid: self.vouching.uid(name::LEADER_LEASE).unwrap_or_default(),
            restored: self.vouching.is_restored(),
            outdated: writers.filter(|writer| !self.vouching.is_current(service, writer)).collect(),
        }
    }

    async fn remove(&self, entry: &ServiceEntry) -> Result<(), Error> {
        // The import last: it notes what is needed to finish, should we be stopped on the way.
        for slice in entry.imported_slices.values() {
            self.delete(slice).await?;
        }
        self.remove_service(entry).await?;
        if let Some(import) = entry.import.as_ref().filter(|import| is_ours(&import.metadata)) {
            self.delete(import).await?;
        }
        Ok(())
    }

    async fn delete<P: Part<ServiceName, ServiceEntry>>(&self, object: &P) -> Result<(), Error> {
        self.knowledge.services.delete(&self.writer, IMPORT, object, false).await
    }

    async fn realise(
        &self,
        service: &ServiceName,
        hub: &Hub,
        entry: &ServiceEntry,
        realise: Realise,
    ) -> Result<(), Error> {
        if let Some(uid) = realise.accepted.as_ref().filter(|uid| entry.accepted.as_ref() != Some(*uid)) {
            self.knowledge.services.note(service, |entry| entry.accepted = Some(uid.clone()));
        }
        if let Some(import) = entry.import.as_ref().filter(|import| !is_ours(&import.metadata)) {
            let message =
                "a ServiceImport of this name is there that Freeport did not make; it is left alone";
            tracing::warn!(%service, message);
            self.events.warn(import.object_ref(&()), "Import", "NotOurs", message);
            return Ok(());
        }
        let mut refusals = Refusals::default();
        let import = |addresses| service_import(service, hub, entry, &realise, addresses);
        // One without an address is told of first, and one with an address when it has it: nobody finds an address that is
        // not, or not any more.
        let (want, written, is_reachable) = if realise.is_headless() || realise.families.is_empty() {
            let want = import(vec![]);
            let written = self.put_import(entry, &want, &mut refusals).await?;
            self.place(service, entry, &realise, &mut refusals).await?;
            // Endpoints are found by way of a headless import, even where its Service is refused.
            (want, written, realise.is_headless() && !realise.taken)
        } else {
            let addresses = self.place(service, entry, &realise, &mut refusals).await?;
            let is_reachable = !addresses.is_empty();
            let want = import(addresses);
            let written = self.put_import(entry, &want, &mut refusals).await?;
            (want, written, is_reachable)
        };
        if is_reachable {
            self.put_slices(entry, &realise, &mut refusals).await?;
        }
        for slice in realise.leftover.iter().filter_map(|name| entry.imported_slices.get(name)) {
            self.delete(slice).await?;
        }
        match written.or_else(|| entry.import.clone()) {
            Some(import) => self.tell(&import, &realise, &refusals).await?,
            None => self.complain(&want, &refusals),
        }
        refusals.into_error().map_or(Ok(()), Err)
    }

    /// Brings the Service up to date, or takes it away where it cannot be reached. The addresses it has then.
    async fn place(
        &self,
        service: &ServiceName,
        entry: &ServiceEntry,
        realise: &Realise,
        refusals: &mut Refusals,
    ) -> Result<Vec<String>, Error> {
        if realise.taken {
            return Ok(vec![]);
        }
        if realise.families.is_empty() {
            return self.remove_service(entry).await.map(|()| vec![]);
        }
        let placed = self.put_service(service, entry, realise).await;
        // One that had to be made anew is gone by now.
        let there = || entry.derived.clone().filter(|there| is_ours(&there.metadata) && realise.fits(there));
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
        realise: &Realise,
        refusals: &mut Refusals,
    ) -> Result<(), Error> {
        let mut failed = None;
        for slice in &realise.slices {
            let have = entry.imported_slices.get(&slice.name_any());
            let put = self.knowledge.put_imported(&self.writer, have, slice).await;
            if let Err(error) = refusals.note(Refusal::EndpointSlice, put) {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn tell(&self, import: &Import, realise: &Realise, refusals: &Refusals) -> Result<(), Error> {
        let verdict = verdict::ready(&import.name_any(), realise, refusals);
        let have = import.status.0.clone().unwrap_or_default();
        let want =
            self.writer.known::<Import, _>(&status(realise, &verdict, &have, import.metadata.generation))?;
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

    /// Where there is no ServiceImport to say it on.
    fn complain(&self, import: &Import, refusals: &Refusals) {
        if let Some((reason, message)) = refusals.said(&import.name_any()) {
            self.events.warn(import.object_ref(&()), "Import", reason, &message);
        }
    }
}

fn status(
    realise: &Realise,
    verdict: &Verdict,
    have: &ServiceImportStatus,
    generation: Option<i64>,
) -> ServiceImportStatus {
    ServiceImportStatus {
        clusters: realise
            .clusters
            .iter()
            .map(|cluster| ImportedCluster { cluster: cluster.clone() })
            .collect(),
        conditions: conditions(
            std::slice::from_ref(verdict),
            &have.conditions,
            generation,
            &Time(Timestamp::now()),
        ),
        endpoint_slice_objects: Some(EndpointSliceObjects::Present),
    }
}
