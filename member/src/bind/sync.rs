//! The objects of one API of one contract: specs go up to the provider, statuses come down.
//!
//! | module | holds |
//! |---|---|
//! | [`bound`] | which API is kept in step, and how |
//! | [`entry`] | what is known of one object: here, and its copy |
//! | [`copy`] | what its copy is to be, and whose a copy is: pure |
//! | [`plan`] | what to do next about it: pure |
//! | [`copies`], [`raw`] | the watches at the provider |
//! | [`act`] | does it |
//! | [`asked`] | what API servers are asked before something is done that cannot be undone |
//! | [`trail`] | what a pass did last: pure |
//! | [`late`] | what takes too long, or failed, is said |
//! | [`rights`] | whether we may still do all that here |
//! | [`unsynced`] | objects that are not in step |
//!
//! Watches the objects of the API in our cluster, and their places at the provider. Writes the copies, and of the objects the finalizer,
//! the status and two annotations. Deletes copies: that of an object that goes, and that of an object that is not there any more. A
//! pass may run twice: each step is decided from what is there.

mod act;
mod asked;
mod bound;
mod copies;
mod copy;
mod entry;
mod late;
mod plan;
mod raw;
mod rights;
mod trail;
mod unsynced;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::bind::mapping::Place;
use kit::{
    drive::{before, drive},
    index::Readers,
    objects::Change,
    queue::{Outcome, Queue},
    store::Store,
    watch::{Source, Watches},
    write::{Error, Writer},
};
use kube::{Api, api::ApiResource, runtime::watcher};
use tokio::{sync::Notify, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{bound::Bound, entry::Here, unsynced::Unsynced};
use self::{
    copies::Copies,
    entry::{Ours, Pair},
    plan::{Problem, Rules, Step, is_copy_of, next},
    trail::Trail,
};
use super::{absence::Absence, contract::Contract, local::Local};

/// The one controller that reads the index.
const BY: Readers = Readers::one(0);
/// More steps than one pass can need.
const STEPS: usize = 12;
/// How soon a pass goes on that needed more.
const GO_ON: Duration = Duration::from_secs(1);

/// One API of one contract.
#[derive(Clone)]
pub(crate) struct Sync {
    bound: Arc<Bound>,
    api: Arc<str>,
    contract: Contract,
    store: Store<Place, Pair>,
    here: Writer<ApiResource>,
    there: Writer<ApiResource>,
    copies: Copies,
    unsynced: Unsynced,
    absence: Absence,
    /// Something was refused, so that rights may be missing.
    doubts: Arc<Notify>,
}

impl Sync {
    pub(crate) fn new(
        bound: Bound,
        (contract, local): (&Contract, &Local),
        (here, absence): (Writer, Absence),
        unsynced: Unsynced,
    ) -> Self {
        let store = Store::new([Queue::new(Duration::ZERO)]);
        Self {
            here: here.of(bound.resource.clone()),
            there: contract.writer_of_copies().of(bound.resource.clone()),
            copies: Copies::new(bound.clone(), contract.clone(), local.clone(), store.clone()),
            contract: contract.clone(),
            api: bound.api().into(),
            bound: Arc::new(bound),
            store,
            unsynced,
            absence,
            doubts: Arc::default(),
        }
    }

    /// Keeps the objects in step until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let (watches, mut tasks) = (Watches::guarded(self.absence.guard()), JoinSet::new());
        let (store, counted, api) =
            (self.store.clone(), self.contract.env.metrics.bind().objects(), self.api.clone());
        tasks.spawn(watches.watch(
            Api::<Here>::all_with(self.contract.env.client.clone(), &self.bound.resource),
            watcher::Config::default(),
            Source { cluster: "local", kind: "bound object" },
            self.contract.env.metrics.clone(),
            move |change: Change<Here>| {
                let seen = Some(Instant::now());
                store.change(change.map(|object| object.with(Ours { seen })));
                let objects = i64::try_from(store.count::<Here>()).unwrap_or(i64::MAX);
                counted.count("", [([&*api], objects)]);
            },
        ));
        tasks.spawn(self.copies.clone().keep(stop.clone()));
        tasks.spawn(self.clone().say_late(watches.clone()));
        tasks.spawn(self.clone().say_rights(watches.clone()));
        let (queue, metrics) = (self.store.queue(0), self.contract.env.metrics.clone());
        let driven = async {
            if before(&stop, watches.listed()).await {
                let this = self.clone();
                drive("bind-sync", queue, metrics, stop.clone(), move |place| this.clone().reconcile(place))
                    .await;
            }
        };
        tokio::select! {
            () = driven => {}
            () = watches.restored() => {}
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
        tasks.shutdown().await;
        self.unsynced.forget(self.name());
    }

    async fn reconcile(self, place: Place) -> Result<Outcome, Error> {
        let mut trail = Trail::default();
        for _ in 0..STEPS {
            let namespace = place.namespace.as_deref();
            let assigned = namespace.and_then(|namespace| self.contract.assigned(namespace));
            // Asked before the pair is read: a list that comes in between has not told what that says.
            let is_told = self.copies.are_told(namespace, assigned.as_deref());
            let Some(pair) = self.store.get(&place) else { return Ok(self.in_step(&place)) };
            let cluster_namespace = &self.contract.cluster_namespace.name;
            if let (Some(namespace), Some(here), Some(there)) = (namespace, &pair.here, &pair.there)
                && is_copy_of(there, here, cluster_namespace)
            {
                self.contract.note_copy_in(namespace);
            }
            if assigned.is_some() && pair.unassigned.is_some() {
                self.store.note(&place, |pair| pair.unassigned = None);
            }
            let refused = self.copies.refused(assigned.as_deref());
            let unwatched = refused.clone().map(Problem::Unwatched);
            let step = match (self.decide(&place, &pair, assigned.as_deref(), is_told), unwatched) {
                (Some(Step::Rest), None) => return Ok(self.in_step(&place)),
                (Some(Step::Rest), _) if pair.here.is_none() => return Ok(self.in_step(&place)),
                (Some(Step::Fail(problem)), _) | (None | Some(Step::Rest), Some(problem)) => {
                    self.report(&place, &pair, &problem);
                    return Ok(Outcome::Done);
                }
                (None, None) => return Ok(Outcome::Done),
                (Some(step), _) if !trail.goes_on(&pair, &step) => return Ok(Outcome::Done),
                (Some(step), _) => step,
            };
            let asks = matches!(step, Step::Assign(_));
            match self.act(&place, &pair, step).await {
                Ok(true) => {}
                Ok(false) if asks => return Ok(self.waits(&place, &pair, Instant::now())),
                Ok(false) => return Ok(Outcome::Done),
                Err(error) => return Err(self.failed(&place, &pair, refused, error)),
            }
        }
        Ok(Outcome::Requeue(GO_ON))
    }

    /// The next step; nothing as long as it is not known (`is_told`) what is at the provider.
    fn decide(&self, place: &Place, pair: &Pair, assigned: Option<&str>, is_told: bool) -> Option<Step> {
        let is_unserved = self.copies.are_unserved(assigned);
        // Of an API that is not served a watch never tells.
        if !is_told && (!is_unserved || !pair.is_going()) {
            return None;
        }
        let no = place.namespace.as_deref().and_then(|namespace| self.contract.not_assigned(namespace));
        let rules = Rules {
            strategy: self.bound.strategy,
            cluster_namespace: &self.contract.cluster_namespace,
            binding_uid: &self.bound.binding_uid,
            is_ending: self.contract.is_ending(&self.bound.binding),
            orphan: self.bound.orphan,
            is_unserved,
            gaps: self.absence.gaps,
            not_assigned: no.as_deref(),
        };
        Some(next(place, pair, &rules, assigned))
    }

    /// Of the binding, and of the API.
    fn name(&self) -> (&str, &str) {
        (&self.bound.binding, &self.api)
    }
}
