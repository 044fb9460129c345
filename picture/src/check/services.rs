//! Exports that are not valid or not ready, imports that are not ready. Of what several Services have in common one line is made.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    cluster_set::IMPORTS_COMPLETE,
    condition::AntreaCondition,
    mcs::{CONFLICT, NO_READY_ENDPOINTS},
    name,
    words::first_names,
};
use kube::{Resource, ResourceExt};

use super::{causes::Item, cluster::Cluster, daemons, link::NAMESPACE_MISSING, scene::Scene};
use crate::{
    finding::Finding,
    said::{conflict, invalid, not_ready, not_recorded, words},
    view::{ServiceExportView, ServiceImportView},
};

/// What is wrong with Services, by code: the Service, and what its condition says.
type Wrong = BTreeMap<u16, Vec<(ServiceName, String)>>;

pub(super) fn exports(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    if cluster.member.set().is_none() {
        return vec![];
    }
    let exports = match &cluster.exports {
        Ok(exports) => exports,
        Err(gap) => return vec![Item::Unknown(format!("ServiceExports: {gap}"))],
    };
    let (mut wrong, mut known) = (Wrong::new(), BTreeSet::new());
    for export in exports {
        let service = service(export);
        let Some((code, said)) = of_export(export) else { continue };
        // Of a conflict all exporters say the same.
        match told_before(scene, cluster, &service).filter(|_| (401..=403).contains(&code)) {
            Some(first) => {
                known.insert(first);
            }
            None => wrong.entry(code).or_default().push((service, words(said))),
        }
    }
    let mut items = lines(scene, cluster, wrong, exports.len(), "exports");
    items.extend(known.into_iter().map(Item::Follows));
    items
}

/// What is wrong with an export, and its code.
fn of_export(export: &ServiceExportView) -> Option<(u16, &AntreaCondition)> {
    let is_true = |type_| export.condition(type_).filter(|said| said.status.as_deref() == Some("True"));
    let conflict =
        || is_true(CONFLICT).map(|said| (conflict(said.reason.as_deref().unwrap_or_default()), said));
    let unanswered = || is_true(NO_READY_ENDPOINTS).map(|said| (code_of_unanswered(said), said));
    invalid(export).or_else(|| not_recorded(export)).or_else(conflict).or_else(unanswered)
}

fn code_of_unanswered(said: &AntreaCondition) -> u16 {
    if said.reason.as_deref() == Some("PortMismatch") { 603 } else { 605 }
}

/// The finding of a cluster before this one about an export of the same Service.
fn told_before(scene: &Scene<'_>, cluster: &Cluster, service: &ServiceName) -> Option<String> {
    let before = scene.clusters.iter().take_while(|other| !std::ptr::eq(*other, cluster));
    told(before, cluster, service)
}

/// What one of these clusters of the same set finds about its export of the Service.
fn told<'a>(
    mut clusters: impl Iterator<Item = &'a Cluster>,
    cluster: &Cluster,
    service: &ServiceName,
) -> Option<String> {
    clusters.find_map(|other| {
        let export = other.exports.iter().flatten().find(|export| self::service(*export) == *service)?;
        let (code, _) = of_export(export).filter(|_| other.set() == cluster.set())?;
        Some(format!("FP{code} of {}", other.title()))
    })
}

pub(super) fn imports(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    let Some(set) = cluster.member.set() else { return vec![] };
    let imports = match &cluster.imports {
        Ok(imports) => imports,
        Err(gap) => return vec![Item::Unknown(format!("ServiceImports: {gap}"))],
    };
    let (mut wrong, mut follows) = (Wrong::new(), BTreeSet::new());
    for import in imports.iter().filter(|import| import.is_members()) {
        let Some((code, said)) = of_import(import) else { continue };
        match told(scene.clusters.iter(), cluster, &service(import)) {
            Some(cause) => {
                follows.insert(cause);
            }
            None => wrong.entry(code).or_default().push((service(import), words(said))),
        }
    }
    let is_refused = |code: &u16| wrong.contains_key(code);
    let exports_refused =
        cluster.exports.iter().flatten().any(|export| matches!(of_export(export), Some((302, _))));
    let is_told = exports_refused || is_refused(&503);
    let mut items = lines(scene, cluster, wrong, imports.len(), "imports");
    items.extend(follows.into_iter().map(Item::Follows));
    items.extend(missing_namespaces(scene, cluster));
    let refused = daemons::refused(set).filter(|_| !is_told);
    items.extend(
        refused.map(|what| Item::found(scene.broken(10, cluster, format!("{}: {what}", cluster.title())))),
    );
    items
}

/// What is wrong with an import, and its code.
fn of_import(import: &ServiceImportView) -> Option<(u16, &AntreaCondition)> {
    let unanswered =
        || import.condition(NO_READY_ENDPOINTS).filter(|said| said.status.as_deref() == Some("True"));
    not_ready(import).or_else(|| unanswered().map(|said| (code_of_unanswered(said), said)))
}

/// Namespaces that others export from and this cluster lacks.
fn missing_namespaces(scene: &Scene<'_>, cluster: &Cluster) -> Option<Item> {
    let set = cluster.member.set()?;
    let said = set.condition(IMPORTS_COMPLETE)?;
    let is_so = said.reason.as_deref() == Some(NAMESPACE_MISSING) && said.status.as_deref() != Some("True");
    let (_, area) = scene.leader(&set.name_any()).unzip();
    let lease = area.and_then(|area| area.members().find(|(id, _)| id == cluster.title()));
    let lacks = lease.and_then(|(_, lease)| lease.lacks()).unwrap_or_default();
    let finding = scene.broken(501, cluster, format!("{}: {}", cluster.title(), words(said)));
    let finding = match lacks.first() {
        Some(namespace) => finding.with("namespace", namespace),
        None => finding,
    };
    is_so.then(|| Item::found(finding))
}

fn service<K: Resource>(object: &K) -> ServiceName {
    ServiceName::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// A line for each code, or one that says how many are well.
fn lines(scene: &Scene<'_>, cluster: &Cluster, wrong: Wrong, all: usize, what: &str) -> Vec<Item> {
    let count: usize = wrong.values().map(Vec::len).sum();
    let mut items: Vec<_> =
        wrong.into_iter().filter_map(|(code, all)| line(scene, cluster, code, &all)).collect();
    // Nothing follows where nothing is.
    if all > count {
        let well = if count == 0 {
            format!("{all} {what} are well")
        } else {
            format!("{} of {all} {what} are well", all - count)
        };
        items.push(Item::Well(well));
    } else if all == 0 {
        items.push(Item::Well(format!("no {what}")));
    }
    items
}

fn line(scene: &Scene<'_>, cluster: &Cluster, code: u16, all: &[(ServiceName, String)]) -> Option<Item> {
    let ((first, words), others) = all.split_first()?;
    let mut what = format!("{} in {}: {words}", first, cluster.title());
    if !others.is_empty() {
        what += &format!("; also {}", first_names(others.iter().map(|(service, _)| service)));
    }
    let finding = named(scene.broken(code, cluster, what), first);
    Some(match cluster.set() {
        // Without freeport-leader nothing new arrives.
        Some(set) if code == 303 => Item::Shared { finding, key: daemons::key(&set), is_source: false },
        _ => Item::found(finding),
    })
}

fn named(finding: Finding, service: &ServiceName) -> Finding {
    let near = name::imported_service(&service.name);
    finding.with("namespace", &service.namespace).with("name", &service.name).with("near", near)
}
