//! What offloading needs, where `--offload` asked for it: beside everything that a leader and a member have anyway.
//!
//! | module | objects |
//! |---|---|
//! | [`daemon`] | what the member may do for it |
//! | [`webhook`] | the webhook that places Pods |

pub mod daemon;
pub mod webhook;

use api::crd;

use super::{
    Object, crds, policy,
    rights::{ALL, OFFLOADING, READ, aggregated, rule},
};

pub use self::daemon::ROLE;

/// CRDs of the records, for a cluster that leads.
pub fn leader_crds() -> Vec<Object> {
    crds::labelled(crd::offload::leader())
}

/// CRDs of what users write, for a cluster that is a member.
pub fn member_crds() -> Vec<Object> {
    crds::labelled(crd::offload::member())
}

/// What a member's cluster needs, but for CRDs and what runs in it: rights of the member, the webhook and users, and policies.
pub fn member() -> Vec<Object> {
    let mut objects = daemon::rights();
    objects.extend(webhook::rights());
    objects.extend(users());
    objects.extend(policy());
    objects.extend(checks().into_iter().flatten());
    objects
}

/// Everything that a member's cluster needs, with the webhook inside.
pub fn all(image: &str) -> Vec<Object> {
    [member_crds(), member(), webhook::workload(image), vec![webhook::configuration(None)]].concat()
}

/// What keeps the member to its own Namespaces and Nodes: policy `freeport-offload` and its binding.
pub fn policy() -> [Object; 2] {
    policy::offload::objects()
}

/// What refuses NamespaceOffloadings that can only be a mistake, and warns of what one does not do: policies
/// `freeport-offload-content` and `freeport-offload-change`, each with its binding.
pub fn checks() -> [[Object; 2]; 2] {
    [policy::offload_content::objects(), policy::offload_change::objects()]
}

/// The administrator of a Namespace offloads it; who may view it sees how far that is. OffloadPeers are for those who may do
/// everything in the cluster.
fn users() -> [Object; 2] {
    let on_offloadings = |verbs| vec![rule(OFFLOADING, "namespaceoffloadings", verbs)];
    [
        aggregated("freeport-offload-admin", &["admin"], on_offloadings(ALL)),
        aggregated("freeport-offload-view", &["view"], on_offloadings(READ)),
    ]
}
