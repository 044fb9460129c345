//! What has to be here for an import: pure functions of what is known.

mod sliced;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    label,
    mcs::{ServiceImportSpec, ServiceImportType},
    resource_import::{MergedMetadata, MergedService},
};
use kube::ResourceExt;
use rules::{import::unanswered, unanswered::Unanswered};

use self::sliced::Sliced;
pub(super) use self::sliced::own_slices;
use super::{
    address,
    continuity::{self, Writers},
    demote::demote,
    mark::restored,
};
use crate::service::{
    addresses::Returning,
    index::{
        entry::{ServiceEntry, source_cluster},
        known::Known,
        view::{Service, Slice, is_ours},
    },
};

/// What a reconcile of one import comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// Nothing is imported and nothing of ours is here.
    Nothing,
    /// The import vanished, and what it was is not known any more, or its removal had begun: everything stays as it is.
    Hold(Vec<Doubt>),
    /// Nobody exports it any more: what we made goes.
    Remove,
    /// This has to be here.
    Import(DesiredImport),
}

impl Plan {
    /// What is missing though its writer has not taken it back.
    pub(super) fn doubts(&self) -> &[Doubt] {
        match self {
            Self::Hold(doubts) => doubts,
            Self::Import(import) => &import.doubts,
            Self::Nothing | Self::Remove => &[],
        }
    }

    /// How many addresses of a cluster are left out.
    pub(super) fn left_out(&self) -> BTreeMap<String, usize> {
        match self {
            Self::Import(import) => import.left_out.clone(),
            Self::Hold(_) | Self::Nothing | Self::Remove => BTreeMap::new(),
        }
    }
}

/// Something is missing that its writer has not taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
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

/// An import as it has to be here.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DesiredImport {
    /// The merged Service.
    pub(super) merged: ServiceImportSpec,
    /// IP families in which it can be reached here; none if its exporters have others than this cluster.
    pub(super) families: Vec<String>,
    /// Labels and annotations of the ServiceImport that exporters gave it.
    pub(super) exported: MergedMetadata,
    /// Somebody else's Service has the name of ours: no Service and no slices then.
    pub(super) taken: bool,
    /// Clusters that take part, sorted.
    pub(super) clusters: Vec<String>,
    /// Those of them that take part only because nobody withdrew their part.
    pub(super) kept: BTreeSet<String>,
    /// The EndpointSlices.
    pub(super) slices: Vec<Slice>,
    /// Slices of clusters that have no word here now: they stay as these said last.
    pub(super) held: Vec<Slice>,
    /// Names of slices of ours that have to go.
    pub(super) leftover: Vec<String>,
    /// What is missing though its writer has not taken it back.
    pub(super) doubts: Vec<Doubt>,
    /// uid of the import, when nothing of what is here is missing in it.
    pub(super) accepted: Option<String>,
    /// Clusters whose endpoints are not ready here because none answers.
    pub(super) demoted: BTreeSet<String>,
    /// How many addresses of a cluster are left out because endpoints of it must not have them here.
    pub(super) left_out: BTreeMap<String, usize>,
    /// The addresses that it had until it ended, a short time ago.
    pub(super) returning: Option<Returning>,
}

impl DesiredImport {
    /// Whether it has no address of its own.
    pub(super) fn is_headless(&self) -> bool {
        self.merged.type_ == ServiceImportType::Headless
    }

    /// A part that no import of the leader names stays as far as it is here. What is not here was perhaps taken away before this
    /// session began, and must not come back. Our own endpoints are ours to say.
    fn keep_only_what_is_here(&mut self, known: &Known) {
        let Self { slices, kept, .. } = self;
        slices.retain(|slice| {
            let from = slice.labels().get(label::MCS_SOURCE_CLUSTER);
            let is_kept = from.is_some_and(|from| from != known.us() && kept.contains(from));
            !is_kept || known.entry.imported_slices.contains_key(&slice.name_any())
        });
    }

    /// Holds the slices of ours that are neither made nor in the way, without addresses that their cluster must not have here by now.
    fn hold(&mut self, known: &Known) {
        let wanted: BTreeSet<_> = self.slices.iter().map(ResourceExt::name_any).collect();
        let all = known.entry.imported_slices.iter();
        let held = all.filter(|(name, _)| !wanted.contains(*name) && !self.leftover.contains(name));
        self.held = held.map(|(_, slice)| restored(slice)).collect();
        for slice in &mut self.held {
            let Some(from) = source_cluster(slice).filter(|from| *from != known.us()).cloned() else {
                continue;
            };
            let is_admitted = known.cluster.limits.admitted(&from);
            slice.endpoints.iter_mut().for_each(|endpoint| endpoint.shared.addresses.retain(&is_admitted));
            slice.endpoints.retain(|endpoint| !endpoint.shared.addresses.is_empty());
        }
    }

    /// Why nobody answers who connects to the import; none if an endpoint can.
    pub(super) fn unanswered(&self, known: &Known) -> Option<Unanswered> {
        let has_endpoints = |cluster: &str| {
            let slices = known.entry.peers.get(cluster).into_iter().flat_map(BTreeMap::values);
            slices.into_iter().any(|slice| !slice.endpoints.is_empty())
        };
        let slices: Vec<_> = self.slices.iter().chain(&self.held).collect();
        unanswered(&slices, &self.clusters, has_endpoints)
    }

