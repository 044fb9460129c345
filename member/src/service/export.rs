//! Exporting: watches ServiceExports, Services, EndpointSlices, and our own records in the Common Area; writes our records
//! there; deletes records of endpoints it has emptied before, or whose Service record it has withdrawn (the leader deletes that
//! one). Safe to run twice: the records are a function of the local objects, and only differences are sent.

mod vanished;

use std::time::Duration;

use api::{
    ServiceName,
    antrea::{Members, RECORD_FINALIZERS},
    family, name,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, EndpointsPayload, SERVICE, ServicePayload},
    slice::SlicePayload,
};
use futures::{StreamExt, future::ready, stream};
use kit::{
    events::Events,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};

pub(crate) use self::vanished::ExportCrd;
use super::{
    antrea::{leader, peers},
    index::{
        EXPORT, IMPORT, STATUS,
        entry::{ServiceEntry, Unexported},
        known::Known,
        view::OwnRecord,
    },
    irregular::note,
    knowledge::Knowledge,
    offer::{
        Offer, offer,
        record::{Step, record},
        still_exported,
    },
};
use crate::home::Home;

/// How many records of one export are written at once: no importer depends on their order.
const AT_ONCE: usize = 8;

/// The steps towards the records this cluster has to have. `for_antrea`: somebody reads all endpoints in one record.
fn desired(known: &Known, for_antrea: bool) -> Vec<Step> {
    // Until somebody creates the Service or the ServiceExport again.
    if known.entry.unexported == Some(Unexported::Lost) && known.entry.service.is_none() {
        return vec![];
    }
    let offer = offer(known);
    let slices = offer.as_ref().map(Offer::slices).unwrap_or_default();
    let mut steps: Vec<_> = service_step(known, offer.as_ref()).into_iter().collect();
    let is_withdrawn = offer.is_none();
    let all_endpoints = offer.filter(|_| for_antrea).map(|_| peers::all_endpoints(&slices));
    steps.extend(endpoints_step(known, all_endpoints));
    let own = &known.entry.own_slices;
    let slice = |name: &str, payload: SlicePayload| {
        record(known, ENDPOINT_SLICE, name.to_owned(), |spec| spec.endpoint_slice = Some(payload))
    };
    // First those that go: with them known, the payloads need not be copied.
    let removed = own.iter().filter(|(name, _)| !slices.contains_key(*name)).map(|(name, have)| {
        if is_withdrawn {
            return Step::Delete { have: (**have).clone() };
        }
        let payload = have.spec.0.as_ref().ok().and_then(|spec| spec.endpoint_slice.as_ref());
        let address_type =
            payload.map_or_else(|| family::IPV4.into(), |payload| payload.address_type.clone());
        let emptied = slice(name, SlicePayload { address_type, ..SlicePayload::default() });
        Step::Remove { have: (**have).clone(), emptied }
    });
    let removed: Vec<_> = removed.collect();
    // What is new is written first: what goes may be what it stands for.
    steps.extend(slices.into_iter().map(|(name, payload)| {
        let want = slice(&name, payload);
        Step::Put { have: own.get(&name).map(|have| (**have).clone()), want }
    }));
    steps.extend(removed);
    steps
}

/// Whether it is exported though its ServiceExport is gone and nobody deleted it.
fn has_vanished(entry: &ServiceEntry) -> bool {
    let is_kept = entry.unexported.is_some_and(|why| why != Unexported::Decided);
    is_kept && entry.export.is_none() && entry.own_service.is_some()
}

/// Our Service record, if there is one or has to be one.
fn service_step(known: &Known, offer: Option<&Offer<'_>>) -> Option<Step> {
    let name = name::service_export(known.us(), &known.service);
    let have = named(known.entry.own_service.as_deref(), &name);
    let payload = match (offer, &have) {
        (Some(offer), _) => offer.service(),
        (None, Some(have)) => withdrawn(have),
        (None, None) => return None,
    };
    let want = record(known, SERVICE, name, |spec| spec.service = Some(payload));
    Some(Step::Put { have, want })
}

