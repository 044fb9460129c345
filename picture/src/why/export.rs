//! Step `export`: somebody exports the Service, and can.

use api::{
    label,
    mcs::{READY, VALID},
};
use kube::ResourceExt;

use super::{
    Looked,
    scene::{Party, Scene},
};
use crate::{
    cluster::Cluster,
    finding::Finding,
    near::nearest,
    said::{invalid, words},
    view::ServiceExportView,
};

pub(super) fn look(scene: &Scene<'_>) -> Looked {
    if scene.exporters.is_empty() {
        return nobody(scene);
    }
    Looked::of_any(scene.exporters.iter().map(|party| {
        let found = party.cluster.and_then(|cluster| Some((cluster, cluster.export(scene.name())?)));
        match found {
            Some((cluster, export)) => match wrong(scene, party, cluster, export) {
                Some(finding) => Looked::found(finding),
                None => Looked::well(format!("{}: {}", party.id, said(export))),
            },
            None => Looked::well(format!("{}: exported, as the leader knows", party.id)),
        }
    }))
}

/// Nobody exports it, as far as is known.
fn nobody(scene: &Scene<'_>) -> Looked {
    let (service, name) = (scene.service(), scene.name());
    let clusters = &scene.picture.clusters;
    let looked: Vec<_> =
        clusters.iter().filter(|cluster| cluster.exports.is_ok()).map(Cluster::title).collect();
    let knows_all = scene.area.is_some_and(|(_, area)| area.records.is_ok());
    // One cluster alone knows nothing of the exports of others.
    if looked.len() < 2 && !knows_all {
        let where_ = if looked.is_empty() { "any cluster".to_owned() } else { looked.join(", ") };
        return Looked::unknown(format!(
            "no ServiceExport {service} was found in {where_}; exports of other clusters were not looked at"
        ));
    }
    let has_service = clusters.iter().find(|cluster| cluster.service(name).is_some());
    let mut what = format!("no ServiceExport {service} in {}", looked.join(", "));
    let exports = clusters
        .iter()
        .flat_map(|cluster| cluster.exports.iter().flatten().map(move |export| (export.name_any(), cluster)));
    what += &near(name, "ServiceExport", exports);
    match has_service {
        Some(cluster) => what += &format!("; Service {service} exists in {}", cluster.title()),
        None => {
            let services = clusters.iter().flat_map(services);
            what += &format!(", and no Service{}", near(name, "Service", services));
        }
    }
    let finding = scene.broken(201, &Party { cluster: has_service, ..scene.importer }, what);
    Looked::found(finding)
}

/// Services of users.
fn services(cluster: &Cluster) -> impl Iterator<Item = (String, &Cluster)> {
    let users = cluster.services.iter().flatten().filter(|service| !service.is_ours());
    users.map(move |service| (service.name_any(), cluster))
}

/// Names the nearest name that exists.
fn near<'a>(name: &str, kind: &str, names: impl Iterator<Item = (String, &'a Cluster)>) -> String {
    let names: Vec<_> = names.collect();
    let nearest = nearest(name, names.iter().map(|(name, _)| name.as_str()));
    let found = nearest.and_then(|near| names.iter().find(|(name, _)| name == near));
    found.map_or_else(String::new, |(near, cluster)| {
        format!("; the nearest {kind} is {near} in {}", cluster.title())
    })
}

/// What is wrong with an export.
fn wrong(
    scene: &Scene<'_>,
    party: &Party<'_>,
    cluster: &Cluster,
    export: &ServiceExportView,
) -> Option<Finding> {
    let (id, service, name) = (party.id, scene.service(), scene.name());
    let namespace = cluster.namespace.as_ref().ok().and_then(Option::as_ref);
    let excluded = namespace.and_then(|namespace| namespace.labels().get(label::EXPORT));
    if excluded.is_some_and(|value| value == label::FALSE) {
        let what = format!(
            "{id}: Namespace {} has label {}={}",
            scene.picture.service.namespace,
            label::EXPORT,
            label::FALSE
        );
        return Some(scene.broken(204, party, what));
    }
    let there = cluster.service(name);
    if cluster.services.is_ok() && there.is_none() {
        let near = near(name, "Service", services(cluster));
        return Some(scene.broken(202, party, format!("{id}: ServiceExport {service} has no Service{near}")));
    }
    if there.is_some_and(|service| service.is_external_name()) {
        return Some(scene.broken(203, party, format!("{id}: Service {service} is of type ExternalName")));
    }
    let (code, invalid) = invalid(export)?;
    // Step `record` is about what the leader does not accept. What the objects show is newer than the condition.
    let is_elsewhere =
        code == 301 || (code == 202 && there.is_some()) || (code == 204 && namespace.is_some());
    (!is_elsewhere).then(|| scene.broken(code, party, format!("{id}: {}", words(invalid))))
}

/// What the conditions say.
fn said(export: &ServiceExportView) -> String {
    let is_true = |type_: &&str| {
        export.condition(type_).is_some_and(|condition| condition.status.as_deref() == Some("True"))
    };
    match [VALID, READY].into_iter().filter(is_true).collect::<Vec<_>>() {
        said if said.is_empty() => "exported; its conditions are not set yet".to_owned(),
        said => said.join(", "),
    }
}
