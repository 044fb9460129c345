//! Writing what has to be here of one import, in the order in which clients may find it. One step that fails does not keep the later
//! ones from being done.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    condition::{Verdict, already_said, conditions},
    lease::STALE,
    mcs::{CLUSTERS_REACHABLE, EndpointSliceObjects, ImportedCluster, ServiceImportStatus},
};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{planted::Defect, queue::Outcome, write::Error};
use kube::{Resource, ResourceExt};

use super::{
    Importing,
    continuity::Writers,
    object::service_import,
    plan::DesiredImport,
    reachable::standing,
    slice,
    verdict::{self, Refusal, Refusals, Transition},
};
use crate::service::{
    index::{
        IMPORT,
        entry::ServiceEntry,
        known::Known,
        view::{Import, Slice},
    },
    irregular::NotReady,
};

/// How many slices of one import are written at once.
const AT_ONCE: usize = 8;

/// How long endpoints have both names of a port that gets another one, so that every node has seen the Service by then. Shorter if
/// something else about the import changes meanwhile.
const RENAMED: Duration = Duration::from_secs(2);

/// Gives the slices both names of each port that gets another one in the Service that is there. Whether there is such a port.
pub(super) fn keep_old_names(known: &Known, desired: &mut DesiredImport) -> bool {
    let there = known.entry.own_derived().filter(|there| !desired.is_headless() && desired.fits(there));
    let before = there.map(|there| there.spec.ports.as_slice()).unwrap_or_default();
    let is_renamed = slice::are_renamed(before, &desired.merged.ports);
    for slice in desired.slices.iter_mut().filter(|_| is_renamed) {
        slice::under_both_names(slice, before, &desired.merged.ports);
    }
    is_renamed
}

impl Importing {
    /// Writes what has to be here, and says how it stands.
    pub(super) async fn apply(
        &self,
        known: &Known,
        writers: &Writers,
        mut desired: DesiredImport,
    ) -> Result<Outcome, Error> {
        let (service, entry) = (&known.service, &known.entry);
        if let Some(uid) = desired.accepted.as_ref().filter(|uid| known.accepted() != Some(*uid)) {
            self.knowledge.services.note(service, |entry| entry.accepted = Some(uid.clone()));
        }
        if let Some(import) = entry.import.as_deref().filter(|_| entry.is_anothers()) {
            let message = "a ServiceImport of this name exists and was not created by Freeport; Freeport does not change it";
            tracing::warn!(%service, message);
            self.events.warn(import.object_ref(&()), "Import", "NotOurs", message);
            // What else is here of ours still leads clients to endpoints.
            if !entry.is_imported() {
                self.note_ready(service, None);
                return Ok(Outcome::Done);
            }
        }
        desired.returning = self.addresses.returning(known, Timestamp::now());
        let mut refusals = Refusals::default();
        let is_renamed = keep_old_names(known, &mut desired);
        if is_renamed {
            self.put_slices(known, &desired, &mut refusals).await;
        }
        let import = |addresses| service_import(known, writers, &desired, addresses);
        // One without an address is written first, and one with an address when it has it: nobody finds an address that is
        // not, or not any more.
        let (want, written, is_reachable) = if desired.is_headless() || desired.families.is_empty() {
            let want = import(vec![]);
            let written = self.put_import(entry, &want, &mut refusals).await;
            self.place(known, &desired, &mut refusals).await;
            // Endpoints are found by way of a headless import, even where its Service is refused.
            (want, written, desired.is_headless() && !desired.taken)
        } else {
            let addresses = self.place(known, &desired, &mut refusals).await;
            let is_reachable = addresses.as_ref().is_some_and(|addresses| !addresses.is_empty());
            // While it is not known what address it has, the import says what it said.
            let is_known = addresses.is_some();
            let want = import(addresses.unwrap_or_default());
            let mut of_slices = Refusals::default();
            // A slice needs no address, only that the Service is ours.
            let slices = async {
                if is_reachable && !is_renamed {
                    self.put_slices(known, &desired, &mut of_slices).await;
                }
            };
            let import = async {
                match is_known {
                    true => self.put_import(entry, &want, &mut refusals).await,
                    false => None,
                }
            };
            let (written, ()) = tokio::join!(import, slices);
            refusals.extend(of_slices);
            (want, written, is_reachable)
        };
        if desired.is_headless() && is_reachable && !is_renamed {
            self.put_slices(known, &desired, &mut refusals).await;
        }
        for slice in desired.leftover.iter().filter_map(|name| entry.imported_slices.get(name)) {
            refusals.note(Refusal::OldEndpointSlice(slice.name_any()), self.delete(&**slice).await);
        }
        self.put_endpoints(known, &desired, is_reachable, &mut refusals).await;
        let (clusters, is_to_come) = standing(known, &desired);
        let mut lasts = None;
        if refusals.are_all() {
            let ready = verdict::ready(&want.name_any(), &desired, &refusals);
            self.note_ready(service, NotReady::of(&ready));
            match written.as_ref().or(entry.import.as_deref()) {
                Some(import) if !entry.is_anothers() => {
                    let have = import.status.0.as_ref().map(|status| status.conditions.as_slice());
                    let is_here = !desired.taken && !desired.families.is_empty();
                    let (verdict, wait) = self.unanswered.with(|all| match is_here {
                        true => {
                            let why = desired.unanswered(known);
                            all.verdict(service, why, have.unwrap_or_default(), Instant::now())
                        }
                        false => all.forget(service),
                    });
                    lasts = wait;
                    let verdicts: Vec<_> = [ready, clusters].into_iter().chain(verdict).collect();
                    self.write_status(import, &desired, &verdicts).await?
                }
                _ => self.warn_of(&want, &refusals),
            }
        }
        let again = [is_renamed.then_some(RENAMED), is_to_come.then_some(STALE), lasts];
        let done = again.into_iter().flatten().min().map_or(Outcome::Done, Outcome::Requeue);
        refusals.into_error().map_or(Ok(done), Err)
    }

