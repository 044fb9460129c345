//! The CustomResourceDefinitions that the daemons of a cluster need, and whose they are.

use std::collections::BTreeSet;

use api::{
    about::ClusterProperty,
    announce::MemberClusterAnnounce,
    cluster_claim::ClusterClaim,
    cluster_set::ClusterSet,
    label,
    mcs::{ServiceExport, ServiceImport},
    resource_export::ResourceExport,
    resource_import::ResourceImport,
    words::first_names,
};
use kube::{CustomResourceExt, ResourceExt};

use super::{causes::Item, cluster::Cluster, scene::Scene};

/// Names of all CRDs that are looked for.
pub fn names() -> BTreeSet<&'static str> {
    LEADER.into_iter().chain(MEMBER).map(|name| name()).collect()
}

/// Names of the CRDs that a leader's cluster needs.
const LEADER: [fn() -> &'static str; 5] = [
    ClusterSet::crd_name,
    ClusterClaim::crd_name,
    MemberClusterAnnounce::crd_name,
    ResourceExport::crd_name,
    ResourceImport::crd_name,
];

/// Names of the CRDs that a member's cluster needs.
const MEMBER: [fn() -> &'static str; 5] = [
    ClusterSet::crd_name,
    ClusterClaim::crd_name,
    ServiceExport::crd_name,
    ServiceImport::crd_name,
    ClusterProperty::crd_name,
];

pub(super) fn look(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    let there = match &cluster.crds {
        Ok(crds) => crds,
        Err(gap) => return vec![Item::Unknown(format!("CustomResourceDefinitions: {gap}"))],
    };
    let lacking = |needed: [fn() -> &'static str; 5]| -> Vec<&'static str> {
        let names = needed.into_iter().map(|name| name());
        names.filter(|name| there.iter().all(|crd| crd.name_any() != *name)).collect()
    };
    let leads = cluster.areas.as_ref().is_ok_and(|areas| !areas.is_empty());
    let of_leader = if leads { lacking(LEADER) } else { vec![] };
    let of_member = if has_member(cluster) { lacking(MEMBER) } else { vec![] };
    let what = |names: &[&str]| format!("{} has no CRD {}", cluster.title(), first_names(names));
    match (&of_leader[..], &of_member[..]) {
        ([], []) if !leads && !has_member(cluster) => vec![],
        ([], []) => vec![Item::Well(whose(cluster))],
        ([], lacking) => vec![Item::found(scene.broken(3, cluster, what(lacking)))],
        (lacking, _) => {
            let set = cluster.set().unwrap_or_default();
            let finding = scene.broken(109, cluster, what(lacking));
            vec![Item::Shared { finding, key: key(&set), is_source: true }]
        }
    }
}

/// What findings about CRDs of the leader have in common.
pub(super) fn key(set: &str) -> String {
    format!("CRDs of {set}")
}

/// Whether Freeport's member was installed here.
fn has_member(cluster: &Cluster) -> bool {
    let member = &cluster.member;
    let is_there = matches!(member.deployment, Ok(Some(_))) || matches!(member.lease, Ok(Some(_)));
    is_there || member.set().is_some()
}

fn whose(cluster: &Cluster) -> String {
    let all = cluster.crds.as_deref().unwrap_or_default();
    let is_ours = |labels: &std::collections::BTreeMap<String, String>| {
        labels.get(label::MANAGED_BY).is_some_and(|by| by == label::FREEPORT)
    };
    let others: Vec<_> = all.iter().filter(|crd| !is_ours(crd.labels())).map(|crd| crd.name_any()).collect();
    match others.is_empty() {
        true => format!("all {} are there", all.len()),
        false => format!("all {} are there; Freeport did not install {}", all.len(), first_names(others)),
    }
}

#[cfg(test)]
mod tests {
    use api::report::ClusterReport;

    use super::*;

    #[test]
    fn these_are_the_crds_that_are_installed() {
        let of = |names: [fn() -> &'static str; 5]| names.map(|name| name().to_owned()).to_vec();
        let mut leader: Vec<_> = api::crd::leader().iter().map(|crd| crd.name_any()).collect();
        // A leader without it lacks reports and nothing else.
        leader.retain(|name| name != ClusterReport::crd_name());
        assert_eq!(of(LEADER), leader);
        assert_eq!(of(MEMBER), api::crd::member().iter().map(|crd| crd.name_any()).collect::<Vec<_>>());
    }
}
