//! Whether the daemons of a cluster run.

use api::{cluster_set::WRITES_ACCEPTED, label};
use kube::ResourceExt;

use super::{
    causes::Item,
    cluster::{Area, Cluster},
    scene::Scene,
};
use crate::{
    age,
    member::{Part, renewed, state},
    said::words,
    sign::{Sign, sign},
    view::{ClusterSetView, PodView},
};

/// A daemon that restarted so often, and within the last hour, may do so again and again.
const OFTEN: i32 = 3;
const RECENT: i64 = 3600;

pub(super) fn look(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    let mut items = Vec::new();
    if cluster.member.set().is_some() {
        items.push(member(scene, cluster));
    }
    let areas = cluster.areas.as_deref().unwrap_or_default();
    if let Err(gap) = &cluster.areas {
        items.push(Item::Unknown(format!("whether freeport-leader runs: {gap}")));
    }
    for area in areas {
        items.push(leader(scene, cluster, area));
        items.extend(area.sets.iter().flatten().filter_map(|set| refused(scene, cluster, set)));
    }
    items.extend(restarts(scene, cluster));
    items
}

fn member(scene: &Scene<'_>, cluster: &Cluster) -> Item {
    let exports = cluster.exports.as_ref().is_ok_and(|exports| !exports.is_empty());
    let part = if exports { Part::Exporter } else { Part::Importer };
    if let Some(wrong) = cluster.member.away(cluster.title(), part, scene.now) {
        return Item::found(scene.broken(wrong.code, cluster, wrong.what));
    }
    match &cluster.member.lease {
        Ok(Some(lease)) => Item::Well(runs(label::MEMBER, lease.version())),
        Ok(None) => Item::Well(runs(label::MEMBER, None)),
        Err(gap) => Item::Unknown(format!("Lease of freeport-member: {gap}")),
    }
}

fn runs(daemon: &str, version: Option<&str>) -> String {
    version.map_or_else(|| format!("{daemon} runs"), |version| format!("{daemon} {version} runs"))
}

/// What findings about freeport-leader have in common.
pub(super) fn key(set: &str) -> String {
    format!("leader of {set}")
}

fn leader(scene: &Scene<'_>, cluster: &Cluster, area: &Area) -> Item {
    if let Err(gap) = &area.leases {
        return Item::Unknown(format!("Leases in {}: {gap}", area.namespace));
    }
    let deployment = cluster.leader.as_ref().ok().and_then(Option::as_ref);
    let is_off = deployment.and_then(|deployment| deployment.spec.replicas) == Some(0);
    let lease = area.leader();
    let is_silent = lease.is_none_or(|lease| sign(lease, scene.now) == Sign::Silent);
    if !is_off && !is_silent {
        return Item::Well(runs(label::LEADER, lease.and_then(|lease| lease.version())));
    }
    let renewed =
        lease.map_or_else(|| "it never renewed its Lease".to_owned(), |lease| renewed(lease, scene.now));
    let why = match cluster.leader_pods.iter().flatten().find_map(state) {
        _ if is_off => format!("its Deployment has 0 replicas; {renewed}"),
        Some(state) => format!("{renewed}; {state}"),
        None => renewed,
    };
    let finding = scene.broken(110, cluster, format!("freeport-leader does not run: {why}"));
    let finding = finding.with("leader", &cluster.context);
    Item::Shared { finding, key: key(&area.set().unwrap_or_default()), is_source: true }
}

/// Daemons that restart again and again.
fn restarts(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    let pods = cluster.member.pods.iter().chain(&cluster.leader_pods).flatten();
    let often = |pod: &PodView| {
        let (times, last) = pod.restarts()?;
        let ended = last.as_ref().and_then(|last| last.finished_at.as_ref());
        let since = scene.now.duration_since(ended?.0);
        let reason =
            last.as_ref().and_then(|last| last.reason.clone()).unwrap_or_else(|| "it ended".to_owned());
        let is_often = times >= OFTEN && since.as_secs() < RECENT;
        is_often.then(|| {
            format!("Pod {} restarted {times} times, last {} ago: {reason}", pod.name_any(), age::text(since))
        })
    };
    pods.filter_map(often).map(|what| Item::found(scene.broken(4, cluster, what).degraded())).collect()
}

/// Reports writes that an API server refuses to a daemon, as a ClusterSet says.
pub(super) fn refused(scene: &Scene<'_>, cluster: &Cluster, set: &ClusterSetView) -> Option<Item> {
    let said = set.condition(WRITES_ACCEPTED).filter(|said| said.status.as_deref() == Some("False"))?;
    Some(Item::found(scene.broken(10, cluster, format!("{}: {}", cluster.title(), words(said)))))
}
