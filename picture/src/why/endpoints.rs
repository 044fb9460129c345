//! Step `endpoints`: somebody answers, as far as EndpointSlices say.

use api::{label, name, port::protocol};
use k8s_openapi::{api::core::v1::ServicePort, apimachinery::pkg::util::intstr::IntOrString};

use super::{
    Looked,
    merge::has_lost_all_ports,
    scene::{Party, Scene},
};
use crate::{
    cluster::Cluster,
    finding::{Finding, Weight},
    gap::{Gap, Seen},
    view::SliceView,
};

pub(super) fn look(scene: &Scene<'_>) -> Looked {
    if scene.exporters.is_empty() {
        return Looked::unknown("exporters are not known");
    }
    // Nobody imports endpoints without a port: step `merge` has found that.
    let (without, with): (Vec<_>, Vec<_>) =
        scene.exporters.iter().partition(|party| has_lost_all_ports(scene, party.id));
    let mut looked = Looked::of_any(with.into_iter().map(|party| of(scene, party)));
    if looked.findings.iter().all(|finding| finding.weight != Weight::Broken) {
        looked.findings.extend(kept_away(scene));
    }
    looked.said.extend(without.iter().map(|party| format!("none of {}, whose ports are not used", party.id)));
    looked
}

fn of(scene: &Scene<'_>, party: &Party<'_>) -> Looked {
    let (id, importer) = (party.id, scene.importer.id);
    let own = party.cluster.map(|cluster| own(cluster, scene.name()));
    if let Some(Ok((total, 0))) = own {
        let selector = party.cluster.and_then(|cluster| selector(cluster, scene.name()));
        return Looked::found(match selector.filter(|_| total == 0) {
            Some(selector) => scene.broken(601, party, format!("{id}: selector {selector} fits no Pod")),
            None => scene.broken(605, party, format!("{id}: 0 of {total} endpoints are ready")),
        });
    }
    let unnamed = party.cluster.map(|cluster| unnamed(cluster, scene.name())).unwrap_or_default();
    if let Some(finding) = nobody_has(scene, party, &unnamed) {
        return Looked::found(finding);
    }
    match (imported(scene, id), own) {
        (Ok((total, 0)), Some(Ok((_, ready)))) => {
            let what = format!(
                "{id} has {ready} endpoints that are ready; of {total} that {importer} has of it, 0 are"
            );
            Looked::found(scene.broken(607, &scene.importer, what))
        }
        (Ok((total, 0)), _) => {
            let what = format!("{importer}: 0 of {total} endpoints of {id} are ready");
            Looked::found(scene.broken(605, party, what))
        }
        (Ok((total, ready)), _) => Looked::well(format!("{ready} of {total} of {id} are ready")),
        (Err(gap), _) => Looked::unknown(format!("EndpointSlices of {importer}: {gap}")),
    }
}

/// Ports whose target is a name that no Pod has, and the number of all ports.
fn unnamed(cluster: &Cluster, name: &str) -> (Vec<ServicePort>, usize) {
    let spec = cluster.service(name).and_then(|service| service.spec.0.as_ref().ok());
    // Without a selector nobody resolves a name.
    let Some(spec) = spec.filter(|spec| !spec.selector.is_empty()) else { return (vec![], 0) };
    let slices = cluster.slices.iter().flatten().filter(|slice| is_own(slice, name));
    let there: Vec<_> = slices.flat_map(|slice| slice.ports.0.iter().flatten().flatten()).collect();
    let has = |port: &&ServicePort| {
        there.iter().any(|found| {
            found.name.as_deref().unwrap_or_default() == port.name.as_deref().unwrap_or_default()
                && protocol(found.protocol.as_deref()) == protocol(port.protocol.as_deref())
        })
    };
    let is_named = |port: &&ServicePort| matches!(port.target_port, Some(IntOrString::String(_)));
    (spec.ports.iter().filter(is_named).filter(|port| !has(port)).cloned().collect(), spec.ports.len())
}

/// Names ports without an endpoint.
fn nobody_has(
    scene: &Scene<'_>,
    party: &Party<'_>,
    (ports, of): &(Vec<ServicePort>, usize),
) -> Option<Finding> {
    let target = |port: &ServicePort| match &port.target_port {
        Some(IntOrString::String(name)) => format!("{name:?} (targetPort of port {})", port.port),
        _ => port.port.to_string(),
    };
    let names: Vec<_> = ports.iter().map(target).collect();
    let what = format!("{}: no Pod has a port {}", party.id, names.join(", "));
    let finding = scene.broken(603, party, what);
    let is_degraded = ports.len() < *of;
    (!ports.is_empty()).then(|| if is_degraded { finding.degraded() } else { finding })
}

/// Whether the address of the import leads nowhere: it reaches Pods of the client's own Node only, and the importer has none.
fn kept_away(scene: &Scene<'_>) -> Option<Finding> {
    let importer = &scene.importer;
    let derived = name::imported_service(scene.name());
    let spec = importer.cluster?.service(&derived)?.spec.0.as_ref().ok()?;
    let is_headless = spec.cluster_ip.as_deref() == Some("None");
    let is_local = spec.internal_traffic_policy.as_deref() == Some("Local") && !is_headless;
    let none_here = matches!(imported(scene, importer.id), Ok((_, 0)));
    // The export that decides, as far as the leader can be asked.
    let merged = scene.area.and_then(|(_, area)| area.merged.as_ref().ok()?.as_ref()?.exporters().first());
    let oldest = merged.and_then(|oldest| scene.exporters.iter().find(|party| party.id == oldest.cluster_id));
    let oldest = oldest.or_else(|| scene.exporters.first())?;
    let what = format!(
        "clients in {} reach no endpoint: Service {derived} has internalTrafficPolicy Local, and no Pod of {} runs there",
        importer.id,
        scene.service()
    );
    (is_local && none_here).then(|| scene.broken(604, oldest, what))
}

/// Endpoints of the Service in its own cluster: all, and those that are ready.
fn own(cluster: &Cluster, name: &str) -> Seen<(usize, usize)> {
    let own = |slices: &Vec<SliceView>| sum(slices.iter().filter(|slice| is_own(slice, name)));
    cluster.slices.as_ref().map(own).map_err(Clone::clone)
}

/// Whether a slice is of the Service itself, and not of an import.
fn is_own(slice: &SliceView, name: &str) -> bool {
    slice.label(label::SERVICE_NAME) == Some(name) && slice.label(label::MCS_SERVICE_NAME).is_none()
}

/// Endpoints of a cluster that the importer has: all, and those that are ready.
fn imported(scene: &Scene<'_>, id: &str) -> Seen<(usize, usize)> {
    let is_of = |slice: &&SliceView| {
        slice.label(label::MCS_SERVICE_NAME) == Some(scene.name())
            && slice.label(label::MCS_SOURCE_CLUSTER) == Some(id)
    };
    let slices = scene.importer.cluster.map_or(Err(Gap::NotLooked), |cluster| cluster.slices.clone())?;
    Ok(sum(slices.iter().filter(is_of)))
}

fn sum<'a>(slices: impl Iterator<Item = &'a SliceView>) -> (usize, usize) {
    slices.map(SliceView::count).fold((0, 0), |(all, ready), (more, of_these)| (all + more, ready + of_these))
}

/// The labels of the Service's Pods, if it has a selector.
fn selector(cluster: &Cluster, name: &str) -> Option<String> {
    let spec = cluster.service(name)?.spec.0.as_ref().ok()?;
    let pairs: Vec<_> = spec.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}
