//! The seam between a Common Area and the features of the leader. The area holds a table of features and knows none by name:
//! what it asks of one feature, it asks of all.

mod unwatched;

use std::{fmt::Debug, future::ready, sync::Arc, time::Instant};

use api::{antrea::Members, label, lease::Settled, quota::Quota, unwritten::Unwritten};
use futures::{
    StreamExt,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use kit::{
    boot::Env,
    drive::before,
    index::Shared,
    objects::Change,
    watch::{Gather, Guard, Source, Watches},
    write::Writer,
};
use kube::{Api, Resource, core::NamespaceResourceScope, runtime::watcher};
use presence::leases::{Leases, News};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub(crate) use self::unwatched::{Look, Unwatched};
use crate::{bounds::Noted, silences::Silences};

/// What a feature works with in one Common Area.
#[derive(Clone)]
pub(crate) struct Access {
    /// This daemon and its cluster, which has the Common Area.
    pub(crate) env: Env,
    pub(crate) common_area: String,
    /// What a member may have there.
    pub(crate) quota: Quota,
    /// Members that run Antrea's controllers.
    pub(crate) antrea: Members,
    /// Which addresses the endpoints of members may have.
    pub(crate) noted: Noted,
    pub(crate) leases: Shared<Leases>,
    /// For how long members are silent.
    pub(crate) silences: Shared<Silences>,
    /// Notices that the Common Area was restored from a backup.
    pub(crate) guard: Arc<dyn Guard>,
}

impl Access {
    /// The objects of one kind in the Common Area.
    pub(crate) fn api<P>(&self) -> Api<P>
    where
        P: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.env.client.clone(), &self.common_area)
    }

    /// Watches the objects of one kind in the Common Area.
    pub(crate) fn watch<P>(
        &self,
        watches: &Watches,
        kind: &'static str,
        tasks: &mut JoinSet<()>,
        sink: impl FnMut(Change<P>) + Send + 'static,
    ) where
        P: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        self.watch_gathering(watches, kind, tasks, (Vec::new(), ready(())), sink);
    }

    /// The same, where not all of a list is kept, and where it is not listed before `begins`.
    pub(crate) fn watch_gathering<P>(
        &self,
        watches: &Watches,
        kind: &'static str,
        tasks: &mut JoinSet<()>,
        (list, begins): (impl Gather<P> + Send + 'static, impl Future<Output = ()> + Send + 'static),
        sink: impl FnMut(Change<P>) + Send + 'static,
    ) where
        P: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        let source = Source { cluster: "leader", kind };
        let metrics = self.env.metrics.clone();
        let all = (self.api::<P>(), watcher::Config::default());
        let watch = watches.watch_gathering(all, source, metrics, list, sink);
        let begun = async move {
            begins.await;
            watch.await;
        };
        tasks.spawn(begun.in_current_span());
    }

    /// Writes to the Common Area.
    pub(crate) fn writer(&self) -> Writer {
        Writer::new(self.env.client.clone(), label::LEADER, "leader", self.env.metrics.clone()).strict()
    }
}

/// The table: makes the features of one Common Area, each by one line.
pub(crate) type Table = fn(&Access) -> Vec<Box<dyn Feature>>;

/// A feature in one Common Area.
pub(crate) trait Feature: Send + Sync {
    /// What the ClusterSet calls it, for example `Services`.
    fn name(&self) -> &'static str;

    /// Begins its watches.
    fn watch(&self, tasks: &mut JoinSet<()>);

    /// Its watches. They are guarded by [`Access::guard`].
    fn watches(&self) -> &Watches;

    /// Runs its controllers until `stop`. Called when its watches have delivered their first lists.
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, ()>;

    /// Leases were renewed or are gone.
    fn hear(&self, news: &News);

    /// The keys about which something is left to write: the leader vouches for all else. None has a space.
    fn unwritten(&self) -> Vec<String>;

    /// The API server answers again: tries at once what failed.
    fn retry_failed(&self);

    /// Why the CRDs do not keep all that it writes, if so.
    fn pruned(&self) -> Option<String>;

    /// A CRD of its records changed: what an older one did not keep is written again.
    fn write_again(&self);
}

/// All features of one Common Area.
pub(crate) struct Features(Vec<Box<dyn Feature>>);

impl Features {
    pub(crate) fn new(table: Table, access: &Access) -> Self {
        Self(table(access))
    }

    pub(crate) fn watch(&self, tasks: &mut JoinSet<()>) {
        self.0.iter().for_each(|feature| feature.watch(tasks));
    }

    /// Runs each feature until `stop`, as soon as its own watches have delivered their first lists: one that cannot list does not
    /// stop the others.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let run = self.0.iter().map(async |feature| {
            if before(stop, feature.watches().listed()).await {
                feature.run(stop.clone()).await;
            }
        });
        join_all(run).await;
    }

    /// Waits until a watch of a feature has found that the Common Area was restored from a backup.
    pub(crate) async fn restored(&self) {
        let restored = self.0.iter().map(|feature| feature.watches().restored());
        if restored.collect::<FuturesUnordered<_>>().next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// CRDs of records changed: what is told differently now is read again, and what an older one did not keep is written again.
    pub(crate) fn records_again(&self) {
        self.0.iter().for_each(|feature| {
            feature.watches().list_again();
            feature.write_again();
        });
    }

    pub(crate) fn hear(&self, news: &News) {
        self.0.iter().for_each(|feature| feature.hear(news));
    }

    pub(crate) fn retry_failed(&self) {
        self.0.iter().for_each(|feature| feature.retry_failed());
    }

    /// Whether all features see everything, and what they have left to write.
    pub(crate) fn settled(&self, now: Instant) -> Settled {
        let are_open = self.0.iter().all(|feature| feature.watches().are_open(now));
        let unwritten = self.0.iter().map(|feature| Unwritten::of(feature.name(), feature.unwritten()));
        Settled::of(are_open, unwritten.fold(Unwritten::nothing(), Unwritten::and))
    }

    /// Which features cannot list or watch what they need, and why, in words that stay the same while the cause does.
    pub(crate) fn unavailable(&self, now: Instant) -> Option<String> {
        let why = |feature: &dyn Feature| {
            let troubles = feature.watches().troubles(now);
            let kinds: Vec<_> = troubles
                .iter()
                .map(|trouble| format!("cannot watch {}: {}", trouble.source.kind, trouble.failure))
                .collect();
            (!kinds.is_empty()).then(|| format!("{}: {}", feature.name(), kinds.join(", ")))
        };
        let all: Vec<_> = self.0.iter().filter_map(|feature| why(feature.as_ref())).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Why the CRDs do not keep all that a feature writes, if so.
    pub(crate) fn pruned(&self) -> Option<String> {
        self.0.iter().find_map(|feature| feature.pruned())
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
