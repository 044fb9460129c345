//! freeport-member: exports Services of its cluster to a ClusterSet and imports those that others export.
//!
//! | part | watches | writes |
//! |---|---|---|
//! | [`membership`] | ClusterSets, Secrets, ClusterClaims and its note, in its Namespace | `status` of ClusterSets, the note; starts and stops a [`session`]; leaves |
//! | [`run`] | | Lease `freeport-member` in its Namespace: shows that the daemon lives |
//! | [`session`] | Leases and announces in the Common Area, CRDs of this cluster | Lease `freeport-member-<id>`, its announce |
//! | [`service`] | what Services need, in this cluster and in the Common Area | own ResourceExports, Services `antrea-mc-<name>`, EndpointSlices, ServiceImports, `status` of ServiceExports |
//!
//! Arrows: [`identity`] and [`feature`] are below [`session`] and the features; [`membership`] is above all. Only [`features`] names
//! the features: a new one is a line there.

mod feature;
mod identity;
mod membership;
mod service;
mod session;

use api::{label, lease::Settled};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{args::DaemonArgs, boot::Env};
use kube::Api;
use presence::{
    lease::{Keeper, Presence},
    restore::RestoreDetector,
};
use tokio::sync::watch;

use crate::{
    feature::{Feature, Features},
    service::{EndpointIp, Services},
};

/// freeport-member exports Services of its cluster to a ClusterSet and makes the Services of the set usable here. It
/// belongs to the ClusterSet in its own Namespace.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "freeport-member", version)]
pub struct Args {
    /// Flags both daemons share.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// What of a Service is exported: the addresses of its Pods, or, for gateways that route nothing else, its ClusterIP as
    /// the one endpoint.
    #[arg(long, env = "FREEPORT_ENDPOINT_IP", value_enum, default_value_t)]
    pub(crate) endpoint_ip: EndpointIp,
}

/// The features of the member: a line each.
fn features(args: &Args) -> Features {
    let table: Vec<Box<dyn Feature>> = vec![Box::new(Services::new(args.endpoint_ip))];
    table.into()
}

/// Belongs to the ClusterSet in the daemon's Namespace, until the daemon shall stop.
pub async fn run(args: Args, env: Env) {
    tokio::select! {
        () = membership::run(env.clone(), features(&args)) => {}
        () = show_life(&env) => {}
    }
}

/// Keeps a Lease in the daemon's Namespace, whether the leader answers or not. The status of a ClusterSet was true when it was
/// written; the Lease shows whether the daemon that wrote it still runs.
async fn show_life(env: &Env) {
    let leases = Api::<Lease>::namespaced(env.client.clone(), &env.namespace);
    loop {
        // It ends when somebody deleted the Lease or restored an older one: then a new one is kept.
        let detector = RestoreDetector::new(leases.clone(), label::MEMBER.to_owned());
        let (presence, _) = watch::channel(Presence::Unknown);
        let keeper = Keeper { detector, us: env.holder.clone(), pace: env.pace };
        keeper.keep(|| Settled::Yes, presence).await;
    }
}
