//! Step `set`: importer and exporters are members of the ClusterSet, their members run, and they are connected with the leader.

use api::{condition::AntreaCondition, lease::LeaseView, name};
use kube::ResourceExt;

use super::{
    Looked,
    scene::{Party, Scene},
};
use crate::{
    age,
    cluster::{Cluster, Gap},
    finding::Finding,
    sign::{Sign, sign},
    view::{ClusterSetView, PodView},
};

/// Reason of a ClusterSet's condition `Ready` while freeport-leader does not renew its Lease.
const LEADER_SILENT: &str = "LeaderSilent";

/// In which part a cluster is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Importer,
    Exporter,
}

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
    let set = match cluster.sets.as_deref() {
        Err(gap) => return at_the_leader(scene, party, part, gap),
        Ok([]) => {
            let what = format!("{} belongs to no ClusterSet", party.id);
            return Looked::found(scene.broken(101, party, what));
        }
        Ok([set, ..]) => set,
    };
    let away = image(scene, party, cluster).or_else(|| away(scene, party, cluster, part));
    if let Some(finding) = away.or_else(|| link(scene, party, set)) {
        return Looked::found(finding);
    }
    let since = set.ready().and_then(|ready| ready.last_transition_time.as_ref());
    let since = since.map_or_else(String::new, |since| {
        format!(" for {}", age::text(scene.picture.now.duration_since(since.0)))
    });
    Looked::well(format!("{} belongs to {}, link Connected{since}", party.id, set.name_any()))
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
                renewed(scene, lease)
            );
            Looked::found(scene.broken(silent(part), party, what))
        }
        Sign::Alive | Sign::Ahead(_) => Looked::well(format!("{} renews its Lease at the leader", party.id)),
    }
}

fn silent(part: Part) -> u16 {
    if part == Part::Exporter { 102 } else { 103 }
}

fn renewed(scene: &Scene<'_>, lease: &LeaseView) -> String {
    lease.renew_time().map_or_else(
        || "it never renewed its Lease".to_owned(),
        |at| format!("it renewed its Lease {} ago", age::text(scene.picture.now.duration_since(at))),
    )
}

/// Whether its image cannot be pulled, and no other Pod of it runs.
fn image(scene: &Scene<'_>, party: &Party<'_>, cluster: &Cluster) -> Option<Finding> {
    let status = cluster.deployment.as_ref().ok()?.as_ref()?.status.clone().unwrap_or_default();
    let pod = cluster.pods.iter().flatten().find(|pod| pod.lacks_image())?;
    let is_away = status.available_replicas.unwrap_or_default() == 0;
    let state = state(pod).filter(|_| is_away)?;
    Some(scene.broken(104, party, format!("freeport-member of {} does not run: {state}", party.id)))
}

/// Whether its member does not run.
fn away(scene: &Scene<'_>, party: &Party<'_>, cluster: &Cluster, part: Part) -> Option<Finding> {
    let deployment = cluster.deployment.as_ref().ok().and_then(Option::as_ref);
    let replicas = deployment.and_then(|deployment| deployment.spec.replicas);
    let lease = cluster.lease.as_ref().ok()?;
    let is_silent = lease.as_ref().is_none_or(|lease| sign(lease, scene.picture.now) == Sign::Silent);
    let renewed =
        lease.as_ref().map_or_else(|| "it never renewed its Lease".to_owned(), |lease| renewed(scene, lease));
    let why = match replicas {
        Some(0) => format!("its Deployment has 0 replicas; {renewed}"),
        _ if is_silent => match cluster.pods.iter().flatten().find_map(state) {
            Some(state) => format!("{renewed}; {state}"),
            None => renewed,
        },
        _ => return None,
    };
    Some(scene.broken(silent(part), party, format!("freeport-member of {} does not run: {why}", party.id)))
}

/// What a Pod waits for, or how it ended.
fn state(pod: &PodView) -> Option<String> {
    let (reason, message) = pod.state()?;
    let words: Vec<_> = [reason, message].into_iter().filter(|word| !word.is_empty()).collect();
    Some(format!("Pod {}: {}", pod.name_any(), words.join(": ")))
}

/// Whether its member is not connected with the leader.
fn link(scene: &Scene<'_>, party: &Party<'_>, set: &ClusterSetView) -> Option<Finding> {
    let Some(ready) = set.ready() else {
        let what = format!("freeport-member of {} has not looked at its ClusterSet yet", party.id);
        return Some(scene.broken(111, party, what));
    };
    if ready.status.as_deref() == Some("True") {
        return None;
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (reason, message) = (text(&ready.reason), text(&ready.message));
    let code = match reason.as_str() {
        "LeaderUnreachable" if message.contains("refused") => 106,
        "LeaderUnreachable" => 105,
        "TokenRefused" => 107,
        "CertificateUntrusted" | "CertificateExpired" => 108,
        "CRDMissing" => 109,
        _ => 111,
    };
    let since = ready.last_transition_time.as_ref();
    let since = since.map_or_else(String::new, |since| {
        format!(" for {}", age::text(scene.picture.now.duration_since(since.0)))
    });
    let what = format!("{} is not connected{since}: {reason}: {message}", party.id);
    Some(scene.broken(code, party, what))
}

/// Whether freeport-leader does not run: what is merged stays, and endpoints do not need it.
fn leader(scene: &Scene<'_>) -> Option<Finding> {
    let lease = scene.area.and_then(|(_, area)| area.lease(name::LEADER_LEASE));
    let silent = lease.filter(|lease| sign(lease, scene.picture.now) == Sign::Silent);
    let said = scene.importer.cluster.and_then(Cluster::set).and_then(ClusterSetView::ready);
    let is_said = |ready: &&AntreaCondition| ready.reason.as_deref() == Some(LEADER_SILENT);
    let what = match (silent, said.filter(is_said)) {
        (Some(lease), _) => format!("freeport-leader does not run: {}", renewed(scene, lease)),
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
