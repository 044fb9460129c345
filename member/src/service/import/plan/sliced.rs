//! The slices of an import, of each cluster that takes part: pure.

use std::collections::{BTreeMap, BTreeSet};

use api::{mcs::ServiceImportSpec, name, slice::SlicePayload};

use super::Doubt;
use crate::service::{
    import::{
        continuity::Writers,
        slice::{Source, imported},
    },
    index::{known::Known, view::Slice},
    offer::offer,
};

/// The slices of an import, by what the clusters that take part say.
#[derive(Default)]
pub(super) struct Sliced {
    pub(super) slices: Vec<Slice>,
    /// Names of slices that stay as they are.
    pub(super) held: BTreeSet<String>,
    pub(super) doubts: Vec<Doubt>,
    /// How many addresses of a cluster are left out because endpoints of it must not have them here.
    pub(super) left_out: BTreeMap<String, usize>,
}

impl Sliced {
    pub(super) fn of(
        known: &Known,
        writers: &Writers,
        merged: &ServiceImportSpec,
        families: &[String],
        taking_part: &BTreeSet<String>,
    ) -> Self {
        let (us, service, entry) = (known.us(), &known.service, &known.entry);
        let mut all = Self::default();
        for cluster in taking_part {
            if cluster == us {
                all.slices.extend(own_slices(known, merged, families));
                continue;
            }
            if writers.is_outdated(cluster) || entry.is_refused(cluster) {
                all.held.extend(entry.imported_from(cluster).cloned());
                continue;
            }
            let payloads = entry.peers.get(cluster).into_iter().flatten();
            let served = payloads.filter(|(_, payload)| families.contains(&payload.address_type));
            for (record, said) in served {
                let (payload, left_out) = known.cluster.limits.admit(cluster, said);
                if left_out > 0 {
                    *all.left_out.entry(cluster.clone()).or_default() += left_out;
                }
                let source = Source { cluster, record, local: None };
                all.slices.extend(imported(service, &source, &payload, merged));
            }
            let there: BTreeSet<_> = entry.to_import_from(service, cluster).collect();
            let refused = |slice: &&String| entry.slices_refused.contains(*slice);
            all.held.extend(entry.imported_from(cluster).filter(refused).cloned());
            let is_missing = |slice: &&String| {
                !there.contains(*slice) && !entry.slices_gone.contains(*slice) && !refused(slice)
            };
            let missing: BTreeSet<_> = entry.imported_from(cluster).filter(is_missing).cloned().collect();
            if !missing.is_empty() && !entry.is_complete(cluster) {
                all.held.extend(missing.iter().cloned());
                all.doubts.push(Doubt::Slices { cluster: cluster.clone(), missing });
            }
        }
        all
    }
}

/// Our own endpoints come from the EndpointSlices here, not by way of the leader.
pub(in crate::service::import) fn own_slices(
    known: &Known,
    merged: &ServiceImportSpec,
    families: &[String],
) -> Vec<Slice> {
    let (us, service) = (known.us(), &known.service);
    let own: BTreeMap<String, SlicePayload> =
        offer(known).map(|offer| offer.own_slices()).unwrap_or_default();
    let sources = known.entry.slices.iter();
    let sources: BTreeMap<_, _> =
        sources.map(|(source, slice)| (name::slice_export(us, service, source), &**slice)).collect();
    let served = own.iter().filter(|(_, payload)| families.contains(&payload.address_type));
    let slices = served.filter_map(|(record, payload)| {
        let local = sources.get(record).copied();
        imported(service, &Source { cluster: us, record, local }, payload, merged)
    });
    slices.collect()
}
