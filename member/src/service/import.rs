//! Importing: watches ResourceImports and other clusters' slices in the Common Area, Namespaces, and here the Services,
//! EndpointSlices and ServiceImports it makes; writes and deletes those. Our own cluster's endpoints come from its own
//! slices, not by way of the leader. Safe to run twice: what is written is a function of what is watched, deletions name
//! the uid, and nothing without our label is touched.

pub mod belief;
mod doubt;
mod exported;
pub mod plan;

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
    index::{Part, Shared},
    metrics::Metrics,
    queue::Outcome,
    vouch::Vouching,
    write::{Error, Writer},
};
use kube::{Client, Resource, ResourceExt};

use self::{
    belief::Hub,
    plan::{Plan, Realise, desired, service_import},
};
use super::{
    entry::ServiceEntry,
    export::Identity,
    knowledge::Knowledge,
    view::{Derived, Import, Service, is_ours},
};

/// Pauses between attempts to get the address of a lost Service back, in milliseconds.
const ADDRESS_RELEASE: [u64; 6] = [50, 100, 200, 400, 800, 1600];

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Importing {
    /// Who we are.
    pub us: Identity,
    /// Everything this member knows.
    pub knowledge: Knowledge,
    /// What the writers' Leases say.
    pub vouching: Shared<Vouching<ServiceName>>,
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
        let known = self.knowledge.known.with(|known| {
            known.services.get(&service).filter(|_| known.is_active(&service.namespace)).cloned()
        });
        let Some(entry) = known else {
            self.vouching.with(|vouching| vouching.keep(&service, &BTreeSet::new()));
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
            return Ok(Outcome::Again(Duration::ZERO));
        }
        let done = match plan {
            Plan::Nothing | Plan::Hold(_) => Ok(()),
            Plan::Remove => self.remove(&entry).await,
            Plan::Realise(realise) => self.realise(&service, &hub, &entry, realise).await,
        };
        match done {
            // The Namespace is going: if it comes back its event asks again.
            Err(Error::Gone) if !self.knowledge.known.with(|known| known.is_active(&service.namespace)) => {
                Ok(Outcome::Done)
            }
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
        self.vouching.with(|vouching| Hub {
            uid: vouching.uid(name::LEADER_LEASE).unwrap_or_default(),
            restored: vouching.is_restored(),
            outdated: writers.filter(|writer| !vouching.is_current(service, writer)).collect(),
        })
    }

    async fn remove(&self, entry: &ServiceEntry) -> Result<(), Error> {
        // The import last: it notes what is needed to finish, should we be stopped on the way.
        for slice in entry.imported_slices.values() {
            self.delete(slice).await?;
        }
        if let Some(derived) = entry.derived.as_ref().filter(|derived| is_ours(&derived.metadata)) {
            self.delete(&Derived::from(derived.clone())).await?;
        }
        if let Some(import) = entry.import.as_ref().filter(|import| is_ours(&import.metadata)) {
            self.delete(import).await?;
        }
        Ok(())
    }

    async fn delete<P: Part<ServiceName, ServiceEntry>>(&self, object: &P) -> Result<(), Error> {
        self.writer.delete(object, false).await?;
        self.knowledge.deleted(object);
        Ok(())
    }

    async fn realise(
        &self,
        service: &ServiceName,
        hub: &Hub,
        entry: &ServiceEntry,
        realise: Realise,
    ) -> Result<(), Error> {
        if let Some(uid) = realise.accepted.as_ref().filter(|uid| entry.accepted.as_ref() != Some(*uid)) {
            self.knowledge.known.with(|known| {
                known.services.note(service, |entry| entry.accepted = Some(uid.clone()));
            });
        }
        if let Some(import) = entry.import.as_ref().filter(|import| !is_ours(&import.metadata)) {
            let message =
                "a ServiceImport of this name is there that Freeport did not make; it is left alone";
            tracing::warn!(%service, message);
            self.events.warn(import.object_ref(&()), "Import", "NotOurs", message);
            return Ok(());
        }
        let addresses = if realise.taken {
            vec![]
        } else {
            self.put_service(service, entry, &realise).await?.spec.cluster_ip.into_iter().collect()
        };
        let want = service_import(service, hub, entry, &realise, addresses);
        let written = self.writer.put(entry.import.as_ref(), &want).await?;
        if let Some(import) = written.clone() {
            self.knowledge.echo(import);
        }
        // One slice that the API server does not take must not keep the others out.
        let mut failed = None;
        for slice in &realise.slices {
            match self.writer.put(entry.imported_slices.get(&slice.name_any()), slice).await {
                Ok(Some(slice)) => self.knowledge.echo(slice),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        for slice in realise.leftover.iter().filter_map(|name| entry.imported_slices.get(name)) {
            self.delete(slice).await?;
        }
        let Some(import) = written.or_else(|| entry.import.clone()) else {
            return Ok(());
        };
        self.tell(&import, &realise).await?;
        failed.map_or(Ok(()), Err)
    }

    /// Makes or mends the Service. One that was lost gets the address noted in the import back, if it is still free.
    async fn put_service(
        &self,
        service: &ServiceName,
        entry: &ServiceEntry,
        realise: &Realise,
    ) -> Result<Service, Error> {
        let want = plan::derived(service, entry, realise);
        let mut written = self.writer.put(entry.derived.as_ref(), &want).await;
        if entry.derived.is_none() && want.spec.cluster_ip.is_some() {
            // The API server releases the address of a deleted Service a moment after the Service is gone.
            for wait in ADDRESS_RELEASE {
                let Err(Error::Refused(_)) = &written else { break };
                tokio::time::sleep(Duration::from_millis(wait)).await;
                written = self.writer.put(None, &want).await;
            }
            if let Err(Error::Refused(why)) = &written {
                tracing::warn!(%service, why, "the imported Service cannot have its old address back");
                let mut any = want.clone();
                any.spec.cluster_ip = None;
                written = self.writer.put(None, &any).await;
            }
        }
        let written = written?;
        if let Some(service) = written.clone() {
            self.knowledge.echo(Derived::from(service));
        }
        Ok(written.or_else(|| entry.derived.clone()).unwrap_or(want))
    }

    async fn tell(&self, import: &Import, realise: &Realise) -> Result<(), Error> {
        let verdict = plan::ready(&import.name_any(), realise);
        let have = import.status.0.clone().unwrap_or_default();
        let want = status(realise, &verdict, &have, import.metadata.generation);
        if have.clusters == want.clusters
            && have.endpoint_slice_objects == want.endpoint_slice_objects
            && already_said(&have.conditions, &want.conditions)
        {
            return Ok(());
        }
        if realise.taken {
            self.events.warn(import.object_ref(&()), "Import", &verdict.reason, &verdict.message);
        }
        let told = self.writer.put_status(import, &want).await?;
        self.knowledge.echo(told);
        Ok(())
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