    /// Brings the Service up to date, or takes it away where it cannot be reached. The addresses it has then, as far as that is known.
    async fn place(
        &self,
        known: &Known,
        desired: &DesiredImport,
        refusals: &mut Refusals,
    ) -> Option<Vec<String>> {
        if desired.taken {
            return Some(vec![]);
        }
        if desired.families.is_empty() {
            return refusals.note(Refusal::Service, self.remove_service(&known.entry).await).map(|()| vec![]);
        }
        let placed = self.put_service(known, desired).await;
        let is_decided = matches!(&placed, Ok(_) | Err(Error::Refused(_) | Error::NotOurs { .. }));
        // One that had to be made anew is gone by now.
        let there = || known.entry.own_derived().filter(|there| desired.fits(there)).cloned();
        let service = refusals.note(Refusal::Service, placed).or_else(there);
        let addresses = || service.iter().flat_map(|service| service.spec.addresses()).cloned().collect();
        (is_decided || service.is_some()).then(addresses)
    }

    async fn put_import(
        &self,
        entry: &ServiceEntry,
        want: &Import,
        refusals: &mut Refusals,
    ) -> Option<Import> {
        if entry.is_anothers() {
            return None;
        }
        let written = self.knowledge.put_imported(&self.writer, entry.import.as_deref(), want).await;
        refusals.note(Refusal::ServiceImport, written).flatten()
    }

    /// One slice that the API server does not take must not keep the others out. Those that stay as they are are still ours.
    async fn put_slices(&self, known: &Known, desired: &DesiredImport, refusals: &mut Refusals) {
        let entry = &known.entry;
        let held = desired.held.iter().map(|slice| slice::labelled(&known.service, slice.clone()));
        let all: Vec<_> = desired.slices.iter().cloned().chain(held).collect();
        let put = |slice: Slice| async {
            let name = slice.name_any();
            (name, self.put_slice(entry, slice).await)
        };
        let written = stream::iter(all).map(put).buffered(AT_ONCE);
        for (name, written) in written.collect::<Vec<_>>().await {
            let is_old = entry.imported_slices.contains_key(&name);
            let refusal = if is_old { Refusal::OldEndpointSlice(name) } else { Refusal::EndpointSlice(name) };
            refusals.note(refusal, written);
        }
    }

    async fn put_slice(&self, entry: &ServiceEntry, slice: Slice) -> Result<Option<Slice>, Error> {
        let have = entry.imported_slices.get(&slice.name_any()).map(Arc::as_ref);
        let is_fewer = |have: &Slice| slice.endpoints.len() < have.endpoints.len();
        if Defect::StaleEndpoint.is_planted() && have.is_some_and(is_fewer) {
            return Ok(None);
        }
        self.knowledge.put_imported(&self.writer, have, &slice).await
    }

    async fn write_status(
        &self,
        import: &Import,
        desired: &DesiredImport,
        verdicts: &[Verdict],
    ) -> Result<(), Error> {
        let have = import.status.0.clone().unwrap_or_default();
        let want =
            self.writer.known::<Import, _>(&status(desired, verdicts, &have, import.metadata.generation))?;
        if have.clusters == want.clusters
            && have.endpoint_slice_objects == want.endpoint_slice_objects
            && already_said(&have.conditions, &want.conditions)
        {
            return Ok(());
        }
        self.knowledge.services.put_status(&self.writer, IMPORT, import, &want).await?;
        for verdict in verdicts.iter().filter(|verdict| verdict.type_ != CLUSTERS_REACHABLE) {
            match verdict::transition(&have.conditions, verdict) {
                Some(Transition::Worse) => {
                    self.events.warn(import.object_ref(&()), "Import", &verdict.reason, &verdict.message);
                }
                Some(Transition::Better) => {
                    self.events.tell(import.object_ref(&()), "Import", &verdict.reason, &verdict.message);
                }
                None => {}
            }
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
    verdicts: &[Verdict],
    have: &ServiceImportStatus,
    generation: Option<i64>,
) -> ServiceImportStatus {
    let cluster = |cluster: &String| ImportedCluster { cluster: cluster.clone() };
    ServiceImportStatus {
        clusters: desired.clusters.iter().map(cluster).collect(),
        conditions: conditions(verdicts, &have.conditions, generation, &Time(Timestamp::now())),
        endpoint_slice_objects: Some(EndpointSliceObjects::Present),
    }
}
