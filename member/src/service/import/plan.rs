//! What has to be here for an import: pure functions of what is known.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName, label,
    mcs::{ServiceImportSpec, ServiceImportType},
    name,
    resource_import::{Exporter, MergedMetadata, MergedService},
};
use kube::ResourceExt;

use super::{
    address,
    belief::{self, Hub},
    slice::{Source, imported},
};
use crate::service::{
    entry::ServiceEntry,
    export::offer,
    view::{Service, Slice, is_ours},
};

/// What a look at one import comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing is imported and nothing of ours is here.
    Nothing,
    /// The import vanished unsaid, and what it was is not known any more: everything stays as it is.
    Hold(Vec<Doubt>),
    /// Nobody exports it any more: what we made goes.
    Remove,
    /// This has to be here.
    Realise(Realise),
}

/// Something is missing that its writer has not taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The leader's import.
    Import,
    /// A cluster's part in it.
    Part {
        /// Which cluster.
        cluster: String,
    },
    /// Slices of a cluster.
    Slices {
        /// Which cluster.
        cluster: String,
        /// Names of the imported slices whose records are missing.
        missing: BTreeSet<String>,
    },
}

/// What realises an import here.
#[derive(Clone, Debug, PartialEq)]
pub struct Realise {
    /// The merged Service.
    pub merged: ServiceImportSpec,
    /// IP families in which it can be reached here; none if its exporters have others than this cluster.
    pub families: Vec<String>,
    /// Labels and annotations of the ServiceImport that exporters gave it.
    pub exported: MergedMetadata,
    /// Somebody else's Service has the name of ours: no Service and no slices then.
    pub taken: bool,
    /// Clusters that take part, sorted.
    pub clusters: Vec<String>,
    /// Those of them that take part only because nobody said that they do not.
    pub kept: BTreeSet<String>,
    /// The EndpointSlices.
    pub slices: Vec<Slice>,
    /// Names of slices of ours that have to go.
    pub leftover: Vec<String>,
    /// What is missing without a word.
    pub doubts: Vec<Doubt>,
    /// uid of the import, when nothing of what is here is missing in it.
    pub accepted: Option<String>,
}

impl Realise {
    /// Whether it has no address of its own.
    pub fn is_headless(&self) -> bool {
        self.merged.type_ == ServiceImportType::Headless
    }

    /// Whether the Service can become what it has to be.
    pub fn fits(&self, there: &Service) -> bool {
        address::can_become(&there.spec, &self.families, self.is_headless())
    }
}

/// Plans for one import.
pub fn desired(us: &str, service: &ServiceName, hub: &Hub, entry: &ServiceEntry) -> Plan {
    let ours_here = entry.import.as_ref().is_some_and(|import| is_ours(&import.metadata))
        || entry.derived.as_ref().is_some_and(|derived| is_ours(&derived.metadata))
        || !entry.imported_slices.is_empty();
    match &entry.hub_import {
        None if !ours_here => Plan::Nothing,
        Some(import) if !(ours_here && hub.leader_is_outdated()) => {
            let absent = belief::absent(us, service, entry, import);
            let exporters: Vec<&Exporter> = import.spec.exporters.iter().flatten().collect();
            if exporters.is_empty() && absent.is_empty() {
                return if ours_here { Plan::Remove } else { Plan::Nothing };
            }
            let named =
                exporters.iter().filter(|e| e.refused.is_none()).map(|e| e.cluster_id.clone()).collect();
            // An import that does not know of all yet may lack their ports.
            let known = if absent.is_empty() { None } else { belief::realised(entry) };
            let merged = known.unwrap_or_else(|| belief::merged(&import.spec));
            let accepted = absent.is_empty().then(|| import.uid.clone());
            Plan::Realise(Realise { accepted, ..realise(us, service, hub, entry, merged, &named, absent) })
        }
        nothing_of_now => {
            let missing = nothing_of_now.is_none();
            let had: BTreeSet<_> =
                belief::had(us, service, entry).difference(&entry.parts_gone).cloned().collect();
            if missing && entry.import_gone && had.is_empty() {
                return Plan::Remove;
            }
            let import = (missing && !entry.import_gone).then_some(Doubt::Import);
            match belief::realised(entry) {
                Some(merged) => {
                    let mut realise = realise(us, service, hub, entry, merged, &BTreeSet::new(), had);
                    realise.doubts.extend(import);
                    realise.doubts.retain(|doubt| missing || matches!(doubt, Doubt::Slices { .. }));
                    Plan::Realise(realise)
                }
                None => {
                    let parts = had.into_iter().filter(|_| missing).map(|cluster| Doubt::Part { cluster });
                    Plan::Hold(parts.chain(import).collect())
                }
            }
        }
    }
}

