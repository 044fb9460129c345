//! How far what the Common Area says about an import may be believed, measured against what is here: pure.
//!
//! An import that was measured before is believed for who is missing in it. Another one (the leader was replaced, records were deleted,
//! a backup restored) may not know yet of all who take part; who does not occur in it stays until that is known to be meant.

use std::collections::BTreeSet;

use api::{
    label,
    mcs::{ServiceImportSpec, ServiceImportType},
    name,
    resource_import::{MergedService, ResourceImportSpec},
};
use kube::ResourceExt;

use super::metadata;
use crate::service::{
    index::{
        entry::{LeaderRecord, ServiceEntry},
        known::Known,
    },
    offer::is_offered,
};

/// What is known of those who write about one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Writers {
    /// uid of the leader's Lease, once it was heard: another uid is another leader.
    pub(super) leader_uid: Option<String>,
    /// The Common Area was restored from a backup while we watched it.
    pub(super) restored: bool,
    /// The leader says that nobody exports the Service any more, and its word alone does not count: what is noted about that.
    pub(super) withheld: Option<String>,
    /// Leases of those whose records are of before the restore, as far as is known.
    pub(super) outdated: BTreeSet<String>,
}

impl Writers {
    /// Whether the leader's records are of before a restore.
    pub(super) fn leader_is_outdated(&self) -> bool {
        self.outdated.contains(name::LEADER_LEASE)
    }

    /// Whether a cluster's records are of before a restore.
    pub(super) fn is_outdated(&self, cluster: &str) -> bool {
        self.outdated.contains(&name::member_lease(cluster))
    }

    /// Whether the leader is the one that what is here was imported from.
    pub(super) fn leader_is_the_same(&self, known: &Known) -> bool {
        let measured = !self.restored || known.accepted().is_some();
        measured && self.leader_uid.as_deref().is_some_and(|uid| noted(&known.entry) == Some(uid))
    }
}

/// Clusters that have a part in what is here, apart from us if we do not offer anything.
pub(super) fn had(known: &Known) -> BTreeSet<String> {
    let offering = is_offered(known);
    known.entry.parts().into_iter().filter(|cluster| cluster != known.us() || offering).collect()
}

/// uid of the leader's Lease by which what is here was last measured.
pub(super) fn noted(entry: &ServiceEntry) -> Option<&str> {
    entry.own_import()?.annotations().get(label::HUB).map(String::as_str)
}

/// What is noted of an import that stays against the leader's word.
pub(super) fn withheld(entry: &ServiceEntry) -> Option<&str> {
    let noted = entry.own_import()?.annotations().get(label::WITHHELD).map(String::as_str);
    noted.filter(|noted| !noted.is_empty())
}

/// Clusters that have a part here, that the import does not name, and of which it is not known that they are gone.
pub(super) fn absent(known: &Known, import: &LeaderRecord) -> BTreeSet<String> {
    if known.is_measured(import) {
        return BTreeSet::new();
    }
    let named: BTreeSet<_> = known.exporters().iter().map(|exporter| exporter.cluster_id.as_str()).collect();
    let parts_gone = &known.entry.parts_gone;
    let is_absent = |cluster: &String| {
        !named.contains(cluster.as_str()) && !parts_gone.contains(cluster) && !is_evicted(known, cluster)
    };
    had(known).into_iter().filter(is_absent).collect()
}

/// Whether the leader has taken the part of a cluster back in its place, which is believed where the cluster is silent: it can vouch for
/// nothing, and would never do.
pub(super) fn is_evicted(known: &Known, cluster: &str) -> bool {
    let evicted = known.entry.leader_import.iter().flat_map(|import| &import.spec.evicted);
    known.cluster.links.silent.contains_key(cluster)
        && evicted.into_iter().any(|evicted| evicted.cluster_id == cluster)
}

/// The merged Service as it was last imported here.
pub(super) fn last_merged(entry: &ServiceEntry) -> Option<MergedService> {
    let import = entry.own_import()?;
    let spec = import.spec.0.as_ref().ok()?.clone();
    let merged = MergedService {
        spec: ServiceImportSpec { ips: vec![], ..spec },
        metadata: Some(metadata::exported(&import.metadata)),
        status: None,
    };
    // One that has no address here does not say which families it had elsewhere.
    let is_known = !merged.spec.ip_families.is_empty();
    let is_headless = merged.spec.type_ == ServiceImportType::Headless;
    (is_known && (is_headless || !merged.spec.ports.is_empty())).then_some(merged)
}

/// The merged Service that an import brings.
pub(super) fn merged(import: &ResourceImportSpec) -> MergedService {
    import.service_import.clone().unwrap_or_default()
}
