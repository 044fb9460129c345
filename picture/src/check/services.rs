//! Exports that are not valid or not ready, imports that are not ready. Of what several Services have in common one line is made.

use std::collections::BTreeMap;

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
    code::Code,
    finding::Finding,
    said::{conflict, invalid, not_ready, not_recorded, words},
    view::{ServiceExportView, ServiceImportView},
};

/// What was found of the exports or imports of a cluster.
#[derive(Default)]
struct Judged {
    /// By code: the Service, and what its condition says.
    wrong: BTreeMap<u16, Vec<(ServiceName, String)>>,
    /// Number of those that follow from a finding of another cluster, by that.
    follows: BTreeMap<String, usize>,
}

impl Judged {
    /// Adds what is wrong with a Service, or what it follows from.
    fn add(&mut self, service: ServiceName, (code, said): (u16, &AntreaCondition), cause: Option<String>) {
        match cause {
            Some(cause) => *self.follows.entry(cause).or_default() += 1,
            None => self.wrong.entry(code).or_default().push((service, words(said))),
        }
    }

    /// A line for each code and cause, and how many of `all` are well.
    fn lines(self, scene: &Scene<'_>, cluster: &Cluster, all: usize) -> Vec<Item> {
        let count = self.wrong.values().map(Vec::len).chain(self.follows.values().copied()).sum::<usize>();
        let lines = self.wrong.into_iter().filter_map(|(code, all)| line(scene, cluster, code, &all));
        let mut items: Vec<_> = lines.collect();
        items.extend(self.follows.into_keys().map(Item::Follows));
        match all - count {
            0 if all > 0 => {}
            0 => items.push(Item::Well("there are none".into())),
            well => items.push(Item::Well(format!("well: {well} of {all}"))),
        }
        items
    }
}

pub(super) fn exports(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    if cluster.member.set().is_none() {
        return vec![];
    }
    let exports = match &cluster.exports {
        Ok(exports) => exports,
        Err(gap) => return vec![Item::Unknown(format!("ServiceExports: {gap}"))],
    };
    let mut judged = Judged::default();
    for export in exports {
        let Some(wrong) = of_export(export) else { continue };
        let service = service(export);
        // Of a conflict all exporters say the same.
        let is_conflict = (401..=403).contains(&wrong.0);
        let cause = told_before(scene, cluster, &service).filter(|_| is_conflict);
        judged.add(service, wrong, cause);
    }
    judged.lines(scene, cluster, exports.len())
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
        Some(format!("{} of {}", Code(code), other.title()))
    })
}

pub(super) fn imports(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    let Some(set) = cluster.member.set() else { return vec![] };
    let imports = match &cluster.imports {
        Ok(imports) => imports,
        Err(gap) => return vec![Item::Unknown(format!("ServiceImports: {gap}"))],
    };
    let mut judged = Judged::default();
    let ours: Vec<_> = imports.iter().filter(|import| import.is_members()).collect();
    for import in &ours {
        if let Some(wrong) = of_import(import) {
            let service = service(*import);
            let cause = told(scene.clusters.iter(), cluster, &service);
            judged.add(service, wrong, cause);
        }
    }
    let is_refused = |export| matches!(of_export(export), Some((302, _)));
    let is_told = judged.wrong.contains_key(&503) || cluster.exports.iter().flatten().any(is_refused);
    let mut items = judged.lines(scene, cluster, ours.len());
    items.extend(missing_namespaces(scene, cluster));
    items.extend(daemons::refused(scene, cluster, set).filter(|_| !is_told));
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

/// What several Services have in common.
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