/// Our record with all endpoints, if there is one or has to be one.
fn endpoints_step(known: &Known, all: Option<EndpointsPayload>) -> Option<Step> {
    let name = name::endpoints_export(known.us(), &known.service);
    let have = named(known.entry.own_endpoints.as_deref(), &name);
    let record = |payload| record(known, ENDPOINTS, name, |spec| spec.endpoints = Some(payload));
    match (all, have) {
        (Some(payload), have) => Some(Step::Put { have, want: record(payload) }),
        (None, Some(have)) => Some(Step::Remove { have, emptied: record(EndpointsPayload::default()) }),
        (None, None) => None,
    }
}

/// The record, if it has that name. One with another name is of a time when Antrea's controllers ran here, and is not ours to mend.
fn named(record: Option<&OwnRecord>, name: &str) -> Option<OwnRecord> {
    record.filter(|record| record.metadata.name.as_deref() == Some(name)).cloned()
}

/// What we exported last, taken back.
fn withdrawn(have: &OwnRecord) -> ServicePayload {
    let payload = have.spec.0.as_ref().ok().and_then(|spec| spec.service.clone());
    ServicePayload { withdrawn: true, ..payload.unwrap_or_default() }
}

/// Whether the record is about another Service: Antrea's names may be the same for two, and one has to go first.
fn is_anothers(there: &OwnRecord, want: &OwnRecord) -> bool {
    let of = |record: &OwnRecord| {
        record.spec.0.as_ref().ok().map(|spec| (spec.namespace.clone(), spec.name.clone()))
    };
    of(there).is_some_and(|there| Some(there) != of(want))
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Exporting {
    /// Everything this member knows.
    pub(crate) knowledge: Knowledge,
    /// Members that run Antrea's controllers.
    pub(crate) antrea: Members,
    /// Tells why a ServiceExport is gone.
    pub(crate) crd: ExportCrd,
    /// Knows what is missing because this cluster was restored from a backup.
    pub(crate) home: Home,
    /// Writes to the Common Area.
    pub(crate) writer: Writer,
    /// Where to leave Events.
    pub(crate) events: Events,
}

impl Exporting {
    /// Brings our records of one Service name up to date.
    pub(crate) async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let known = self.knowledge.known(&service);
        let has_vanished = known.as_ref().is_some_and(|known| has_vanished(&known.entry));
        self.knowledge.irregular.with(|all| note(&mut all.vanished, &service, has_vanished));
        let Some(known) = known.filter(|known| known.entry.unread().is_none()) else {
            return Ok(Outcome::Done);
        };
        if known.entry.unexported.is_none() && self.find_out_why_gone(&known).await? {
            return Ok(Outcome::Requeue(Duration::ZERO));
        }
        let mut failed = Vec::new();
        if known.antrea_leads() {
            // Its leader merges a record when the one before it is there.
            self.carry_out_all(&known, leader::desired(&known), 1, &mut failed).await;
        } else {
            let steps = desired(&known, !self.antrea.is_empty());
            let (written, removed): (Vec<_>, Vec<_>) =
                steps.into_iter().partition(|step| matches!(step, Step::Put { .. }));
            self.carry_out_all(&known, written, AT_ONCE, &mut failed).await;
            // What goes may be what something new stands for.
            self.carry_out_all(&known, removed, AT_ONCE, &mut failed).await;
        }
        self.note_refusal(&known, &failed);
        failed.into_iter().next().map_or(Ok(Outcome::Done), Err)
    }

    /// Notes for the status what the leader's API server says of a record that it does not take.
    fn note_refusal(&self, known: &Known, failed: &[Error]) {
        let refused = failed.iter().find_map(Error::refusal);
        // What failed for another reason may still be refused.
        if known.entry.refused == refused || refused.is_none() && !failed.is_empty() {
            return;
        }
        let (service, services) = (&known.service, &self.knowledge.services);
        services.note(service, |entry| entry.refused = refused);
        services.enqueue([(service.clone(), STATUS)].into());
    }

    /// Carries out so many steps at once. One record that is not taken, or not whole, must not keep the others out.
    async fn carry_out_all(&self, known: &Known, steps: Vec<Step>, at_once: usize, failed: &mut Vec<Error>) {
        let steps = stream::iter(steps).map(|step| Box::pin(self.carry_out(known, step))).buffered(at_once);
        let errors = steps.filter_map(|done| ready(done.err()));
        failed.extend(errors.collect::<Vec<_>>().await);
    }

    async fn carry_out(&self, known: &Known, step: Step) -> Result<(), Error> {
        match step {
            Step::Put { have, want } => drop(self.put(known, have.as_ref(), want).await?),
            Step::Remove { have, emptied } => {
                let emptied = self.put(known, Some(&have), emptied).await?;
                let emptied = emptied.unwrap_or(have);
                self.knowledge.services.delete(&self.writer, EXPORT, &emptied, true).await?;
            }
            // It stays until the leader has let it go.
            Step::Delete { have } if known.antrea_leads() => self.writer.delete(&have, false).await?,
            Step::Delete { have } => {
                self.knowledge.services.delete(&self.writer, EXPORT, &have, false).await?;
            }
        }
        Ok(())
    }

    /// Finds out why a ServiceExport is gone, if one is.
    async fn find_out_why_gone(&self, known: &Known) -> Result<bool, Error> {
        let Some(exported) = still_exported(known.us(), &known.entry) else { return Ok(false) };
        let exported_at = exported.exported_at.as_ref();
        let has_service = known.entry.service.is_some();
        // What went while we watched, went after the restore.
        let is_lost = !known.entry.export_went && exported_at.is_some_and(|at| self.home.has_lost(at.0));
        let (why, said) = match is_lost {
            true if has_service => (Unexported::Vanished, vanished::RESTORED),
            true => (Unexported::Lost, vanished::RESTORED),
            false => (self.crd.why(exported_at).await?, vanished::WITH_ITS_CRD),
        };
        let service = &known.service;
        if why != Unexported::Decided {
            let message = format!(
                "{said}. The Service stays exported. To end the export, create the ServiceExport again and then delete it"
            );
            tracing::warn!(%service, "{message}");
            if let Some(local) = &known.entry.service {
                self.events.warn(local.object_ref(&()), "Export", "ServiceExportVanished", &message);
            }
        }
        self.knowledge
            .services
            .note(service, |entry| entry.unexported = entry.export.is_none().then_some(why));
        // Whether our own endpoints are imported depends on it, and perhaps no record is left whose removal would tell.
        self.knowledge.services.enqueue([(service.clone(), IMPORT)].into());
        Ok(true)
    }

    async fn put(
        &self,
        known: &Known,
        have: Option<&OwnRecord>,
        mut want: OwnRecord,
    ) -> Result<Option<OwnRecord>, Error> {
        // A patch cannot take out what we cannot read: such a record of ours is made anew.
        let have = match have.filter(|have| have.spec.0.is_err()) {
            Some(broken) => {
                self.knowledge.services.delete(&self.writer, EXPORT, broken, false).await?;
                None
            }
            None => have,
        };
        // Antrea's leader puts a finalizer on what it reads, and ours takes such a one off where it is left of a time when Antrea's
        // controllers ran here. Nobody else says how long a record is there.
        let is_antreas = |have: &OwnRecord| {
            have.finalizers().iter().any(|finalizer| RECORD_FINALIZERS.contains(&finalizer.as_str()))
        };
        if !known.antrea_leads() && !have.is_some_and(is_antreas) {
            (want.metadata.finalizers, want.metadata.owner_references) = (Some(vec![]), Some(vec![]));
        }
        let is_ours = |there: &OwnRecord| !(known.antrea_leads() && is_anothers(there, &want));
        match self.knowledge.put_record(&self.writer, have, &want, is_ours).await {
            Err(Error::NotOurs { .. }) => Err(Error::Stale),
            put => put,
        }
    }
}

#[cfg(test)]
mod tests;
