//! Our own part in what is imported here, as long as there is no word of the leader: a start while it is away, a broken Secret.
//!
//! The ServiceImport says what it is, and the EndpointSlices of this cluster which endpoints there are. So our slices are put right
//! and those of Pods that are gone go. Of other clusters' slices only this is touched, whether their endpoints are ready as far as that
//! depends on whether they answer from here; no Service, no ServiceImport. Safe to run twice, and beside nothing: the controller of imports starts when this one has ended, and takes it from there.
//!
//! Whether a ServiceExport that is not there was deleted or vanished needs the record of it, so until the leader is there the part
//! stays, as it does in the other clusters.

use std::sync::Arc;

use api::{ServiceName, mcs::ServiceImportType};
use kit::{
    queue::Outcome,
    write::{Error, Writer},
};
use kube::ResourceExt;

use super::{address, continuity, demote::demote, mark::restored, plan::own_slices};
use crate::service::{
    index::{
        IMPORT,
        entry::source_cluster,
        known::Known,
        view::{Slice, is_made},
    },
    knowledge::Knowledge,
};

/// Lets imports follow our own endpoints. Cloning shares it.
#[derive(Clone)]
pub(crate) struct OwnEndpoints {
    /// What is known of this cluster.
    pub(crate) knowledge: Knowledge,
    /// Writes to this cluster.
    pub(crate) writer: Writer,
}

/// What has to be done for our part in one import.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OwnPart {
    /// The slices that have to be here.
    pub(super) put: Vec<Slice>,
    /// Names of those that have to go.
    pub(super) leftover: Vec<String>,
}

/// Plans for what this cluster alone decides about one import: our part, and whether those of others get traffic.
pub(super) fn own_part(known: &Known) -> OwnPart {
    let (us, entry) = (known.us(), &known.entry);
    let mut part = ours(known);
    let others =
        entry.imported_slices.values().filter(|slice| source_cluster(slice).is_some_and(|from| from != us));
    let mut others: Vec<_> = others.map(|slice| restored(slice)).collect();
    demote(part.put.iter_mut().chain(&mut others), known);
    let is_new =
        |slice: &Slice| entry.imported_slices.get(&slice.name_any()).is_none_or(|there| **there != *slice);
    part.put.extend(others.into_iter().filter(is_new));
    part
}

/// Our part; nothing where we have none, or where it is not known what is imported.
fn ours(known: &Known) -> OwnPart {
    let (us, entry) = (known.us(), &known.entry);
    let merged = continuity::last_merged(entry).filter(|_| entry.parts().contains(us));
    let Some(merged) = merged.map(|merged| merged.spec) else { return OwnPart::default() };
    let there = entry.own_derived().map(|derived| &derived.spec);
    let is_taken = entry.derived.is_some() && there.is_none();
    let families = address::served(&merged, &known.cluster.families, there);
    let slices = if is_taken { vec![] } else { own_slices(known, &merged, &families) };
    let is_wanted = |name: &&String| slices.iter().any(|slice| slice.name_any() == **name);
    let leftover = entry.imported_from(us).filter(|name| !is_wanted(name)).cloned().collect();
    let has_address = there.is_some_and(|there| there.addresses().next().is_some());
    let is_reachable = merged.type_ == ServiceImportType::Headless || has_address;
    OwnPart { put: if is_reachable { slices } else { vec![] }, leftover }
}

impl OwnEndpoints {
    /// Brings our part in one import up to date.
    pub(crate) async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let known = self
            .knowledge
            .known(&service)
            .filter(|known| known.namespace.active && known.entry.unread().is_none());
        let Some(known) = known else { return Ok(Outcome::Done) };
        let done = self.carry_out(&known, own_part(&known)).await;
        self.knowledge.outcome(&service.namespace, done.map(|()| Outcome::Done))
    }

    /// One slice that cannot be written must not keep the others from being.
    async fn carry_out(&self, known: &Known, own: OwnPart) -> Result<(), Error> {
        let (there, mut done) = (&known.entry.imported_slices, Ok(()));
        for slice in &own.put {
            let put = self
                .knowledge
                .put_imported(&self.writer, there.get(&slice.name_any()).map(Arc::as_ref), slice)
                .await;
            done = done.and(put.map(drop));
        }
        let leftover = own.leftover.iter().filter_map(|name| there.get(name));
        for slice in leftover.filter(|slice| is_made(&***slice)) {
            done = done.and(self.knowledge.services.delete(&self.writer, IMPORT, &**slice, false).await);
        }
        done
    }
}
