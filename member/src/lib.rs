//! freeport-member: exports Services of its cluster to a ClusterSet and imports those that others export.
//!
//! | part | watches | writes |
//! |---|---|---|
//! | [`membership`] | ClusterSets, Secrets, ClusterClaims and its note, in its Namespace; ClusterProperties | `status` of ClusterSets, the note, ClusterProperties; starts and stops a [`session`]; leaves |
//! | [`home`] | | Lease `freeport-member` in its Namespace: shows that the daemon lives, and that the cluster was not restored |
//! | [`session`] | Leases and announces in the Common Area, CRDs of this cluster | Lease `freeport-member-<id>`, its announce; the Secret with its credential |
//! | [`bind`] | APIServiceBindings, CRDs, Secrets and Namespaces of this cluster, what providers have in the cluster namespaces, objects of bound APIs at both | CRDs, status of bindings and of bound objects here; copies, heartbeats and APIServiceNamespaces at providers |
//! | [`offload`] | OffloadPeers, NamespaceOffloadings, Namespaces and virtual nodes with their Pods; NamespaceMaps, OffloadOffers and ShadowPods in the Common Area | own OffloadOffers and ShadowPods, keys of own NamespaceMaps, status of maps for us; status of Pods of virtual nodes, twins, virtual nodes and their Leases, `status` of OffloadPeers and NamespaceOffloadings |
//! | [`service`] | what Services need, in this cluster and in the Common Area | own ResourceExports and ClusterReport, Services `antrea-mc-<name>`, EndpointSlices (and Endpoints), ServiceImports, `status` of ServiceExports |
//!
//! Arrows: [`home`], [`identity`], [`ranges`] and [`feature`] are below [`session`] and the features; [`membership`] is above all. Only [`features`] names
//! the features: a new one is a line there.

mod bind;
mod chance;
mod feature;
mod home;
mod identity;
mod membership;
mod offload;
mod ranges;
mod service;
mod session;

use std::time::Duration;

use api::{
    report::BINDING,
    unwritten::{OFFLOADING, SERVICES},
};
use kit::{args::DaemonArgs, boot::Env, drive::before};
use tokio::sync::watch;

use crate::{
    feature::{Feature, Features},
    home::Home,
    offload::{Answer, Lifetimes, Offloading},
    service::{Choices, EndpointIp, Probe, Services},
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
    /// How many Services of the set are imported here at the most: each takes a ClusterIP. Those that are here stay; of new ones
    /// the oldest come first.
    #[arg(long, env = "FREEPORT_MAX_IMPORTS", default_value_t = 4000)]
    pub(crate) max_imports: usize,
    /// Whether to connect, now and then, to a few endpoints of each other cluster of which Services are imported here. Where none answers any
    /// more, the cluster's endpoints get no traffic from here as long as other clusters serve the same.
    #[arg(long, env = "FREEPORT_PROBE", value_enum, default_value_t)]
    pub(crate) probe: Probe,
    /// Seconds for which the ClusterIP of an import that has ended is kept for it: an import that comes back within this time asks for it, and gets it
    /// unless another Service has it by then.
    #[arg(long, env = "FREEPORT_KEEP_ADDRESS_SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(..=86400))]
    pub(crate) keep_address_seconds: u32,
    /// Seconds for which a token for the leader is asked to count; the leader's API server may grant less. It is replaced when half of that is
    /// over. After a longer time without the leader the member has to be given another one (`freeport rejoin`).
    #[arg(long, env = "FREEPORT_TOKEN_SECONDS", default_value_t = 24 * 3600, value_parser = clap::value_parser!(u32).range(600..))]
    pub(crate) token_seconds: u32,
    /// Beside the EndpointSlices of an import, write an object of the older kind Endpoints, for data planes that read nothing else.
    #[arg(long, env = "FREEPORT_ENDPOINTS_OBJECTS")]
    pub(crate) endpoints_objects: bool,
    /// Give Namespaces twins in other clusters, and those of other clusters twins here, as NamespaceOffloadings and OffloadPeers say.
    #[arg(long, env = "FREEPORT_OFFLOAD")]
    pub(crate) offload: bool,
    /// Install APIs of other clusters here, as APIServiceBindings say, and keep their objects in step with their providers.
    #[arg(long, env = "FREEPORT_BIND")]
    pub(crate) bind: bool,
    /// Seconds for which an authority that signs the certificates of freeport-webhook counts. It is replaced when two thirds are over.
    #[arg(long, env = "FREEPORT_WEBHOOK_CA_SECONDS", default_value_t = 365 * 24 * 3600, value_parser = clap::value_parser!(u32).range(10..))]
    pub(crate) webhook_ca_seconds: u32,
    /// Seconds for which a certificate of freeport-webhook counts, at most as long as its authority. It is replaced when two thirds
    /// are over.
    #[arg(long, env = "FREEPORT_WEBHOOK_CERTIFICATE_SECONDS", default_value_t = 30 * 24 * 3600, value_parser = clap::value_parser!(u32).range(10..))]
    pub(crate) webhook_certificate_seconds: u32,
}

/// The features of the member: a line each.
fn features(args: &Args, webhook: &watch::Receiver<Answer>) -> Features {
    let choices = Choices {
        endpoint_ip: args.endpoint_ip,
        endpoints_objects: args.endpoints_objects,
        max_imports: args.max_imports,
        probe: args.probe,
        keep_address: Duration::from_secs(args.keep_address_seconds.into()),
    };
    let names = [(SERVICES, true), (OFFLOADING, args.offload), (BINDING, args.bind)];
    let names = names.into_iter().filter_map(|(name, is_on)| is_on.then_some(name)).collect();
    let services: Box<dyn Feature> = Box::new(Services::new(choices, names));
    let offloading = Offloading { webhook: webhook.clone() };
    let offloading = args.offload.then(|| Box::new(offloading) as Box<dyn Feature>);
    [services].into_iter().chain(offloading).collect()
}

/// How long the certificates of the webhook count.
fn lifetimes(args: &Args) -> Lifetimes {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    Lifetimes { authority: seconds(args.webhook_ca_seconds), leaf: seconds(args.webhook_certificate_seconds) }
}

/// Belongs to the ClusterSet in the daemon's Namespace, works for APIServiceBindings and, with offloading, keeps the certificate of the
/// webhook, until the daemon shall stop; from the beginning again whenever this cluster was restored from a backup.
pub async fn run(args: Args, env: Env) {
    let (answers, webhook) = watch::channel(Answer::default());
    let mut home = Home::begin(&env, None).await;
    loop {
        let parts = async {
            if env.hold.is_active() {
                home.known().await;
            }
            let token_life = Duration::from_secs(args.token_seconds.into());
            let membership =
                membership::run(env.clone(), features(&args, &webhook), home.clone(), token_life);
            let bind = async {
                if args.bind {
                    bind::run(&env, &home, &env.stop).await;
                }
            };
            let certificate = async {
                if args.offload && before(&env.stop, env.hold.active()).await {
                    Box::pin(offload::keep_certificate(&env, home.guard(), lifetimes(&args), &answers)).await;
                }
            };
            tokio::join!(membership, bind, certificate);
        };
        tokio::select! {
            () = parts => return,
            () = home.keep(&env) => {}
        }
        home.tell_restored(&env);
        home = Home::begin(&env, Some(&home)).await;
    }
}
