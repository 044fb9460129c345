//! Importing: watches ResourceImports and other clusters' slices in the Common Area, Namespaces, and here the Services,
//! EndpointSlices and ServiceImports it makes; writes and deletes those. Our own cluster's endpoints come from its own
//! slices, not by way of the leader. Safe to run twice: what is written is a function of what is watched, deletions name
//! the uid, and nothing is touched that is neither labelled as ours nor written by us.

mod address;
mod apply;
mod continuity;
mod doubt;
mod endpoints;
mod metadata;
mod object;
mod own;
mod place;
mod plan;
mod room;
mod slice;
mod verdict;

use std::{collections::BTreeSet, time::Duration};

use api::{ServiceName, antrea::Members, name};
use kit::{
    events::Events,
    index::{Part, Shared},
    metrics::Metrics,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Client, ResourceExt};
use presence::vouch::Vouching;

use self::{
    continuity::Writers,
    plan::{Plan, desired},
};
pub(crate) use self::{
    own::OwnEndpoints,
    room::{NO_NAMESPACE, Need, Room, TOO_MANY},
};
use super::{
    index::{IMPORT, entry::ServiceEntry, known::Known},
    irregular::note,
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
    /// Which imports there is room for.
    pub(crate) room: Shared<Room>,
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
        let known = self.knowledge.known(&service);
        let may_be_here = self.may_be_here(&service, known.as_ref().map_or(Need::Nothing, Need::of));
        let Some(known) = known.filter(|known| may_be_here && known.namespace.active) else {
            self.vouching.keep(&service, &BTreeSet::new());
            self.knowledge.irregular.with(|all| note(&mut all.not_ours, &service, false));
            return Ok(Outcome::Done);
        };
        let writers = self.writers(&known);
        let plan = desired(&known, &writers);
        let not_ours = matches!(plan, Plan::Import(_)) && known.entry.is_anothers();
        self.knowledge.irregular.with(|all| note(&mut all.not_ours, &service, not_ours));
        let doubts = plan.doubts().to_vec();
        let done = match plan {
            Plan::Nothing | Plan::Hold(_) => Ok(Outcome::Done),
            Plan::Remove => self.remove(&known.entry).await.map(|()| {
                // Its room is another's.
                self.may_be_here(&service, Need::Nothing);
                Outcome::Done
            }),
            Plan::Import(import) => Box::pin(self.apply(&known, &writers, import)).await,
        };
        // What is here is written first: it does not wait for a leader that does not answer, or refuses us.
        let settled = self.settle(&known, &writers, &doubts).await;
        let done = done.and_then(|done| match settled? {
            true => Ok(Outcome::Requeue(Duration::ZERO)),
            false => Ok(done),
        });
        self.knowledge.outcome(&service.namespace, done)
    }

    /// Looks at all imports before the first is made: there may be room for some of them only.
    pub(crate) fn begin(&self) {
        let known = self.knowledge.services.keys().into_iter().filter_map(|key| self.knowledge.known(&key));
        let needs: Vec<_> = known.map(|known| (known.service.clone(), Need::of(&known))).collect();
        self.room.with(|room| room.begin(needs));
    }

    /// Takes in how it stands with one import; whether there is room for it. Others there is room for now are reconciled.
    fn may_be_here(&self, service: &ServiceName, need: Need) -> bool {
        let (new, may_be_here) = self.room.with(|room| {
            let new = room.take_in(service, need);
            self.metrics.imports_waiting(TOO_MANY, room.waiting().len());
            self.metrics.imports_waiting(NO_NAMESPACE, room.nowhere().len());
            (new, !room.leaves_out(service))
        });
        let others = new.into_iter().filter(|new| new != service);
        self.knowledge.services.enqueue(others.map(|other| (other, IMPORT)).collect());
        may_be_here
    }

    /// What is known of those who write about the Service.
    fn writers(&self, known: &Known) -> Writers {
        let exporters = known.exporters().iter().map(|exporter| exporter.cluster_id.clone());
        let leases = exporters.chain(known.entry.parts()).map(|cluster| name::member_lease(&cluster));
        let leases = leases.chain([name::LEADER_LEASE.to_owned()]);
        Writers {
            leader_uid: self.vouching.uid(&known.service, name::LEADER_LEASE),
            restored: self.vouching.is_restored(),
            outdated: leases.filter(|lease| !self.vouching.is_current(&known.service, lease)).collect(),
        }
    }

    async fn remove(&self, entry: &ServiceEntry) -> Result<(), Error> {
        let mut failed = None;
        for slice in entry.imported_slices.values() {
            failed = failed.or(self.delete(&**slice).await.err());
        }
        if let Some(endpoints) = entry.imported_endpoints.as_deref() {
            failed = failed.or(self.delete(endpoints).await.err());
        }
        failed = failed.or(self.remove_service(entry).await.err());
        // The import last: it notes what is needed to finish, should we be stopped on the way.
        match (failed, entry.own_import()) {
            (Some(error), _) => Err(error),
            (None, Some(import)) => self.delete(import).await,
            (None, None) => Ok(()),
        }
    }

    /// Deletes an object of an import, whatever somebody put on it to hold it.
    async fn delete<P: Part<ServiceName, ServiceEntry, DynamicType = ()>>(
        &self,
        object: &P,
    ) -> Result<(), Error> {
        let held: Vec<_> = object.finalizers().iter().map(String::as_str).collect();
        if !held.is_empty() {
            self.writer.release(object, &held).await?;
        }
        self.knowledge.services.delete(&self.writer, IMPORT, object, false).await
    }
}
