//! Rights of people who look at a ClusterSet with `freeport status`, `get`, `why` or `check` and may change nothing. Nobody is bound to them.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};

use super::{
    Object,
    rights::{
        ABOUT, ADMISSION, ANTREA, APPS, BIND, COORDINATION, CORE, DISCOVERY, EXTENSIONS, FREEPORT, MCS,
        NETWORKING, OFFLOADING, RBAC, READ, rule, rule_on, unbound,
    },
    within,
};

/// Name of the ClusterRole, and of the Role in each Common Area.
pub const NAME: &str = "freeport-observer";

/// Kinds that are read in a whole cluster, by group.
const IN_CLUSTER: [(&str, &[&str]); 14] = [
    (CORE, &["namespaces", "nodes", "pods", "services", "serviceaccounts", "events"]),
    (APPS, &["deployments", "replicasets"]),
    (DISCOVERY, &["endpointslices"]),
    (COORDINATION, &["leases"]),
    (NETWORKING, &["servicecidrs"]),
    (EXTENSIONS, &["customresourcedefinitions"]),
    (
        ADMISSION,
        &[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
        ],
    ),
    (RBAC, &["clusterroles", "clusterrolebindings"]),
    (MCS, &["serviceexports", "serviceimports"]),
    (ANTREA, &["clustersets", "clusterclaims"]),
    (ABOUT, &["clusterproperties"]),
    (OFFLOADING, &["namespaceoffloadings"]),
    (FREEPORT, &["offloadpeers"]),
    (
        BIND,
        &[
            "apiservicebindings",
            "clusterbindings",
            "boundschemas",
            "apiserviceexports",
            "apiserviceexportrequests",
            "apiservicenamespaces",
            "apiserviceexporttemplates",
            "collections",
        ],
    ),
];

/// Kinds that are read in a Common Area besides, by group: the records.
const IN_AREA: [(&str, &[&str]); 3] = [
    (ANTREA, &["resourceexports", "resourceimports", "memberclusterannounces"]),
    (OFFLOADING, &["namespacemaps"]),
    (FREEPORT, &["clusterreports", "offloadoffers", "shadowpods"]),
];

/// ConfigMaps that are read: what a member must remember, and the Corefile.
const CONFIG_MAPS: [&str; 2] = [api::membership::NAME, "coredns"];

/// The ClusterRole for whoever is bound to it: reading of all that Freeport writes and of what that is made of. No Secrets, no records.
pub fn in_cluster() -> Object {
    let config_maps = rule_on(CORE, "configmaps", &CONFIG_MAPS, &["get"]);
    unbound(NAME, read(&IN_CLUSTER).into_iter().chain([config_maps]).collect())
}

/// The Role in a Common Area, for whoever is bound to it: reading of the records, and of who writes them.
pub fn in_area(area: &str) -> Object {
    let members = [
        rule(ANTREA, "clustersets", READ),
        rule(ANTREA, "clusterclaims", READ),
        rule(COORDINATION, "leases", READ),
        rule(CORE, "serviceaccounts", READ),
    ];
    let rules = read(&IN_AREA).into_iter().chain(members).collect();
    Object::new(&Role { metadata: within(area, NAME), rules: Some(rules) })
}

fn read(kinds: &[(&str, &[&str])]) -> Vec<PolicyRule> {
    let of_group = |(group, kinds): &(&str, &[&str])| PolicyRule {
        resources: Some(kinds.iter().map(|&kind| kind.to_owned()).collect()),
        ..rule(group, "", READ)
    };
    kinds.iter().map(of_group).collect()
}
