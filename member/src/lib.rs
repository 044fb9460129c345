//! freeport-member: exports this cluster's Services to the set and realises what the set exports.
//!
//! | part | watches | writes |
//! |---|---|---|
//! | [`membership`] | ClusterSets, Secrets, ClusterClaims and its note, in its Namespace | `status` of ClusterSets, the note; starts and stops a [`link`]; leaves |
//! | [`run`] | | Lease `freeport-member` in its Namespace: that it lives, for who looks there |
//! | [`link`] | everything below, here and in the Common Area | Lease `freeport-member-<id>`, its announce |
//! | [`service::export`] | ServiceExports, Services, EndpointSlices, own records | own ResourceExports |
//! | [`service::import`] | ResourceImports, others' slice records, Leases, Namespaces, what it made | Service `antrea-mc-<name>`, EndpointSlices, ServiceImport |
//! | [`service::status`] | ServiceExports, own records, ResourceImports | `status` of ServiceExports |

mod feature;
mod identity;
pub mod link;
pub mod membership;
pub mod service;

use api::{label, lease::Settled};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{args::Common, boot::Env};
use kube::Api;
use presence::{
    lease::{Keeper, Presence},
    restore::RestoreDetector,
};
use service::export::EndpointIp;
use tokio::sync::watch;

/// freeport-member exports Services of its cluster to a ClusterSet and makes the Services of the set usable here. It
/// belongs to the ClusterSet in its own Namespace.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "freeport-member", version)]
pub struct Args {
    /// Flags both daemons share.
    #[command(flatten)]
    pub common: Common,
    /// What of a Service is exported: the addresses of its Pods, or, for gateways that route nothing else, its ClusterIP as
    /// the one endpoint.
    #[arg(long, env = "FREEPORT_ENDPOINT_IP", value_enum, default_value_t)]
    pub endpoint_ip: EndpointIp,
}

/// Takes part in the ClusterSet there is, until the daemon shall stop.
pub async fn run(args: Args, env: Env) {
    tokio::select! {
        () = membership::run(env.clone(), args.endpoint_ip) => {}
        () = show_life(&env) => {}
    }
}

/// Keeps a Lease in our own Namespace, whatever becomes of the leader: what a ClusterSet says was once true, and only this tells
/// whether it still is.
async fn show_life(env: &Env) {
    let leases = Api::<Lease>::namespaced(env.client.clone(), &env.namespace);
    loop {
        // It ends when the Lease was deleted or made older: then there is another one to keep.
        let detector = RestoreDetector::new(leases.clone(), label::MEMBER.to_owned());
        let (presence, _) = watch::channel(Presence::Unknown);
        let keeper = Keeper { detector, us: env.holder.clone(), pace: env.pace };
        keeper.keep(|| Settled::Yes, presence).await;
    }
}
