//! The objects of one API of one contract: specs go up to the provider, statuses come down.
//!
//! | module | holds |
//! |---|---|
//! | [`bound`] | which API is kept in step, and how |
//! | [`entry`] | what is known of one object: here, and its copy |
//! | [`copy`] | what its copy is to be, and whose a copy is: pure |
//! | [`plan`] | what to do next about it: pure |
//! | [`copies`] | the watches at the provider |
//! | [`unsynced`] | objects that are not in step |
//!
//! Watches the objects of the API in our cluster, and their places at the provider. Writes the copies, and of the objects the finalizer,
//! the status and two annotations. Deletes copies: that of an object that goes, and that of an object that is not there any more. A
//! pass may run twice: each step is decided from what is there.

mod bound;
mod copies;
mod copy;
mod entry;
mod plan;
mod unsynced;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::bind::{label::FINALIZER, mapping::Place};
use kit::{
    drive::{before, drive},
    index::Readers,
    metrics::Direction,
    objects::Change,
    queue::{Outcome, Queue},
    store::Store,
    watch::{Guard, Source, Watches},
    write::{Error, Writer},
};
use kube::{Api, Resource, ResourceExt, api::ApiResource, core::ObjectMeta, runtime::watcher};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{bound::Bound, entry::Here, unsynced::Unsynced};
use self::{
    copies::Copies,
    entry::{At, Ours, Pair, There},
    plan::{Problem, Rules, Step, next},
};
use super::contract::Contract;

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
}

impl Sync {
    pub(crate) fn new(bound: Bound, contract: &Contract, here: Writer, unsynced: Unsynced) -> Self {
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
        }
    }

    /// Keeps the objects in step until `stop`. `guard` knows whether our cluster still holds what it held.
    pub(crate) async fn run(self, guard: Arc<dyn Guard>, stop: CancellationToken) {
        let (watches, mut tasks) = (Watches::guarded(guard), JoinSet::new());
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
        self.store.note(place, |pair| (pair.due_up, pair.due_down) = (None, None));
        self.unsynced.remove(self.name(), place);
        Outcome::Done
    }

    /// Of the binding, and of the API.
    fn name(&self) -> (&str, &str) {
        (&self.bound.binding, &self.api)
    }

    /// Does a step; whether another one may follow at once.
    async fn act(&self, place: &Place, pair: &Pair, step: Step) -> Result<bool, Error> {
        let (here, there) = (pair.here.as_deref(), pair.there.as_deref());
        match (step, here, there) {
            (Step::Assign(namespace), ..) => {
                self.contract.assign(&namespace).await?;
                Ok(false)
            }
            (Step::Hold, Some(here), _) => {
                self.store.write(BY, here, self.here.hold(here, FINALIZER)).await?;
                Ok(true)
            }
            (Step::TakeOver(fields), _, Some(there)) => {
                let at = There { side: At::of(place), ..there.clone() };
                let request = async { Ok(self.there.manage(there, fields).await?.with(At::of(place))) };
                self.store.write(BY, &at, request).await?;
                Ok(true)
            }
            (Step::Apply(target, want), Some(_), there) => {
                self.apply(place, &target, there, want).await?;
                Ok(true)
            }
            (Step::Status(status), Some(here), _) => {
                self.say(place, here, status).await?;
                Ok(true)
            }
            (Step::Annotate(annotations), Some(here), _) => {
                let patch = json!({"metadata": {"annotations": annotations}});
                self.store.write(BY, here, self.here.merge(here, None, patch)).await?;
                Ok(true)
            }
            (Step::Delete, _, Some(there)) => {
                // It may have to wait for others there: the watch tells when it is gone.
                self.there.delete(there, false).await?;
                Ok(false)
            }
            (Step::Release, Some(here), _) => {
                self.here.release(here, &[FINALIZER]).await?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    async fn apply(
        &self,
        place: &Place,
        target: &Place,
        there: Option<&There>,
        want: Value,
    ) -> Result<(), Error> {
        let metadata = ObjectMeta {
            name: Some(target.name.clone()),
            namespace: target.namespace.clone(),
            uid: there.and_then(ResourceExt::uid),
            ..ObjectMeta::default()
        };
        let at = There { metadata, content: Default::default(), error: None, side: At::of(place) };
        let request = async {
            let answer = self.there.apply::<There>(&at, want.clone()).await?;
            Ok(answer.with(At::of(place)))
        };
        let answer = self.store.write(BY, &at, request).await?;
        let mut due = None;
        self.store.note(place, |pair| {
            pair.applied = Some((want, Pair::essence(&answer)));
            due = pair.due_up.take();
        });
        self.carried(Direction::Up, due);
        Ok(())
    }

    async fn say(&self, place: &Place, here: &Here, status: Option<Value>) -> Result<(), Error> {
        let mut want = here.clone();
        match status.clone() {
            Some(status) => want.content.insert("status".into(), status),
            None => want.content.remove("status"),
        };
        let subresource = self.bound.has_status.then_some("status");
        let answer = self.store.write(BY, here, self.here.replace(&want, subresource)).await?;
        let became = answer.content.get("status").cloned();
        let mut due = None;
        self.store.note(place, |pair| {
            pair.said = Some((status, became));
            due = pair.due_down.take();
        });
        self.carried(Direction::Down, due);
        Ok(())
    }

    fn carried(&self, direction: Direction, due: Option<Instant>) {
        if let Some(due) = due {
            self.contract.env.metrics.bind().carried(direction, due.elapsed());
        }
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

fn version<S: 'static>(object: Option<&kit::custom::Custom<S>>) -> Option<String> {
    object.and_then(ResourceExt::resource_version)
}
