//! API binding, as a consumer: APIs of other clusters are installed here, specs go up to their providers, statuses come down. kube-bind's
//! konnector, in Rust; it needs no ClusterSet.
//!
//! | module | holds |
//! |---|---|
//! | [`lease`] | that no other konnector works beside us |
//! | [`konnector`] | which contracts there are |
//! | [`local`] | what is known of our own cluster |
//! | [`credential`] | the Secret with a kubeconfig |
//! | [`absence`] | whether it counts that something is not there |
//! | [`provider`] | one contract, as long as its credential is the same |
//! | [`contract`] | what is known of the cluster namespace, and how to write there |
//! | [`holder`] | that no other cluster uses the contract |
//! | [`heartbeat`] | shows the provider that we live; keeps the credential up to date |
//! | [`binding`], [`crd`], [`policy`] | APIServiceBindings and their CRDs |
//! | [`namespaces`], [`left`] | the end of APIServiceNamespaces, and which ones stay |
//! | [`sync`] | the objects of one API |

mod absence;
mod binding;
mod contract;
mod crd;
mod credential;
#[cfg(test)]
mod fixture;
mod heartbeat;
mod holder;
mod konnector;
mod lease;
mod left;
mod local;
mod namespaces;
mod policy;
mod provider;
mod sync;

use std::time::Duration;

use jiff::Timestamp;
use kit::{boot::Env, drive::before};
use tokio_util::sync::CancellationToken;

use self::{absence::Absence, konnector::Ended};
use crate::home::Home;

/// What API servers refuse to binding, among all that they refuse to this daemon: see [`Request::part`](kit::metrics::Request::part).
pub(crate) const PART: &str = "bind";
/// How long writes under way may take when the Lease is lost: [`lease`] gives it up so much earlier than others may take it.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// Serves all contracts while we are the one konnector of our cluster, until `stop`, or until our cluster turns out to be restored from
/// a backup: then the caller has to begin again.
pub(crate) async fn run(env: &Env, home: &Home, stop: &CancellationToken) {
    // A replica that stands by does nothing here: another konnector may take the Lease before it does.
    if !before(stop, env.hold.active()).await {
        return;
    }
    let env = &Env { metrics: env.metrics.for_part(PART), ..env.clone() };
    let mut claim = lease::Claim::new(env);
    while before(stop, claim.acquire()).await {
        let work = stop.child_token();
        let absence = Absence::new(home, claim.signed(), Timestamp::now());
        let mut serving = Box::pin(konnector::run(env, absence, &work));
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = claim.keep() => {
                tracing::warn!("Lease kube-bind/kube-bind is not ours any more: stopping");
                work.cancel();
                // What has not ended by then is dropped with it.
                drop(tokio::time::timeout(LAST_WRITES, &mut serving).await);
                Ended::Stopped
            }
        };
        drop(serving);
        // A restored Lease stays as it is: its age tells what the backup lacks.
        if ended == Ended::Restored {
            return;
        }
        claim.release().await;
    }
}