/// `named` take part by the leader's word, `kept` because nobody said otherwise.
fn realise(
    us: &str,
    service: &ServiceName,
    hub: &Hub,
    entry: &ServiceEntry,
    merged: MergedService,
    named: &BTreeSet<String>,
    kept: BTreeSet<String>,
) -> Realise {
    let (exported, merged) = (merged.metadata.unwrap_or_default(), merged.spec);
    let there =
        entry.derived.as_ref().filter(|derived| is_ours(&derived.metadata)).map(|derived| &derived.spec);
    let families = address::served(&merged, &entry.local, there);
    let own = offer(us, service, entry).ok().flatten().map(|offer| offer.own).unwrap_or_default();
    let sources: BTreeMap<_, _> =
        entry.slices.iter().map(|(source, slice)| (name::slice_export(us, service, source), slice)).collect();
    let taking_part: BTreeSet<String> = named.union(&kept).cloned().collect();

    let (mut slices, mut doubts, mut held) = (Vec::new(), Vec::new(), BTreeSet::new());
    let none = BTreeMap::new();
    for cluster in &taking_part {
        if hub.is_outdated(cluster) && cluster != us {
            held.extend(imported_from(entry, cluster).cloned());
            continue;
        }
        let said = if cluster == us { &own } else { entry.peers.get(cluster).unwrap_or(&none) };
        let served = said.iter().filter(|(_, payload)| families.contains(&payload.address_type));
        slices.extend(served.filter_map(|(record, payload)| {
            let local = sources.get(record).copied().filter(|_| cluster == us);
            imported(service, &Source { cluster, record, local }, payload, &merged)
        }));
        let told: BTreeSet<_> =
            said.keys().map(|record| name::imported_slice(&service.name, record)).collect();
        let untold = |slice: &&String| !told.contains(*slice) && !entry.slices_gone.contains(*slice);
        let missing: BTreeSet<_> = imported_from(entry, cluster).filter(untold).cloned().collect();
        if cluster != us && !missing.is_empty() && !entry.says_all(cluster) {
            held.extend(missing.iter().cloned());
            doubts.push(Doubt::Slices { cluster: cluster.clone(), missing });
        }
    }
    doubts.extend(kept.iter().map(|cluster| Doubt::Part { cluster: cluster.clone() }));
    let wanted: BTreeSet<_> = slices.iter().map(ResourceExt::name_any).collect();
    let unwanted = |slice: &&String| !wanted.contains(*slice) && !held.contains(*slice);
    let mut leftover: Vec<_> = entry.imported_slices.keys().filter(unwanted).cloned().collect();
    let taken = entry.derived.as_ref().is_some_and(|derived| !is_ours(&derived.metadata));
    if taken {
        // Slices of ours would send that Service's clients to other clusters.
        (slices, doubts, leftover) = (vec![], vec![], entry.imported_slices.keys().cloned().collect());
    }
    let clusters = taking_part.into_iter().collect();
    Realise { merged, families, exported, taken, clusters, kept, slices, leftover, doubts, accepted: None }
}

/// Names of the slices that are to be imported from what `cluster` says now.
pub fn told_by<'a>(
    entry: &'a ServiceEntry,
    service: &'a ServiceName,
    cluster: &str,
) -> impl Iterator<Item = String> + 'a {
    let records = entry.peers.get(cluster).into_iter().flat_map(BTreeMap::keys);
    records.map(|record| name::imported_slice(&service.name, record))
}

/// Names of the slices we imported from `cluster`.
pub fn imported_from<'a>(entry: &'a ServiceEntry, cluster: &'a str) -> impl Iterator<Item = &'a String> {
    let from = move |slice: &Slice| {
        slice.labels().get(label::MCS_SOURCE_CLUSTER).is_some_and(|from| from == cluster)
    };
    entry.imported_slices.iter().filter(move |(_, slice)| from(slice)).map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
