//! What the tests of offloading refuse.

use super::Refused;

pub const HOME: &str = "freeport-member-west";
pub const HOST: &str = "freeport-member-east";

const AT_HOST: (&str, &str) = (HOST, "east");
const AT_HOME: (&str, &str) = (HOME, "west");
const OF_HOST: (&str, &str) = (HOST, "leader");
const OF_HOME: (&str, &str) = (HOME, "leader");

/// All tables.
pub const ALL: [&[Refused]; 5] = [OF_NAMESPACES, CREATES, UPDATES, DELETES, LEAVING];

/// What is written for each Namespace. Namespaces of `west` are called `no-<cluster>-<resource>-<operation>`, and a policy in that cluster
/// refuses this operation on this resource where the object, or its Namespace, is called so.
pub const OF_NAMESPACES: &[Refused] = &[
    Refused::new(AT_HOST, "Namespace", ("namespaces", "create"), "create"),
    Refused::new(AT_HOST, "Namespace", ("namespaces", "update"), "patch"),
    Refused::new(AT_HOST, "Namespace", ("namespaces", "delete"), "delete"),
    Refused::new(AT_HOST, "RoleBinding", ("rolebindings", "create"), "create"),
    Refused::new(AT_HOST, "RoleBinding", ("rolebindings", "update"), "patch"),
    Refused::new(AT_HOST, "Pod", ("pods", "create"), "create"),
    Refused::new(AT_HOST, "Pod", ("pods", "update"), "patch"),
    Refused::new(AT_HOST, "Pod", ("pods", "delete"), "delete"),
    Refused::new(OF_HOST, "ShadowPod", ("shadowpodsstatus", "update"), "status"),
    Refused::new(OF_HOME, "ShadowPod", ("shadowpods", "create"), "create"),
    Refused::new(OF_HOME, "ShadowPod", ("shadowpods", "update"), "patch"),
    Refused::new(OF_HOME, "ShadowPod", ("shadowpods", "delete"), "delete"),
    Refused::new(AT_HOME, "Pod", ("podsstatus", "update"), "status"),
    Refused::new(AT_HOME, "Pod", ("pods", "delete"), "delete"),
    Refused::new(AT_HOME, "Namespace", ("namespaces", "update"), "patch"),
    Refused::new(AT_HOME, "NamespaceOffloading", ("namespaceoffloadings", "create"), "create"),
    Refused::new(AT_HOME, "NamespaceOffloading", ("namespaceoffloadings", "update"), "finalizers"),
    Refused::new(AT_HOME, "NamespaceOffloading", ("namespaceoffloadings", "delete"), "delete"),
    Refused::new(AT_HOME, "NamespaceOffloading", ("namespaceoffloadingsstatus", "update"), "status"),
];

/// What is created once for each other cluster.
pub const CREATES: &[Refused] = &[
    Refused::new(OF_HOST, "OffloadOffer", ("offloadoffers", "create"), "create"),
    Refused::new(AT_HOST, "Secret", ("secrets", "create"), "create"),
    Refused::new(AT_HOME, "Node", ("nodes", "create"), "create"),
    Refused::new(AT_HOME, "Lease", ("leases", "create"), "apply"),
    Refused::new(OF_HOME, "NamespaceMap", ("namespacemaps", "create"), "create"),
];

/// What is changed once for each other cluster.
pub const UPDATES: &[Refused] = &[
    Refused::new(OF_HOST, "OffloadOffer", ("offloadoffers", "update"), "patch"),
    Refused::new(OF_HOST, "NamespaceMap", ("namespacemapsstatus", "update"), "status"),
    Refused::new(AT_HOST, "OffloadPeer", ("offloadpeersstatus", "update"), "status"),
    Refused::new(OF_HOME, "NamespaceMap", ("namespacemaps", "update"), "patch"),
    Refused::new(AT_HOME, "Node", ("nodes", "update"), "patch"),
    Refused::new(AT_HOME, "Node", ("nodesstatus", "update"), "status"),
    Refused::new(AT_HOME, "Lease", ("leases", "update"), "apply"),
];

/// What is deleted once for each other cluster.
pub const DELETES: &[Refused] = &[
    Refused::new(OF_HOST, "OffloadOffer", ("offloadoffers", "delete"), "delete"),
    Refused::new(AT_HOME, "Node", ("nodes", "delete"), "delete"),
];

/// What is deleted when the home leaves the ClusterSet.
pub const LEAVING: &[Refused] = &[
    Refused::new(OF_HOME, "OffloadOffer", ("offloadoffers", "delete"), "delete"),
    Refused::new(OF_HOME, "NamespaceMap", ("namespacemaps", "delete"), "delete"),
    Refused::new(AT_HOME, "Node", ("nodes", "delete"), "delete"),
];
