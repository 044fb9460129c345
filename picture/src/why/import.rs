//! Step `import`: the importer has the Service.

use api::{cluster_set::WRITES_ACCEPTED, label, mcs::READY, name};
use kube::ResourceExt;

use super::{Looked, scene::Scene};
use crate::{
    cluster::Cluster,
    finding::Finding,
    gap::Gap,
    said::{not_ready, words},
    view::ServiceImportView,
};

pub(super) fn look(scene: &Scene<'_>) -> Looked {
    let importer = &scene.importer;
    let unknown = Cluster::unknown(importer.id, &Gap::NotLooked);
    let cluster = importer.cluster.unwrap_or(&unknown);
    if let Some(finding) = lacks_at_the_leader(scene).filter(|_| cluster.namespace.is_err()) {
        return Looked::found(finding);
    }
    let namespace = &scene.picture.service.namespace;
    if matches!(&cluster.namespace, Ok(None)) {
        let what = format!("{} has no Namespace {namespace}", importer.id);
        return Looked::found(scene.broken(501, importer, what));
    }
    match &cluster.import {
        Ok(Some(import)) => there(scene, cluster, import),
        Ok(None) => Looked::found(foreign_service(scene, cluster).unwrap_or_else(|| missing(scene, cluster))),
        Err(gap) => Looked::unknown(format!("ServiceImport of {}: {gap}", importer.id)),
    }
}

/// The member says on its Lease which Namespaces it lacks.
fn lacks_at_the_leader(scene: &Scene<'_>) -> Option<Finding> {
    let (_, area) = scene.area?;
    let lacks = area.lease(&name::member_lease(scene.importer.id))?.lacks()?;
    let namespace = &scene.picture.service.namespace;
    let what = format!("{} has no Namespace {namespace}, as the leader knows", scene.importer.id);
    lacks.contains(namespace).then(|| scene.broken(501, &scene.importer, what))
}

/// Whether somebody else has the Service that would stand for the import.
fn foreign_service(scene: &Scene<'_>, cluster: &Cluster) -> Option<Finding> {
    let derived = name::imported_service(scene.name());
    let service = cluster.service(&derived).filter(|service| !service.is_ours())?;
    let by = service.labels().get(label::MANAGED_BY).filter(|by| *by != label::FREEPORT);
    let by = by.map_or_else(String::new, |by| format!(" (managed by {by})"));
    let what = format!("{} has a Service {derived} that Freeport did not create{by}", scene.importer.id);
    Some(scene.broken(502, &scene.importer, what).with("near", derived))
}

/// There is no ServiceImport.
fn missing(scene: &Scene<'_>, cluster: &Cluster) -> Finding {
    let (importer, service) = (&scene.importer, scene.service());
    let writes = cluster.set().and_then(|set| set.condition(WRITES_ACCEPTED));
    let refused = writes.filter(|writes| writes.status.as_deref() == Some("False"));
    match refused {
        Some(refused) => scene.broken(503, importer, format!("{}: {}", importer.id, words(refused))),
        None => scene.broken(506, importer, format!("{} has no ServiceImport {service}", importer.id)),
    }
}

/// There is a ServiceImport.
fn there(scene: &Scene<'_>, cluster: &Cluster, import: &ServiceImportView) -> Looked {
    let (importer, service) = (&scene.importer, scene.service());
    if !import.is_ours() {
        let by = import.labels().get(label::MANAGED_BY);
        let by = by.map_or("nobody says whose it is".to_owned(), |by| format!("its label says {by}"));
        let what =
            format!("{} has a ServiceImport {service} that Freeport did not create: {by}", importer.id);
        return Looked::found(scene.broken(505, importer, what));
    }
    if let Some(finding) = foreign_service(scene, cluster) {
        return Looked::found(finding);
    }
    let Some((code, ready)) = not_ready(import) else {
        return match import.condition(READY) {
            Some(_) => Looked::well(format!("{} has ServiceImport {service}, Ready", importer.id)),
            None => {
                let what = format!("ServiceImport {service} of {} has no condition yet", importer.id);
                Looked::found(scene.broken(506, importer, what))
            }
        };
    };
    // What the objects show is newer than the condition.
    let code = if code == 502 && cluster.services.is_ok() { 506 } else { code };
    let finding = scene.broken(code, importer, format!("{}: {}", importer.id, words(ready)));
    Looked::found(finding.with("near", name::imported_service(scene.name())))
}
