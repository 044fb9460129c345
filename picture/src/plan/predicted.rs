//! A Service of the set as it is once all daemons have settled.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    condition::Verdict,
    resource_import::{Exporter as Named, MergedService, ResourceImportSpec},
};
use rules::{import::metadata, merge};

use super::{
    exporter::{Exporter, exporters},
    held::Cluster,
    importer::{Imported, import},
    said::said,
    scene::Scene,
};

/// A Service of the set once all daemons have settled.
#[derive(Debug)]
pub(super) struct Predicted {
    /// Exports by cluster.
    pub(super) exporters: BTreeMap<String, Exporter>,
    /// Exporters of which nothing is known but that they take part.
    pub(super) unknown: BTreeSet<String>,
    /// The ResourceImport.
    pub(super) merged: Option<ResourceImportSpec>,
    /// The imports in the clusters that were looked at.
    pub(super) imports: BTreeMap<String, Imported>,
    /// Members that lack the Namespace.
    pub(super) lacking: BTreeSet<String>,
    /// Conditions of the ServiceExports, by cluster.
    pub(super) said: BTreeMap<String, Vec<Verdict>>,
}

impl Predicted {
    pub(super) fn of(scene: &Scene<'_>, service: &ServiceName) -> Self {
        let exporters = exporters(scene, service);
        let (unknown, had) = unknown(scene, service);
        let live =
            exporters.iter().filter_map(|(id, exporter)| Some((id.as_str(), exporter.offer.as_ref()?)));
        let live: Vec<_> = live.collect();
        let is_exported = !live.is_empty() || !unknown.is_empty();
        let kept: Vec<_> =
            unknown.iter().map(|id| Named { cluster_id: id.clone(), ..Named::default() }).collect();
        let merged = is_exported.then(|| merge::import(service, live, had.as_ref(), kept.iter().collect()));
        let merged = merged.filter(|merged| merged.service_import.is_some());
        let lacking = if merged.is_some() { scene.lacking(&service.namespace) } else { BTreeSet::new() };
        let imports = imports(scene, service, merged.as_ref(), &exporters);
        let said = said(scene, service, &exporters, merged.as_ref(), (&imports, &lacking));
        Self { exporters, unknown, merged, imports, lacking, said }
    }
}

/// Clusters that take part by what ServiceImports say, of which nothing else is known, and the merged Service that they are part of. If the
/// leader was looked at, all are known.
fn unknown(scene: &Scene<'_>, service: &ServiceName) -> (BTreeSet<String>, Option<MergedService>) {
    if scene.area.is_some() {
        return (BTreeSet::new(), None);
    }
    let mut imports = scene.members.values().filter_map(|cluster| cluster.import(service));
    let Some(import) = imports.find(|import| rules::view::is_ours(&import.metadata)) else {
        return (BTreeSet::new(), None);
    };
    let named = import.status.0.iter().flat_map(|status| &status.clusters).map(|of| of.cluster.clone());
    let is_known = |id: &String| scene.members.get(id).is_some_and(|cluster| cluster.exports.is_ok());
    let unknown = named.filter(|id| !is_known(id)).collect();
    let spec = import.spec.0.clone().unwrap_or_default();
    let metadata = Some(metadata::exported(&import.metadata));
    (unknown, Some(MergedService { spec, metadata, status: None }))
}

/// The imports in the clusters that were looked at and have the Namespace.
fn imports(
    scene: &Scene<'_>,
    service: &ServiceName,
    merged: Option<&ResourceImportSpec>,
    exporters: &BTreeMap<String, Exporter>,
) -> BTreeMap<String, Imported> {
    let Some(spec) = merged else { return BTreeMap::new() };
    let Some(merged) = &spec.service_import else { return BTreeMap::new() };
    let taking_part = spec.exporters.iter().flatten().map(|exporter| exporter.cluster_id.clone()).collect();
    let can_import = |cluster: &Cluster| {
        let found = cluster.namespace(&service.namespace).ok().flatten();
        found.is_some_and(|found| found.metadata.deletion_timestamp.is_none())
    };
    let importing = scene.members.iter().filter(|(_, cluster)| can_import(cluster));
    let of = |(id, cluster): (&String, &&Cluster)| {
        (id.clone(), import(id, cluster, service, merged, exporters, &taking_part))
    };
    importing.map(of).collect()
}
