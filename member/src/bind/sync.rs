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
mod plan;
mod raw;
mod unsynced;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::bind::mapping::Place;
use kit::{
    drive::{before, drive},
    failure::classify,
    index::Readers,
    objects::Change,
    queue::{Outcome, Queue},
    store::Store,
    watch::{Source, Watches},
    write::{Error, Writer},
};
use kube::{Api, Resource, ResourceExt, api::ApiResource, runtime::watcher};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{bound::Bound, entry::Here, unsynced::Unsynced};
use self::{
    copies::Copies,
    entry::{Ours, Pair},
    plan::{Problem, Rules, Step, next},
};
use super::{
    absence::Absence,
    contract::{Contract, IN_TIME},
};

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
}

impl Sync {
    pub(crate) fn new(
        bound: Bound,
        contract: &Contract,
        (here, absence): (Writer, Absence),
        unsynced: Unsynced,
    ) -> Self {
        let store = Store::new([Queue::new(Duration::ZERO)]);
        Self {
            here: here.of(bound.resource.clone()),
            there: contract.writer_of_copies().of(bound.resource.clone()),
            copies: Copies::new(bound.clone(), contract.clone(), store.clone()),
            contract: contract.clone(),
            api: bound.api().into(),
            bound: Arc::new(bound),
            store,
            unsynced,
            absence,
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
        let mut last = None;
        for _ in 0..STEPS {
            let Some(pair) = self.store.get(&place) else { return Ok(self.in_step(&place)) };
            let seen = (version(pair.here.as_deref()), version(pair.there.as_deref()));
            // What was written did not enter: the watch is about to tell.
            if last.replace(seen.clone()) == Some(seen) {
                return Ok(Outcome::Done);
            }
            let assigned = place.namespace.as_deref().and_then(|namespace| self.contract.assigned(namespace));
            let no = place.namespace.as_deref().and_then(|namespace| self.contract.not_assigned(namespace));
            let refused = self.copies.refused(assigned.as_deref()).map(Problem::Unwatched);
            if !self.copies.are_told(assigned.as_deref()) {
                refused.iter().for_each(|problem| self.report(&place, &pair, problem));
                return Ok(Outcome::Done);
            }
            let rules = Rules {
                strategy: self.bound.strategy,
                cluster_namespace: &self.contract.cluster_namespace,
                is_ending: self.contract.is_ending(&self.bound.binding),
                orphan: self.bound.orphan,
                gaps: self.absence.gaps,
                not_assigned: no.as_deref(),
            };
            match next(&place, &pair, &rules, assigned.as_deref()) {
                Step::Rest => {
                    let Some(problem) = refused.filter(|_| pair.here.is_some()) else {
                        return Ok(self.in_step(&place));
                    };
                    self.report(&place, &pair, &problem);
                    return Ok(Outcome::Done);
                }
                Step::Fail(problem) => {
                    self.report(&place, &pair, &problem);
                    return Ok(Outcome::Done);
                }
                step => match self.act(&place, &pair, step).await {
                    Ok(true) => {}
                    Ok(false) => return Ok(Outcome::Done),
                    Err(Error::Refused(message)) => {
                        self.report(&place, &pair, &Problem::Refused(message.clone()));
                        return Err(Error::Refused(message));
                    }
                    Err(Error::Unreachable(error)) => {
                        if let Some(message) = too_large(&error) {
                            self.report(&place, &pair, &Problem::Refused(message));
                        } else if self.fails_for_long(&place) {
                            self.report(&place, &pair, &Problem::Unavailable(classify(&error)));
                        }
                        return Err(Error::Unreachable(error));
                    }
                    Err(error) => {
                        refused.iter().for_each(|problem| self.report(&place, &pair, problem));
                        return Err(error);
                    }
                },
            }
        }
        Ok(Outcome::Requeue(GO_ON))
    }

    fn in_step(&self, place: &Place) -> Outcome {
        // What others changed there and we put back later is no delay.
        self.store.note(place, |pair| {
            (pair.due_up, pair.due_down, pair.failing) = (None, None, None);
        });
        self.unsynced.remove(self.name(), place);
        Outcome::Done
    }

    /// Whether API servers have not been able to serve this for some time.
    fn fails_for_long(&self, place: &Place) -> bool {
        let mut since = None;
        self.store.note(place, |pair| since = Some(*pair.failing.get_or_insert_with(Instant::now)));
        since.is_some_and(|since| since.elapsed() > IN_TIME)
    }

    /// Says again and again what no watch has told in time.
    async fn say_late(self, watches: Watches) {
        let begun = Instant::now();
        loop {
            tokio::time::sleep(copies::LOOK).await;
            let are_late = begun.elapsed() > IN_TIME && !watches.are_listed();
            let late = match are_late {
                true => Some("objects in this cluster"),
                false => self.copies.are_late().then_some("copies at the provider"),
            };
            self.unsynced.put_late(self.name(), late);
        }
    }

    /// Of the binding, and of the API.
    fn name(&self) -> (&str, &str) {
        (&self.bound.binding, &self.api)
    }

    /// Says on the object, once, why it is not in step.
    fn report(&self, place: &Place, pair: &Pair, problem: &Problem) {
        let said = (problem.reason(), problem.to_string());
        let is_news = self.unsynced.put(self.name(), place, said);
        if let Some(here) = pair.here.as_deref().filter(|_| is_news) {
            let reference = here.object_ref(&self.bound.resource);
            self.contract.env.events.warn(reference, "Synchronize", problem.reason(), &problem.to_string());
        }
    }
}

/// What is too large for an API server's store (1.5 MiB) it answers as a failure of its own, each time.
fn too_large(error: &kube::Error) -> Option<String> {
    match error {
        kube::Error::Api(status) if status.message.contains("request is too large") => {
            Some(status.message.clone())
        }
        _ => None,
    }
}

fn version<S: 'static>(object: Option<&kit::custom::Custom<S>>) -> Option<String> {
    object.and_then(ResourceExt::resource_version)
}
