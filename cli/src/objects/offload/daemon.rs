//! What the member may do for offloading, beyond what it may do anyway. Policy `freeport-offload` narrows it: RBAC knows neither
//! names that are still to come nor labels.

use api::offload::twin::{ACCOUNT as ACCOUNT_OF_PODS, BINDING, POD_ROLE};

use super::super::{
    Object, SYSTEM,
    member::ACCOUNT,
    rights::{
        ADMISSION, COORDINATION, CORE, EXTENSIONS, FREEPORT, OFFLOADING, OWN, RBAC, READ, everywhere_as,
        inside_as, rule, rule_on, unbound,
    },
};
use super::webhook;

/// Name of the member's Roles and ClusterRole for offloading.
pub const ROLE: &str = "freeport-member-offload";

/// Secret with the member's private key: Pods for it are sealed with the public one.
pub const KEY: &str = "freeport-offload-key";

/// CRDs that the member reads before it acts on the absence of their objects.
const CRDS: [&str; 2] = ["namespaceoffloadings.offloading.liqo.io", "offloadpeers.multicluster.freeport.dev"];

/// Where Kubernetes keeps the Leases of Nodes. It makes that Namespace itself.
const NODE_LEASES: &str = "kube-node-lease";

/// Rights of the member's ServiceAccount.
pub(super) fn rights() -> Vec<Object> {
    let cluster = vec![
        // Twins of other clusters' Namespaces; on others one label.
        rule(CORE, "namespaces", &["create", "patch", "delete"]),
        // A twin takes Pods when its ServiceAccount is there.
        rule_on(CORE, "serviceaccounts", &[ACCOUNT_OF_PODS], &["list", "watch"]),
        // In twins it makes Pods, and lets itself do so.
        rule(RBAC, "rolebindings", &["create"]),
        rule_on(RBAC, "rolebindings", &[BINDING], &["get", "list", "watch", "patch"]),
        rule_on(RBAC, "clusterroles", &[POD_ROLE], &["bind"]),
        // Those on virtual nodes end when they have ended there, and are as they are there.
        rule(CORE, "pods", &["get", "list", "watch", "delete"]),
        rule(CORE, "pods/status", &["patch"]),
        rule(CORE, "nodes", OWN),
        rule(CORE, "nodes/status", &["patch"]),
        // Users write them. The member sets a finalizer, and makes and deletes those that a label asks for.
        rule(OFFLOADING, "namespaceoffloadings", OWN),
        rule(OFFLOADING, "namespaceoffloadings/status", &["patch"]),
        rule(FREEPORT, "offloadpeers", READ),
        rule(FREEPORT, "offloadpeers/status", &["patch"]),
        rule_on(EXTENSIONS, "customresourcedefinitions", &CRDS, READ),
        // For the authorities that sign the webhook's certificates, and to put it back where somebody deleted or narrowed it. A create
        // by this name alone is a server-side apply.
        rule_on(
            ADMISSION,
            "mutatingwebhookconfigurations",
            &[webhook::NAME],
            &["get", "list", "watch", "create", "patch"],
        ),
    ];
    let own = vec![
        rule(CORE, "secrets", &["create"]),
        rule_on(CORE, "secrets", &[webhook::SECRET, KEY], &["patch"]),
    ];
    let of_twins = unbound(POD_ROLE, vec![rule(CORE, "pods", &["create", "patch", "delete"])]);
    [
        vec![of_twins],
        everywhere_as(ROLE, &ACCOUNT, cluster).into(),
        inside_as(ROLE, SYSTEM, &ACCOUNT, own).into(),
        // They go with their Nodes.
        inside_as(ROLE, NODE_LEASES, &ACCOUNT, vec![rule(COORDINATION, "leases", &["create", "patch"])])
            .into(),
    ]
    .concat()
}
