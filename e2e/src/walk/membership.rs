//! What the tests of membership refuse: writes about a whole cluster or Common Area, and writes that Services and offloading share.

use super::Refused;
use crate::daemon::LEADER;

pub const MEMBER: &str = "freeport-member-west";

const HERE: (&str, &str) = (MEMBER, "west");
const AT_LEADER: (&str, &str) = (MEMBER, "leader");
const LEADS: (&str, &str) = (LEADER, "leader");

/// What daemons write while clusters are members.
pub const WHILE_MEMBER: &[Refused] = &[
    Refused::new(HERE, "ConfigMap", ("configmaps", "create"), "create"),
    Refused::new(HERE, "ConfigMap", ("configmaps", "update"), "patch"),
    Refused::new(HERE, "ClusterProperty", ("clusterproperties", "create"), "create"),
    Refused::new(HERE, "ClusterProperty", ("clusterproperties", "update"), "patch"),
    Refused::new(HERE, "ClusterSet", ("clustersetsstatus", "update"), "status"),
    Refused::new(AT_LEADER, "MemberClusterAnnounce", ("memberclusterannounces", "create"), "create"),
    Refused::new(AT_LEADER, "MemberClusterAnnounce", ("memberclusterannounces", "update"), "patch"),
    Refused::new(AT_LEADER, "ClusterReport", ("clusterreports", "create"), "create"),
    Refused::new(AT_LEADER, "ClusterReport", ("clusterreportsstatus", "update"), "status"),
    Refused::new(LEADS, "ClusterSet", ("clustersetsstatus", "update"), "status"),
    Refused::new(LEADS, "ResourceExport", ("resourceexportsstatus", "update"), "status"),
    Refused::new(LEADS, "PriorityLevelConfiguration", ("prioritylevelconfigurations", "update"), "patch"),
];

/// What a member deletes when it leaves.
pub const LEAVING: &[Refused] = &[
    Refused::new(AT_LEADER, "ResourceExport", ("resourceexports", "delete"), "delete"),
    Refused::new(AT_LEADER, "MemberClusterAnnounce", ("memberclusterannounces", "delete"), "delete"),
    Refused::new(AT_LEADER, "ClusterReport", ("clusterreports", "delete"), "delete"),
    Refused::new(AT_LEADER, "Lease", ("leases", "delete"), "delete"),
    Refused::new(HERE, "ClusterProperty", ("clusterproperties", "delete"), "delete"),
    Refused::new(HERE, "ConfigMap", ("configmaps", "delete"), "delete"),
];