    /// Whether the Service can become what it has to be.
    pub(super) fn fits(&self, there: &Service) -> bool {
        address::can_become(&there.spec, &self.families, self.is_headless())
    }
}

/// Plans for one import.
pub(super) fn desired(known: &Known, writers: &Writers) -> Plan {
    let mut plan = exchanged(known, writers);
    if let Plan::Import(import) = &mut plan {
        import.hold(known);
        let all = import.slices.iter_mut().chain(&mut import.held);
        import.demoted = demote(all, known);
    }
    plan
}

/// The plan by what clusters and leader say.
fn exchanged(known: &Known, writers: &Writers) -> Plan {
    let entry = &known.entry;
    let ours_here = entry.is_imported();
    match &entry.leader_import {
        None if !ours_here => Plan::Nothing,
        Some(import) if !(ours_here && writers.leader_is_outdated()) => {
            let (exporters, absent) = (known.exporters(), continuity::absent(known, import));
            if exporters.is_empty() && absent.is_empty() {
                return if ours_here { Plan::Remove } else { Plan::Nothing };
            }
            if exporters.is_empty() && removal_was_interrupted(entry) {
                return Plan::Hold(absent.into_iter().map(|cluster| Doubt::Part { cluster }).collect());
            }
            let named = exporters.iter().filter(|e| e.refused.is_none()).map(|e| e.cluster_id.clone());
            // An import that does not know of all yet may lack their ports.
            let last = if absent.is_empty() { None } else { continuity::last_merged(entry) };
            let merged = last.unwrap_or_else(|| continuity::merged(&import.spec));
            let accepted = absent.is_empty().then(|| import.uid.clone());
            let mut import = desired_import(known, writers, merged, &named.collect(), absent);
            if writers.withheld.is_none() {
                import.keep_only_what_is_here(known);
            }
            Plan::Import(DesiredImport { accepted, ..import })
        }
        outdated => without_import(known, writers, outdated.is_none()),
    }
}

/// Whether nothing but the ServiceImport is here, and was not when this session began: it is the last to be removed. Or somebody else
/// deleted the rest; in both cases nobody loses anything while it is found out what is meant.
fn removal_was_interrupted(entry: &ServiceEntry) -> bool {
    entry.accepted.is_none() && entry.own_derived().is_none() && entry.imported_slices.is_empty()
}

/// Plans where the leader's import is `missing`, or outdated.
fn without_import(known: &Known, writers: &Writers, missing: bool) -> Plan {
    let entry = &known.entry;
    let had: BTreeSet<_> = continuity::had(known).difference(&entry.parts_gone).cloned().collect();
    if missing && entry.import_gone && (had.is_empty() || entry.taken_back) {
        return Plan::Remove;
    }
    let import = (missing && !entry.import_gone).then_some(Doubt::Import);
    match continuity::last_merged(entry).filter(|_| !removal_was_interrupted(entry)) {
        Some(merged) => {
            let mut desired = desired_import(known, writers, merged, &BTreeSet::new(), had);
            desired.doubts.extend(import);
            desired.doubts.retain(|doubt| missing || matches!(doubt, Doubt::Slices { .. }));
            // Where the Common Area was restored, that there is no import does not say that the leader removed it.
            if missing && !writers.restored && writers.withheld.is_none() && entry.accepted.is_none() {
                desired.keep_only_what_is_here(known);
            }
            Plan::Import(desired)
        }
        None => {
            let parts = had.into_iter().filter(|_| missing).map(|cluster| Doubt::Part { cluster });
            Plan::Hold(parts.chain(import).collect())
        }
    }
}

/// `named` take part because the import names them, `kept` because nobody withdrew their part.
fn desired_import(
    known: &Known,
    writers: &Writers,
    merged: MergedService,
    named: &BTreeSet<String>,
    kept: BTreeSet<String>,
) -> DesiredImport {
    let entry = &known.entry;
    let (exported, merged) = (merged.metadata.unwrap_or_default(), merged.spec);
    let there = entry.own_derived().map(|derived| &derived.spec);
    let families = address::served(&merged, &known.cluster.families, there);
    let taking_part: BTreeSet<String> = named.union(&kept).cloned().collect();
    let sliced = Sliced::of(known, writers, &merged, &families, &taking_part);
    let mut doubts = sliced.doubts;
    doubts.extend(kept.iter().map(|cluster| Doubt::Part { cluster: cluster.clone() }));
    let wanted: BTreeSet<_> = sliced.slices.iter().map(ResourceExt::name_any).collect();
    let unwanted = |slice: &&String| !wanted.contains(*slice) && !sliced.held.contains(*slice);
    let leftover = entry.imported_slices.keys().filter(unwanted).cloned().collect();
    let taken = entry.derived.as_deref().is_some_and(|derived| !is_ours(&derived.metadata));
    let left_out = if taken { BTreeMap::new() } else { sliced.left_out };
    let (slices, doubts, leftover) = match taken {
        // Slices of ours would send that Service's clients to other clusters.
        true => (vec![], vec![], entry.imported_slices.keys().cloned().collect()),
        false => (sliced.slices, doubts, leftover),
    };
    let clusters = taking_part.into_iter().collect();
    DesiredImport {
        merged,
        families,
        exported,
        taken,
        clusters,
        kept,
        slices,
        held: vec![],
        leftover,
        doubts,
        accepted: None,
        demoted: BTreeSet::new(),
        left_out,
        returning: None,
    }
}

#[cfg(test)]
mod tests;
