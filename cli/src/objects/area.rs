//! A Common Area: the Namespace in the leader's cluster with the records of one ClusterSet.

use api::{
    cluster_set::{ClusterSet, ClusterSetSpec, LeaderCluster},
    label,
};
use k8s_openapi::api::core::v1::Namespace;

use super::{
    Object, fairness,
    leader::ACCOUNT,
    named, observer,
    rights::{ANTREA, COORDINATION, CORE, FREEPORT, KEEP, OFFLOADING, OWN, READ, inside, report, rule},
    within,
};

/// Prefix of the Namespace's name.
pub const PREFIX: &str = "clusterset-";

/// Verbs of who deletes what others have left behind.
const SWEEP: &[&str] = &["get", "list", "delete"];

/// Name of the Common Area of ClusterSet `set`.
pub fn name(set: &str) -> String {
    format!("{PREFIX}{set}")
}

/// Namespace, the leader's Role in it, that of people who only look, the flow of its members' requests, and the leader's ClusterSet, which names the leader itself as leader.
pub fn objects(set: &str, leader_id: &str) -> Vec<Object> {
    let area = name(set);
    let mut namespace = Namespace { metadata: named(&area), ..Namespace::default() };
    namespace.metadata.labels.get_or_insert_default().insert(label::COMMON_AREA.into(), label::TRUE.into());

    let rights = vec![
        // Patch: to remove finalizers of Antrea's members, and to withdraw in the place of a member that is silent for too long.
        rule(ANTREA, "resourceexports", &["get", "list", "watch", "patch", "delete"]),
        rule(ANTREA, "resourceexports/status", &["patch"]),
        rule(ANTREA, "resourceimports", OWN),
        rule(ANTREA, "memberclusterannounces", &["get", "list", "watch", "patch"]),
        rule(ANTREA, "clustersets", READ),
        rule(ANTREA, "clusterclaims", READ),
        rule(ANTREA, "clustersets/status", &["patch"]),
        // What clusters leave behind. Without their CRDs these rights are of nothing.
        rule(OFFLOADING, "namespacemaps", SWEEP),
        rule(FREEPORT, "offloadoffers", SWEEP),
        rule(FREEPORT, "shadowpods", SWEEP),
        rule(FREEPORT, "clusterreports", SWEEP),
        rule(COORDINATION, "leases", KEEP),
        // An annotation of their ServiceAccounts says which members run Antrea's controllers.
        rule(CORE, "serviceaccounts", READ),
        report(),
    ];

    let cluster_set = ClusterSet {
        metadata: within(&area, set),
        spec: ClusterSetSpec {
            cluster_id: leader_id.into(),
            leaders: vec![LeaderCluster { cluster_id: Some(leader_id.into()), ..LeaderCluster::default() }],
            namespace: None,
        },
        status: None,
    };

    let mut objects = vec![Object::new(&namespace)];
    objects.extend(inside(&area, &ACCOUNT, rights));
    objects.push(observer::in_area(&area));
    objects.push(fairness::flow(&area));
    objects.push(Object::new(&cluster_set));
    objects
}
