//! API binding, as a consumer: APIs of other clusters are installed here, specs go up to their providers, statuses come down. kube-bind's
//! konnector, in Rust; it needs no ClusterSet.
//!
//! | module | holds |
//! |---|---|
//! | [`lease`] | that no other konnector works beside us |
//! | [`konnector`] | which contracts there are |
//! | [`local`] | what is known of our own cluster |
//! | [`credential`] | the Secret with a kubeconfig |
//! | [`provider`] | one contract, as long as its credential is the same |
//! | [`contract`] | what is known of the cluster namespace, and how to write there |
//! | [`heartbeat`] | shows the provider that we live; keeps the credential up to date |
//! | [`binding`], [`crd`] | APIServiceBindings and their CRDs |
//! | [`namespaces`] | the end of APIServiceNamespaces |
//! | [`sync`] | the objects of one API |

mod binding;
mod contract;
mod crd;
mod credential;
mod heartbeat;
mod konnector;
mod lease;
mod local;
mod namespaces;
mod provider;
mod sync;

use std::sync::Arc;

use kit::{boot::Env, drive::before, watch::Guard};
use tokio_util::sync::CancellationToken;

/// Serves all contracts while we are the one konnector of our cluster, until `stop`, or until our cluster turns out to be restored from
/// a backup.
pub(crate) async fn run(env: &Env, guard: Arc<dyn Guard>, stop: &CancellationToken) {
    let mut claim = lease::Claim::new(env);
    while before(stop, claim.acquire()).await {
        let work = stop.child_token();
        let serving = async {
            Box::pin(konnector::run(env, guard.clone(), &work)).await;
            work.cancel();
        };
        let kept = async {
            tokio::select! {
                () = claim.keep() => tracing::warn!("another konnector holds the Lease: stopping"),
                () = work.cancelled() => {}
            }
            work.cancel();
        };
        tokio::join!(serving, kept);
        claim.release().await;
    }
}
