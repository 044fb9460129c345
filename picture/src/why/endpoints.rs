//! Step `endpoints`: somebody answers, as far as EndpointSlices say.

use api::label;

use super::{
    Looked,
    merge::has_lost_all_ports,
    scene::{Party, Scene},
};
use crate::{
    cluster::{Cluster, Gap, Seen},
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

/// Endpoints of the Service in its own cluster: all, and those that are ready.
fn own(cluster: &Cluster, name: &str) -> Seen<(usize, usize)> {
    let is_own = |slice: &&SliceView| {
        slice.label(label::SERVICE_NAME) == Some(name) && slice.label(label::MCS_SERVICE_NAME).is_none()
    };
    cluster.slices.as_ref().map(|slices| sum(slices.iter().filter(is_own))).map_err(Clone::clone)
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
