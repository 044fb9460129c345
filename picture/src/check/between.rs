//! What clusters of one set must not have in common, and how far their versions are apart.

use std::collections::{BTreeMap, BTreeSet};

use api::{label, ranges::Ranges};

use super::{
    causes::Item,
    cluster::Cluster,
    link::{self, id_key},
    scene::Scene,
};
use crate::gap::Seen;

pub(super) fn look(scene: &Scene<'_>) -> Vec<Item> {
    let members: Vec<_> = scene.clusters.iter().filter(|cluster| cluster.set().is_some()).collect();
    let mut items = ids(scene, &members);
    for cluster in scene.clusters {
        items.extend(cluster.areas.iter().flatten().flat_map(|area| link::members(scene, cluster, area)));
    }
    items.extend(versions(scene, &members));
    items.extend(ranges(scene, &members, (8, "Pods"), |cluster| &cluster.pod_ranges));
    items.extend(ranges(scene, &members, (9, "Services"), |cluster| &cluster.service_ranges));
    items
}

/// Each pair of different clusters of one set.
fn pairs<'c>(members: &[&'c Cluster]) -> Vec<(&'c Cluster, &'c Cluster)> {
    let mut pairs = Vec::new();
    for (at, one) in members.iter().enumerate() {
        let others = members[at + 1..].iter().filter(|other| other.set() == one.set());
        pairs.extend(others.map(|other| (*one, *other)));
    }
    pairs
}

/// IDs that two clusters have.
fn ids(scene: &Scene<'_>, members: &[&Cluster]) -> Vec<Item> {
    let has_id = |cluster: &Cluster| cluster.member.set().and_then(|set| set.cluster_id()).map(str::to_owned);
    let mut items = Vec::new();
    for (one, other) in pairs(members) {
        let (Some(id), Some(same)) = (has_id(one), has_id(other)) else { continue };
        if id != same {
            continue;
        }
        let what =
            format!("contexts {} and {} are of two clusters with the ID {id}", one.context, other.context);
        let key = id_key(&one.set().unwrap_or_default(), &id);
        items.push(Item::Shared { finding: scene.broken(7, other, what), key, is_source: true });
    }
    items
}

/// Addresses that two clusters have.
fn ranges(
    scene: &Scene<'_>,
    members: &[&Cluster],
    (code, of): (u16, &str),
    ranges: for<'c> fn(&'c Cluster) -> &'c Seen<Ranges>,
) -> Vec<Item> {
    let mut items = Vec::new();
    for (one, other) in pairs(members) {
        let (Ok(ones), Ok(others)) = (ranges(one), ranges(other)) else { continue };
        let both =
            ones.iter().find_map(|a| Some((a, others.iter().find(|b| a.contains(*b) || b.contains(a))?)));
        if let Some((a, b)) = both {
            let what = format!(
                "{of} of {} ({a}) and of {} ({b}) have the same addresses",
                one.title(),
                other.title()
            );
            let finding = scene.broken(code, other, what);
            // Only where ClusterIPs are exported others see these.
            items.push(Item::found(if code == 9 { finding.degraded() } else { finding }));
        }
    }
    let is_known = |cluster: &&&Cluster| matches!(ranges(cluster), Ok(ranges) if !ranges.is_empty());
    let known = members.iter().filter(is_known).count();
    if items.is_empty() && known > 1 {
        items.push(Item::Well(format!("{of} of {known} clusters have different addresses")));
    }
    for cluster in members {
        if let Err(gap) = ranges(cluster) {
            items.push(Item::Unknown(format!("addresses of {of} of {}: {gap}", cluster.title())));
        }
    }
    items
}

/// Versions of the daemons of each set.
fn versions(scene: &Scene<'_>, members: &[&Cluster]) -> Vec<Item> {
    let mut sets = BTreeMap::<String, BTreeSet<(String, String)>>::new();
    for cluster in members {
        let said = sets.entry(cluster.set().unwrap_or_default()).or_default();
        let own = cluster.member.lease.as_ref().ok().and_then(Option::as_ref);
        let own = own.and_then(|lease| Some((cluster.title().to_owned(), lease.version()?.to_owned())));
        said.extend(own.filter(|_| cluster.member.set().is_some()));
        for area in cluster.areas.iter().flatten() {
            let leader = area.leader().and_then(|lease| lease.version());
            said.extend(leader.map(|version| (label::LEADER.to_owned(), version.to_owned())));
            let known = area.members().filter_map(|(id, lease)| Some((id, lease.version()?.to_owned())));
            said.extend(known);
        }
    }
    sets.into_iter().filter_map(|(set, said)| judged(scene, members, &set, &said)).collect()
}

fn judged(
    scene: &Scene<'_>,
    members: &[&Cluster],
    set: &str,
    said: &BTreeSet<(String, String)>,
) -> Option<Item> {
    let versions: BTreeSet<_> = said.iter().map(|(_, version)| version.as_str()).collect();
    let releases: BTreeSet<_> = versions.iter().filter_map(|version| release(version)).collect();
    let (oldest, newest) = (releases.first()?, releases.last()?);
    let is_far = oldest.0 != newest.0 || newest.1 - oldest.1 > 1;
    let list: Vec<_> = said.iter().map(|(who, version)| format!("{who} {version}")).collect();
    let cluster = members.iter().find(|cluster| cluster.set().as_deref() == Some(set))?;
    Some(match (versions.len(), is_far) {
        (1, _) => Item::Well(format!("all daemons of {set} are of version {}", versions.first()?)),
        (_, false) => Item::Well(format!("versions in {set} are at most one apart: {}", list.join(", "))),
        (_, true) => {
            let what = format!("versions in {set} are more than one apart: {}", list.join(", "));
            Item::found(scene.broken(6, cluster, what).degraded())
        }
    })
}

/// Major and minor version.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
