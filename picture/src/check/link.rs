//! Membership, and the connection with the leader; and of members that were not looked at themselves, what the leader knows.

use api::{
    cluster_set::{CREDENTIAL_RENEWED, EXPORTS_DECLARED, IMPORTS_COMPLETE},
    condition::AntreaCondition,
    lease::LeaseView,
};
use kube::ResourceExt;

use super::{
    causes::Item,
    cluster::{Area, Cluster},
    crds, daemons,
    scene::Scene,
};
use crate::{
    finding::Finding,
    member::{LEADER_SILENT, Part, Wrong, link, renewed, since},
    said::words,
    sign::{Sign, sign},
    view::ClusterSetView,
};

/// Reason of a ClusterSet's condition `Ready` where another cluster has the same ID.
const DUPLICATE_ID: &str = "DuplicateClusterID";

pub(super) fn look(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    let areas = cluster.areas.as_deref().unwrap_or_default();
    match cluster.member.sets.as_deref() {
        Err(gap) => vec![Item::Unknown(format!("ClusterSets: {gap}"))],
        Ok([]) => match (&cluster.areas, areas.iter().find_map(Area::set)) {
            (_, Some(set)) => vec![Item::Well(format!("leads {set} and is no member"))],
            // It may lead.
            (Err(gap), None) => vec![Item::Unknown(format!("Common Areas: {gap}"))],
            (Ok(_), None) if !areas.is_empty() => {
                vec![Item::Unknown("it leads a ClusterSet whose name is not known".into())]
            }
            (Ok(_), None) => {
                let what = format!("{} belongs to no ClusterSet", cluster.title());
                vec![Item::found(scene.broken(101, cluster, what).with("id", cluster.title()))]
            }
        },
        Ok([set, ..]) => of_set(scene, cluster, set),
    }
}

/// The connection of a member.
fn of_set(scene: &Scene<'_>, cluster: &Cluster, set: &ClusterSetView) -> Vec<Item> {
    let (id, name) = (cluster.title(), set.name_any());
    let is_duplicate = set.ready().is_some_and(|ready| ready.reason.as_deref() == Some(DUPLICATE_ID));
    if is_duplicate {
        return limited(scene, cluster, set);
    }
    if let Some(wrong) = link(set, id, scene.now) {
        return vec![broken(scene, cluster, &name, wrong)];
    }
    let mut items = limited(scene, cluster, set);
    if items.is_empty() {
        items.push(Item::Well(format!("belongs to {name}, link Connected{}", since(set, scene.now))));
    }
    items.extend(incomplete(scene, cluster, set));
    items
}

/// A member that is not connected, be it for what the leader's cluster lacks.
fn broken(scene: &Scene<'_>, cluster: &Cluster, set: &str, Wrong { code, what }: Wrong) -> Item {
    let is_led = scene.leader(set).is_some();
    let shared =
        |key| Item::Shared { finding: scene.broken(code, cluster, what.clone()), key, is_source: false };
    match (code, scene.unreached()) {
        (105 | 106, Some(context)) if !is_led => Item::Follows(format!("FP001 of {context}: {what}")),
        (105 | 106, _) => shared(format!("address of the leader of {set}")),
        (109, _) => shared(crds::key(set)),
        _ => Item::found(scene.broken(code, cluster, what)),
    }
}

/// What a member says that is connected.
fn limited(scene: &Scene<'_>, cluster: &Cluster, set: &ClusterSetView) -> Vec<Item> {
    let Some(ready) = set.ready() else { return vec![] };
    let what = format!("{}: {}", cluster.title(), words(ready));
    match ready.reason.as_deref().unwrap_or_default() {
        LEADER_SILENT => {
            let (finding, key) = (scene.broken(110, cluster, what), daemons::key(&set.name_any()));
            vec![Item::Shared { finding, key, is_source: false }]
        }
        DUPLICATE_ID => {
            let (finding, key) = (scene.broken(7, cluster, what), id_key(&set.name_any(), cluster.title()));
            vec![Item::Shared { finding, key, is_source: false }]
        }
        "ClockSkew" => vec![Item::found(scene.broken(5, cluster, what).degraded())],
        "WireVersionDiffers" => vec![Item::found(scene.broken(6, cluster, what))],
        "CRDOutdated" => vec![Item::found(scene.broken(11, cluster, what).degraded())],
        _ => vec![],
    }
}

/// What findings about an ID that two clusters have are about.
pub(super) fn id_key(set: &str, id: &str) -> String {
    format!("ID {id} in {set}")
}

/// Other conditions of a ClusterSet that are not True. `imports` looks at missing Namespaces and imports that are not ready.
fn incomplete(scene: &Scene<'_>, cluster: &Cluster, set: &ClusterSetView) -> Vec<Item> {
    let conditions = [IMPORTS_COMPLETE, EXPORTS_DECLARED, CREDENTIAL_RENEWED].into_iter();
    let untrue = conditions.filter_map(|type_| set.condition(type_)).filter(|said| is_untrue(said));
    let others = untrue.filter(|said| !OF_IMPORTS.contains(&said.reason.as_deref().unwrap_or_default()));
    let what = |said| format!("{}: {}", cluster.title(), words(said));
    others.map(|said| Item::found(scene.broken(11, cluster, what(said)).degraded())).collect()
}

/// Reason for which condition `ImportsComplete` is not True where Namespaces are missing.
pub(super) const NAMESPACE_MISSING: &str = "NamespaceMissing";
const OF_IMPORTS: [&str; 2] = [NAMESPACE_MISSING, "ImportsNotReady"];

fn is_untrue(condition: &AntreaCondition) -> bool {
    condition.status.as_deref() != Some("True")
}

/// Members that were not looked at themselves, as the leader knows.
pub(super) fn members(scene: &Scene<'_>, cluster: &Cluster, area: &Area) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut alive, mut others) = (0, 0);
    for (id, lease) in area.members().filter(|(id, _)| !scene.is_looked_at(id)) {
        others += 1;
        match silent(scene, cluster, &id, lease) {
            Some(item) => items.push(item),
            None => alive += 1,
        }
    }
    if others > 0 {
        items.push(Item::Well(format!(
            "members that were not looked at, and renew their Leases: {alive} of {others}"
        )));
    }
    items
}

fn silent(scene: &Scene<'_>, cluster: &Cluster, id: &str, lease: &LeaseView) -> Option<Item> {
    if sign(lease, scene.now) != Sign::Silent {
        return None;
    }
    let what = format!(
        "freeport-member of {id} is silent, as {} knows: {}",
        cluster.title(),
        renewed(lease, scene.now)
    );
    // Nobody knows the context of that cluster.
    Some(Item::found(Finding::broken(Part::Importer.silent(), what).with("id", id)))
}
