//! API binding, as a consumer: APIs of other clusters are installed here, specs go up to their providers, statuses come down. kube-bind's
//! konnector, in Rust; it needs no ClusterSet.
//!
//! | module | holds |
//! |---|---|
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
mod local;
mod namespaces;
mod provider;
mod sync;

use std::sync::Arc;

use kit::{boot::Env, watch::Guard};
use tokio_util::sync::CancellationToken;

/// Serves all contracts until `stop`, or until our cluster turns out to be restored from a backup.
pub(crate) async fn run(env: &Env, guard: Arc<dyn Guard>, stop: &CancellationToken) {
    konnector::run(env, guard, stop).await;
}
