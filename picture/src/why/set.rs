//! Step `set`: importer and exporters are members of the ClusterSet, their members run, and they are connected with the leader.

use api::{condition::AntreaCondition, name};
use kube::ResourceExt;

use super::{
    Looked,
    scene::{Party, Scene},
};
use crate::{
    cluster::Cluster,
    finding::Finding,
    gap::Gap,
    member::{LEADER_SILENT, Part, Wrong, link, renewed, since},
    sign::{Sign, sign},
    view::ClusterSetView,
};

pub(super) fn look(scene: &Scene<'_>) -> Looked {
    let mut looked = of(scene, &scene.importer, Part::Importer);
    let exporters = scene.exporters.iter().map(|party| match party.id == scene.importer.id {
        // It was looked at.
        true => Looked::default(),
        false => of(scene, party, Part::Exporter),
    });
    looked.extend(Looked::of_any(exporters));
    looked.findings.extend(leader(scene));
    looked
}

/// Whether a cluster takes part, its member runs and is connected.
fn of(scene: &Scene<'_>, party: &Party<'_>, part: Part) -> Looked {
    let Some(cluster) = party.cluster else { return at_the_leader(scene, party, part, &Gap::NotLooked) };
    let set = match cluster.member.sets.as_deref() {
        Err(gap) => return at_the_leader(scene, party, part, gap),
        Ok([]) => {
            let what = format!("{} belongs to no ClusterSet", party.id);
            return Looked::found(scene.broken(101, party, what));
        }
        Ok([set, ..]) => set,
    };
    let now = scene.picture.now;
    let away = cluster.member.away(party.id, part, now);
    if let Some(Wrong { code, what }) = away.or_else(|| link(set, party.id, now)) {
        return Looked::found(scene.broken(code, party, what));
    }
    Looked::well(format!("{} belongs to {}, link Connected{}", party.id, set.name_any(), since(set, now)))
}

/// What the Common Area says of a cluster that was not looked at itself.
fn at_the_leader(scene: &Scene<'_>, party: &Party<'_>, part: Part, gap: &Gap) -> Looked {
    let lease = scene.area.and_then(|(_, area)| area.lease(&name::member_lease(party.id)));
    let Some(lease) = lease else {
        return Looked::unknown(format!("ClusterSets of {}: {gap}", party.id));
    };
    if lease.has_left() {
        let what = format!("{} has left the ClusterSet, as the leader knows", party.id);
        return Looked::found(scene.broken(101, party, what));
    }
    match sign(lease, scene.picture.now) {
        Sign::Silent => {
            let what = format!(
                "freeport-member of {} is silent, as the leader knows: {}",
                party.id,
                renewed(lease, scene.picture.now)
            );
            Looked::found(scene.broken(part.silent(), party, what))
        }
        Sign::Alive | Sign::Ahead(_) => Looked::well(format!("{} renews its Lease at the leader", party.id)),
    }
}

/// Whether freeport-leader does not run: what is merged stays, and endpoints do not need it.
fn leader(scene: &Scene<'_>) -> Option<Finding> {
    let lease = scene.area.and_then(|(_, area)| area.lease(name::LEADER_LEASE));
    let silent = lease.filter(|lease| sign(lease, scene.picture.now) == Sign::Silent);
    let said = scene.importer.cluster.and_then(Cluster::set).and_then(ClusterSetView::ready);
    let is_said = |ready: &&AntreaCondition| ready.reason.as_deref() == Some(LEADER_SILENT);
    let what = match (silent, said.filter(is_said)) {
        (Some(lease), _) => format!("freeport-leader does not run: {}", renewed(lease, scene.picture.now)),
        // Only who cannot look at its Lease believes others.
        (None, Some(_)) if lease.is_none() => {
            format!("freeport-leader does not renew its Lease, as {} knows", scene.importer.id)
        }
        _ => return None,
    };
    let is_merged = scene.area.is_some_and(|(_, area)| matches!(&area.merged, Ok(Some(_))));
    let is_imported = scene.importer.cluster.is_some_and(|cluster| matches!(&cluster.import, Ok(Some(_))));
    let finding = scene.broken(110, &scene.importer, what);
    Some(if is_merged || is_imported { finding.degraded() } else { finding })
}
