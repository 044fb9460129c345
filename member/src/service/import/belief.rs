//! How far what the Common Area says about an import may be believed, measured against what is here: pure.
//!
//! An import that was looked at before is believed at its word. Another one (the hub was replaced, records were deleted, a backup
//! restored) may not know yet of all who take part; who does not occur in it stays until that is known to be meant.

use std::collections::BTreeSet;

use api::{
    ServiceName, label,
    mcs::{ServiceImportSpec, ServiceImportType},
    name,
    resource_import::{MergedService, ResourceImportSpec},
};
use kube::ResourceExt;

use super::exported;
use crate::service::{
    entry::{HubRecord, ServiceEntry},
    export::offer,
    view::{Slice, is_ours},
};

/// What is known of those who write about one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hub {
    /// uid of the leader's Lease: another one is another hub.
    pub uid: String,
    /// The Common Area was restored from a backup while we watched it.
    pub restored: bool,
    /// Leases of those whose records are of before the restore, as far as is known.
    pub outdated: BTreeSet<String>,
}

impl Hub {
    /// Whether what the leader says is of before a restore.
    pub fn leader_is_outdated(&self) -> bool {
        self.outdated.contains(name::LEADER_LEASE)
    }

    /// Whether what a cluster says is of before a restore.
    pub fn is_outdated(&self, cluster: &str) -> bool {
        self.outdated.contains(&name::member_lease(cluster))
    }

    /// Whether this is the hub that what is here was imported from.
    pub fn is_the_same(&self, entry: &ServiceEntry) -> bool {
        let measured = !self.restored || entry.accepted.is_some();
        measured && noted(entry) == Some(self.uid.as_str())
    }
}

/// Clusters that have a part in what is here, apart from `us` if we do not offer anything.
pub fn had(us: &str, service: &ServiceName, entry: &ServiceEntry) -> BTreeSet<String> {
    let offering = matches!(offer(us, service, entry), Ok(Some(_)));
    parts(entry).into_iter().filter(|cluster| cluster != us || offering).collect()
}

/// Clusters that have a part in what is here.
pub fn parts(entry: &ServiceEntry) -> BTreeSet<String> {
    let import = entry.import.as_ref().filter(|import| is_ours(&import.metadata));
    let status = import.and_then(|import| import.status.0.as_ref().ok());
    let said =
        status.into_iter().flat_map(|status| status.clusters.iter().map(|cluster| cluster.cluster.clone()));
    let from = |slice: &Slice| slice.labels().get(label::MCS_SOURCE_CLUSTER).cloned();
    said.chain(entry.imported_slices.values().filter_map(from)).collect()
}

/// The hub that what is here was last measured by.
pub fn noted(entry: &ServiceEntry) -> Option<&str> {
    let import = entry.import.as_ref().filter(|import| is_ours(&import.metadata))?;
    import.annotations().get(label::HUB).map(String::as_str)
}

/// Whether the import is the one that what is here was measured by, by this very process: while it was away the Common Area
/// may have been restored from a backup, of which nothing tells.
pub fn is_measured(entry: &ServiceEntry, import: &HubRecord) -> bool {
    entry.accepted.as_ref() == Some(&import.uid)
}

/// Clusters that have a part here, that the import does not name, and of which it is not known that they are gone.
pub fn absent(us: &str, service: &ServiceName, entry: &ServiceEntry, import: &HubRecord) -> BTreeSet<String> {
    if is_measured(entry, import) {
        return BTreeSet::new();
    }
    let named: BTreeSet<_> = import.spec.exporters.iter().flatten().map(|e| e.cluster_id.as_str()).collect();
    let missing = |cluster: &String| !named.contains(cluster.as_str()) && !entry.parts_gone.contains(cluster);
    had(us, service, entry).into_iter().filter(missing).collect()
}

/// The merged Service as it was last realised here.
pub fn realised(entry: &ServiceEntry) -> Option<MergedService> {
    let import = entry.import.as_ref().filter(|import| is_ours(&import.metadata))?;
    let spec = import.spec.0.as_ref().ok()?.clone();
    let merged = MergedService {
        spec: ServiceImportSpec { ips: vec![], ..spec },
        metadata: Some(exported::of(&import.metadata)),
        status: None,
    };
    // One that has no address here does not say which families it had elsewhere.
    let is_known = !merged.spec.ip_families.is_empty();
    let is_headless = merged.spec.type_ == ServiceImportType::Headless;
    (is_known && (is_headless || !merged.spec.ports.is_empty())).then_some(merged)
}

/// The merged Service that an import brings.
pub fn merged(import: &ResourceImportSpec) -> MergedService {
    import.service_import.clone().unwrap_or_default()
}
