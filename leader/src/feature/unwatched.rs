//! Features that watch nothing: they read what they need now and then.

use futures::{FutureExt, future::BoxFuture};
use kit::watch::Watches;
use presence::leases::News;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Feature;

/// A feature that reads the Common Area now and then. The leader vouches for nothing that it writes.
pub(crate) trait Look: Send + Sync {
    /// Its name in the ClusterSet, for example `Offloading`.
    const NAME: &'static str;

    /// Looks until `stop`.
    fn run(&self, stop: &CancellationToken) -> impl Future<Output = ()> + Send;
}

/// Makes a [`Feature`] of a [`Look`].
pub(crate) struct Unwatched<L> {
    look: L,
    none: Watches,
}

impl<L: Look> Unwatched<L> {
    pub(crate) fn new(look: L) -> Self {
        Self { look, none: Watches::default() }
    }
}

impl<L: Look> Feature for Unwatched<L> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn watch(&self, _: &mut JoinSet<()>) {}

    fn watches(&self) -> &Watches {
        &self.none
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move { self.look.run(&stop).await }.boxed()
    }

    fn hear(&self, _: &News) {}

    fn unwritten(&self) -> Vec<String> {
        Vec::new()
    }

    fn retry_failed(&self) {}

    fn pruned(&self) -> Option<String> {
        None
    }

    fn write_again(&self) {}
}
