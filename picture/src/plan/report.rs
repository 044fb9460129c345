//! The plan, and what of it is a problem.

use std::collections::BTreeMap;

use api::{
    ServiceName,
    condition::{Status, Verdict},
    mcs::{CONFLICT, VALID},
    resource_import::{MergedService, ResourceImportSpec},
};
use serde::Serialize;

use super::{
    change::Refused,
    held::Cluster,
    importer::{Endpoints, Imported},
    predicted::Predicted,
    scene::Scene,
    writes::Writes,
};
use crate::gap::Gap;

/// Effect of a change.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Cluster of the change.
    pub cluster: String,
    /// The Services that change, and are exported before or after the change.
    pub services: Vec<Planned>,
    /// Changes that the API server would refuse. The rest is planned without them.
    pub refused: Vec<Refused>,
    /// Parts that could not be looked at.
    pub not_looked_at: Vec<String>,
    /// Conflicts, refusals, and imports that lose their last endpoint.
    pub problems: Vec<String>,
}

/// A Service of the set, as it will be.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The merged Service; none if nobody exports it any more.
    pub import: Option<MergedService>,
    /// Clusters with a ServiceExport, or a record of one; oldest export first.
    pub exporters: Vec<Exported>,
    /// The importing clusters that were looked at.
    pub importers: Vec<Importing>,
    /// Members that lack the Namespace.
    pub lacking: Vec<String>,
    /// Number of writes.
    pub writes: Writes,
    /// The ResourceImport.
    #[serde(skip)]
    pub merged: Option<ResourceImportSpec>,
    /// Contexts of the members that were looked at, by their IDs.
    #[serde(skip)]
    pub(super) contexts: BTreeMap<String, String>,
    /// True if it is not known whether another cluster exports the Service.
    #[serde(skip)]
    pub(super) hides_exports: bool,
    /// Sentences about what is not known.
    #[serde(skip)]
    notes: Vec<String>,
}

/// An export of a Service.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// Cluster that exports.
    pub cluster: String,
    /// True if the cluster was looked at. Otherwise conditions that depend on it alone are missing.
    pub looked_at: bool,
    /// Conditions of its ServiceExport.
    #[serde(serialize_with = "super::condition::serialized")]
    pub conditions: Vec<Verdict>,
}

/// A cluster that imports, or imported, a Service.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Importing {
    /// Its ID.
    pub cluster: String,
    /// Context of the cluster.
    pub context: String,
    /// Endpoints that it imports now.
    pub before: Endpoints,
    /// Endpoints that it will import.
    pub after: Endpoints,
    /// True if `before` is known.
    pub before_known: bool,
    /// True if `after` is known. At least these endpoints are imported.
    pub after_known: bool,
    /// The import; none if it goes.
    pub import: Option<Imported>,
}

impl Planned {
    pub(super) fn of(
        service: &ServiceName,
        scene: &Scene<'_>,
        before: &Predicted,
        after: &Predicted,
    ) -> Self {
        let order: Vec<_> =
            after.merged.iter().flat_map(|merged| merged.exporters.iter().flatten()).collect();
        let place = |id: &String| order.iter().position(|one| one.cluster_id == *id).unwrap_or(usize::MAX);
        let exported = |(id, exporter): (&String, &super::exporter::Exporter)| Exported {
            cluster: id.clone(),
            looked_at: !exporter.said.is_empty(),
            conditions: after.said.get(id).cloned().unwrap_or_default(),
        };
        let mut exporters: Vec<_> = after.exporters.iter().map(exported).collect();
        exporters.sort_by_key(|exported| place(&exported.cluster));
        let hides_exports = after.merged.is_none() && scene.hides_exports();
        let importing = scene.members.iter().filter_map(|(id, cluster)| {
            let (was, will) = (before.imports.get(id), after.imports.get(id));
            let have = Endpoints::of(cluster.imported_slices(service).values());
            (was.is_some() || will.is_some()).then(|| Importing {
                cluster: id.clone(),
                context: cluster.context.clone(),
                before: have,
                after: will.map(Imported::certain).unwrap_or_default(),
                before_known: cluster.slices.is_ok(),
                after_known: will.map_or(!hides_exports, |will| will.hidden.is_empty()),
                import: will.cloned(),
            })
        });
        let unknown = after.unknown.iter().map(|id| {
            format!("what {id} exports as {service} is not known: its endpoints are taken as they are, and conflicts with it are not predicted")
        });
        let unsettled = after.exporters.keys().filter(|id| {
            scene.unsettled.is_some_and(|(of, services)| of == *id && services.contains(service))
        });
        let unsettled = unsettled.map(|id| {
            format!("endpoints of {service} in {id} are not known: its selector or its ports are new")
        });
        let exports = hides_exports.then(|| {
            format!("whether another cluster exports {service} is not known: neither the leader nor ServiceImports were read")
        });
        let is_imported = before.merged.is_some() || after.merged.is_some();
        let others: Vec<_> =
            scene.others().into_iter().filter(|id| is_imported && !after.lacking.contains(id)).collect();
        let others =
            (!others.is_empty()).then(|| format!("imports in {} were not looked at", others.join(", ")));
        Self {
            namespace: service.namespace.clone(),
            name: service.name.clone(),
            import: after.merged.as_ref().and_then(|merged| merged.service_import.clone()),
            exporters,
            importers: importing.collect(),
            lacking: after.lacking.iter().cloned().collect(),
            writes: Writes::between(before, after),
            merged: after.merged.clone(),
            contexts: scene.members.iter().map(|(id, one)| (id.clone(), one.context.clone())).collect(),
            hides_exports,
            notes: unknown.chain(unsettled).chain(exports).chain(others).collect(),
        }
    }

