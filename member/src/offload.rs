//! Offloading: Namespaces of this cluster get twins in others, whose Nodes are virtual here; Namespaces of others get twins here.
//!
//! | module | holds |
//! |---|---|
//! | [`view`], [`index`] | what is known of each other cluster and of each Namespace; depends on nothing below |
//! | [`knowledge`] | the index, and the queues of the controllers |
//! | [`pace`] | how often homes are answered that may bring nothing here |
//! | [`room`] | how much is kept of what others ask for: pure |
//! | [`selection`] | which clusters a NamespaceOffloading selects: pure |
//! | [`refused`] | Pods that are refused at virtual nodes |
//! | [`withdrawn`] | whether what is gone was taken back |
//! | [`writes`] | writes that API servers refuse, by whom they are about |
//! | [`peer`], [`node`], [`namespace`], [`own_map`], [`map`], [`status`], [`pod`], [`shadow`] | the controllers |
//! | [`watches`] | how it is learned |
//! | [`secret`] | a Secret that we keep, or leave to whose it is |
//! | [`key`] | our key pair, and its public half in our offers |
//! | [`certificate`] | the certificate of the webhook, and whether it answers; also without a session |
//! | [`run`] | all of it in one session |
//! | [`leave`] | before and after sessions |
//!
//! Its watches are its own: the session does not know them. Where its CRDs or rights are missing, Services go on as before, and the
//! OffloadPeers say what is missing.

#[cfg(test)]
mod arrivals;
mod certificate;
mod index;
mod key;
mod knowledge;
mod leave;
mod map;
mod namespace;
mod node;
mod own_map;
mod pace;
mod peer;
mod pod;
mod refused;
mod room;
mod run;
mod secret;
mod selection;
mod shadow;
mod status;
mod view;
mod watches;
mod withdrawn;
mod writes;

use api::{label, unwritten::OFFLOADING};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    boot::Env,
    drive::before,
    failure::Failure,
    watch::Watches,
    write::{Error, Writer},
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) use self::certificate::{Answer, Lifetimes, run as keep_certificate};
use self::{knowledge::Knowledge, node::Nodes, run::OffloadingRun};
use crate::feature::{Access, Feature, Local, Run};

/// Offloading, as a feature of the member.
pub(crate) struct Offloading {
    /// What came of asking the webhook last.
    pub(crate) webhook: watch::Receiver<Answer>,
}

impl Feature for Offloading {
    fn name(&self) -> &'static str {
        OFFLOADING
    }

    fn crds(&self) -> &'static [&'static str] {
        &["namespaceoffloadings.offloading.liqo.io", "offloadpeers.multicluster.freeport.dev"]
    }

    fn begin(&self, access: Access) -> Box<dyn Run> {
        Box::new(OffloadingRun::new(access, self.webhook.clone()))
    }

    /// Nodes stay as they are without a leader: nobody is evicted for that.
    fn run_alone(&self, local: Local, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move { alone(&local, &stop).await }.boxed()
    }

    fn withdraw(&self, access: Access) -> BoxFuture<'_, Result<(), Failure>> {
        async move { leave::withdraw(&access).await }.boxed()
    }

    fn remove_imports<'a>(&'a self, env: &'a Env, us: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>> {
        leave::remove_imports(env, us).boxed()
    }

    fn clear_status<'a>(&'a self, env: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        leave::clear_status(env).boxed()
    }
}

/// Keeps up the Nodes that are there, without a session.
async fn alone(local: &Local, stop: &CancellationToken) {
    let env = &local.env;
    let knowledge = Knowledge::new(local.us.clone(), env.namespace.clone(), None);
    let (watches, mut tasks) = (Watches::guarded(local.home.guard()), JoinSet::new());
    watches::watch_nodes(env, &knowledge, &watches, &mut tasks);
    let (_, begun) = watch::channel(false);
    let nodes = Nodes::new(knowledge.clone(), env, local_writer(env), begun);
    let driven = async {
        if before(stop, watches.listed()).await {
            nodes.run(env, stop).await;
        }
    };
    let watched = async {
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap_or_else(kit::drive::resume);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = driven => {}
        () = watched => {}
    }
    tasks.shutdown().await;
}

fn local_writer(env: &Env) -> Writer {
    Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone())
}
