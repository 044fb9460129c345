//! The features of a session. Whatever the session asks of a feature, it asks of all of them here.

use std::{collections::BTreeSet, time::Instant};

use api::{lease::Settled, unwritten::Unwritten};
use futures::{
    StreamExt,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use kit::{
    crowd::Place,
    watch::{Trouble, Watches},
};
use presence::leases::News;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::feature::{Access, Feature, Run, Shortfall};

/// The features of a session, by name.
pub(super) struct Table(Vec<(&'static str, Box<dyn Run>)>);

/// What a feature, or the session itself, cannot watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blind {
    /// Name of the feature; none for what all features need.
    pub(crate) feature: Option<&'static str>,
    /// Watches that fail, as far as it is known why.
    pub(crate) troubles: Vec<Trouble>,
    /// Kinds that were never listed.
    pub(crate) unlisted: Vec<&'static str>,
}

impl Blind {
    /// What these watches do not see; `None` if they see everything.
    pub(super) fn of(feature: Option<&'static str>, watches: &[&Watches], now: Instant) -> Option<Self> {
        let troubles: Vec<_> = watches.iter().flat_map(|watches| watches.troubles(now)).collect();
        let unlisted: Vec<_> = watches.iter().flat_map(|watches| watches.unlisted()).collect();
        let is_blind = !(troubles.is_empty() && unlisted.is_empty());
        is_blind.then_some(Self { feature, troubles, unlisted })
    }
}

impl Table {
    /// What is listed of the Common Area waits for its turn.
    pub(super) fn take_turns(&self, place: Option<Place>) {
        self.runs().for_each(|run| run.take_turns(place));
    }

    /// All `features`, for one session.
    pub(super) fn begin(features: &[Box<dyn Feature>], access: &Access) -> Self {
        Self(features.iter().map(|feature| (feature.name(), feature.begin(access.clone()))).collect())
    }

    fn runs(&self) -> impl Iterator<Item = &dyn Run> {
        self.0.iter().map(|(_, run)| run.as_ref())
    }

    fn watches(&self) -> impl Iterator<Item = &Watches> {
        self.runs().flat_map(|run| [run.local(), run.leader()])
    }

    pub(super) fn watch(&self, tasks: &mut JoinSet<()>) {
        self.runs().for_each(|run| run.watch(tasks));
    }

    /// Runs the controllers of all features until `stop`. Each is given a `begin` of its own: see [`Run::run`].
    pub(super) async fn run(&self, begin: impl Fn() -> BoxFuture<'static, ()>, stop: &CancellationToken) {
        let runs = join_all(self.runs().map(|run| run.run(begin(), stop.clone())));
        tokio::join!(runs, stop.cancelled());
    }

    /// Which of its records this member may vouch for: `common`, the watches that all features need, and those of all features are
    /// open, and no feature has anything left to write about them.
    pub(super) fn settled(&self, common: &Watches, now: Instant) -> Settled {
        let are_open = common.are_open(now) && self.watches().all(|watches| watches.are_open(now));
        let unwritten = self.0.iter().map(|(feature, run)| Unwritten::of(feature, run.unwritten()));
        Settled::of(are_open, unwritten.fold(Unwritten::nothing(), Unwritten::and))
    }

    pub(super) fn are_listed(&self) -> bool {
        self.watches().all(Watches::are_listed)
    }

    pub(super) async fn listed(&self) {
        join_all(self.watches().map(Watches::listed)).await;
    }

    /// Waits until a feature notices that the leader's API server was restored.
    pub(super) async fn restored(&self) {
        let mut any: FuturesUnordered<_> = self.runs().map(Run::restored).collect();
        if any.next().await.is_none() {
            std::future::pending().await
        }
    }

    /// The features that cannot watch something.
    pub(super) fn blind(&self, now: Instant) -> Vec<Blind> {
        let blind =
            self.0.iter().map(|(name, run)| Blind::of(Some(*name), &[run.local(), run.leader()], now));
        blind.flatten().collect()
    }

    /// The first feature of whose writes the leader's API server drops something, and what.
    pub(super) fn pruned(&self) -> Option<(&'static str, String)> {
        self.0.iter().find_map(|(name, run)| Some((*name, run.pruned()?)))
    }

    /// What the features do not import here, though nothing failed; none while that is not known of all.
    pub(super) fn shortfalls(&self) -> Option<Vec<Shortfall>> {
        let all: Option<Vec<_>> = self.runs().map(Run::shortfalls).collect();
        all.map(|all| all.concat())
    }

    /// Namespaces that this cluster lacks; none while that is not known of all features.
    pub(super) fn lacks(&self) -> Option<BTreeSet<String>> {
        let all: Option<Vec<_>> = self.runs().map(Run::lacks).collect();
        all.map(|all| all.into_iter().flatten().collect())
    }

    pub(super) fn hear(&self, news: &News) {
        self.runs().for_each(|run| run.hear(news));
    }

    pub(super) fn retry_failed(&self) {
        self.runs().for_each(Run::retry_failed);
    }

    pub(super) fn let_go(&self, said: Option<&str>) {
        self.runs().for_each(|run| run.let_go(said));
    }

    /// CRDs of this cluster changed.
    pub(super) fn local_again(&self) {
        self.runs().for_each(Run::local_again);
    }

    /// CRDs of records changed.
    pub(super) fn records_again(&self) {
        self.runs().for_each(Run::records_again);
    }
}

/// The names of the CRDs of this cluster that `features` need, each once.
pub(super) fn crds(features: &[Box<dyn Feature>]) -> BTreeSet<&'static str> {
    features.iter().flat_map(|feature| feature.crds()).copied().collect()
}

#[cfg(test)]
mod tests;