    /// Namespace and name.
    pub fn service(&self) -> ServiceName {
        ServiceName::new(&self.namespace, &self.name)
    }

    /// Importing clusters that lose their last endpoint, or may lose it.
    pub(super) fn losing(&self) -> impl Iterator<Item = &Importing> {
        self.importers.iter().filter(|importing| importing.loses_all() != Some(false))
    }

    fn problems(&self) -> Vec<String> {
        let service = self.service();
        let mut all = Vec::new();
        for Exported { cluster, conditions, .. } in &self.exporters {
            let invalid = conditions.iter().find(|said| said.type_ == VALID && said.status == Status::False);
            let said = |why: &Verdict| {
                format!("{service}: export of {cluster} is not valid: {}: {}", why.reason, why.message)
            };
            all.extend(invalid.map(said));
        }
        let conflict = |exported: &Exported| {
            let said = |said: &&Verdict| said.type_ == CONFLICT && said.status == Status::True;
            exported.conditions.iter().find(said).map(|said| said.reason.clone())
        };
        if let Some(reason) = self.exporters.iter().find_map(conflict) {
            all.push(format!("{service}: its exports differ: {reason}"));
        }
        for importing in &self.importers {
            let cluster = &importing.cluster;
            if let Some(trouble) = importing.import.as_ref().and_then(Imported::trouble) {
                let Verdict { reason, message, .. } = trouble;
                all.push(format!("{service}: import in {cluster} is not ready: {reason}: {message}"));
            }
            if importing.loses_all() == Some(true) {
                all.push(format!("{service}: import in {cluster} loses its last endpoint"));
            }
        }
        all
    }
}

impl Importing {
    /// Reports whether it loses its last endpoint that gets traffic; none if that is not known.
    pub fn loses_all(&self) -> Option<bool> {
        let has_none = self.before_known && self.before.ready == 0;
        if has_none || self.after.ready > 0 {
            return Some(false);
        }
        (self.before_known && self.after_known).then_some(true)
    }
}

impl Plan {
    pub(super) fn of(
        target: &Cluster,
        services: Vec<Planned>,
        refused: Vec<Refused>,
        scene: &Scene<'_>,
    ) -> Self {
        let refusals = refused.iter().map(|refused| {
            format!("{} would refuse {}: {}", target.title(), refused.object, refused.message)
        });
        let problems = refusals.chain(services.iter().flat_map(Planned::problems)).collect();
        let leader = scene.area.is_none().then(|| {
            "the leader was not looked at: exports of other clusters are known as far as imports show them. try: --leader-context".to_owned()
        });
        let gaps = scene.members.values().flat_map(|cluster| gaps(cluster));
        let notes = services.iter().flat_map(|planned| planned.notes.clone());
        let not_looked_at = leader.into_iter().chain(gaps).chain(notes).collect();
        Self { cluster: target.title().to_owned(), services, refused, not_looked_at, problems }
    }

    /// Reports whether nothing of it is a problem.
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the text that a user has to confirm: imports lose their last endpoint, or this is not known.
    pub fn loss(&self) -> Option<String> {
        let losing = || self.services.iter().flat_map(Planned::losing);
        let first = losing().next()?;
        Some(if losing().any(|importing| importing.loses_all() == Some(true)) {
            "imports lose their last endpoint".to_owned()
        } else {
            format!("whether the import in {} loses its last endpoint is not known", first.cluster)
        })
    }

    /// Number of writes, in the Common Area and by cluster.
    pub fn writes(&self) -> Writes {
        let mut all = Writes { common_area: 0, clusters: BTreeMap::new() };
        for planned in &self.services {
            all.common_area += planned.writes.common_area;
            for (cluster, count) in &planned.writes.clusters {
                *all.clusters.entry(cluster.clone()).or_default() += count;
            }
        }
        all
    }
}

/// Parts of a member that could not be read.
fn gaps(cluster: &Cluster) -> Vec<String> {
    let parts = [
        ("Namespaces", cluster.namespaces.as_ref().err()),
        ("ServiceExports", cluster.exports.as_ref().err()),
        ("Services", cluster.services.as_ref().err()),
        ("EndpointSlices", cluster.slices.as_ref().err()),
        ("ServiceImports", cluster.imports.as_ref().err()),
        ("IP families", cluster.families.as_ref().err()),
        ("the member's Deployment", cluster.deployment.as_ref().err().filter(|gap| **gap != Gap::NoKind)),
    ];
    let said = |(part, gap): (&str, Option<&Gap>)| Some(format!("{part} of {}: {}", cluster.title(), gap?));
    parts.into_iter().filter_map(said).collect()
}
