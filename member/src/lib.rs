//! freeport-member: exports this cluster's Services to the set and realises what the set exports.
//!
//! | part | watches | writes |
//! |---|---|---|
//! | [`membership`] | ClusterSets, Secrets, ClusterClaims and its note, in its Namespace | `status` of ClusterSets, the note; starts and stops a [`link`]; leaves |
//! | [`link`] | everything below, here and in the Common Area | Lease `freeport-member-<id>`, its announce |
//! | [`service::export`] | ServiceExports, Services, EndpointSlices, own records | own ResourceExports |
//! | [`service::import`] | ResourceImports, others' slice records, Leases, Namespaces, what it made | Service `antrea-mc-<name>`, EndpointSlices, ServiceImport |
//! | [`service::status`] | ServiceExports, own records, ResourceImports | `status` of ServiceExports |

pub mod link;
pub mod membership;
pub mod presence;
pub mod service;

use kit::{args::Common, boot::Env};

/// freeport-member exports Services of its cluster to a ClusterSet and makes the Services of the set usable here. It
/// belongs to the ClusterSet in its own Namespace.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "freeport-member", version)]
pub struct Args {
    /// Flags both daemons share.
    #[command(flatten)]
    pub common: Common,
}

/// Takes part in the ClusterSet there is, until the daemon shall stop.
pub async fn run(env: Env) {
    membership::run(env).await;
}
