//! The watches at the provider: of the whole cluster, of the cluster namespace, or of each Namespace that is assigned to one of ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::bind::{
    mapping::{Mapping, Place, Strategy},
    resource::InformerScope,
};
use kit::{
    failure::Failure,
    index::{Readers, Shared},
    metrics::Tally,
    objects::Change,
    store::Store,
    watch::{Source, Watches},
};
use kube::{Api, ResourceExt, runtime::watcher};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Bound,
    entry::{At, Pair, There},
    raw::{Lightened, Raw},
};
use crate::bind::contract::{Contract, IN_TIME};

/// What one watch at the provider covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    All,
    Within(String),
}

struct Watched {
    watches: Watches,
    stop: CancellationToken,
    /// The first list is in the index.
    is_told: bool,
    begun: Instant,
    /// The provider refuses the watch, or tells nothing.
    refused: Option<Failure>,
}

impl Watched {
    /// Whether nobody knows why nothing is told.
    fn is_late(&self, now: Instant) -> bool {
        !self.is_told && now.saturating_duration_since(self.begun) > IN_TIME
    }

    fn failure(&self, now: Instant) -> Option<Failure> {
        let mut troubles = self.watches.troubles(now).into_iter().map(|trouble| trouble.failure);
        let late = || Failure::Unreachable("it tells nothing");
        match self.is_late(now) {
            true => Some(troubles.next().unwrap_or_else(late)),
            false => troubles.find(Failure::is_refusal),
        }
    }
}

/// How often it is looked whether a watch is refused.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// The provider's Namespaces, by the consumer's; or why there is none.
type Assigned = BTreeMap<String, Result<String, String>>;

/// The watches of one API. Cloning shares them.
#[derive(Clone)]
pub(super) struct Copies {
    bound: Bound,
    contract: Contract,
    store: Store<Place, Pair>,
    watched: Shared<BTreeMap<Scope, Watched>>,
    counted: Tally,
}

impl Copies {
    pub(super) fn new(bound: Bound, contract: Contract, store: Store<Place, Pair>) -> Self {
        let counted = contract.env.metrics.bind().watches();
        Self { bound, contract, store, watched: Shared::default(), counted }
    }

    /// Whether all is known of where the copy of an object is, whose Namespace is this one there.
    pub(super) fn are_told(&self, assigned: Option<&str>) -> bool {
        let Some(scope) = self.scope(assigned) else { return true };
        self.watched.with(|all| all.get(&scope).is_some_and(|watched| watched.is_told))
    }

    /// Why nothing is told of where that copy is.
    pub(super) fn refused(&self, assigned: Option<&str>) -> Option<Failure> {
        let scope = self.scope(assigned)?;
        self.watched.with(|all| all.get(&scope)?.refused.clone())
    }

    /// Whether watches have told nothing in time, and not because the provider refuses them.
    pub(super) fn are_late(&self) -> bool {
        let is_silent = |watched: &Watched| {
            watched.is_late(Instant::now()) && !watched.refused.as_ref().is_some_and(Failure::is_refusal)
        };
        self.watched.with(|all| all.values().any(is_silent))
    }

    /// Takes in which watches are refused. Those whose objects wait for them say so.
    fn look(&self) {
        let now = Instant::now();
        let is_news = self.watched.with(|all| {
            let mut is_news = false;
            for watched in all.values_mut() {
                let refused = watched.failure(now);
                is_news |= watched.refused != refused;
                watched.refused = refused;
            }
            is_news
        });
        if is_news {
            self.store.enqueue_all(Readers::ALL);
        }
    }

    /// None where nothing can be there yet.
    fn scope(&self, assigned: Option<&str>) -> Option<Scope> {
        match (self.bound.strategy, self.bound.informer_scope) {
            (Strategy::Converted, _) => Some(Scope::Within(self.contract.cluster_namespace.name.clone())),
            (Strategy::Namespaced, InformerScope::Namespaced) => {
                assigned.map(|namespace| Scope::Within(namespace.to_owned()))
            }
            _ => Some(Scope::All),
        }
    }

    /// Watches what has to be watched until `stop`.
    pub(super) async fn keep(self, stop: CancellationToken) {
        let (mut changes, mut tasks) = (self.contract.changes(), JoinSet::new());
        let (mut known, mut looks) = (BTreeMap::new(), tokio::time::interval(LOOK));
        loop {
            changes.mark_unchanged();
            let assigned = self.contract.all_assigned();
            if assigned != known {
                self.assigned_anew(&known, &assigned);
            }
            known = assigned;
            self.follow(&known, &mut tasks);
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = changes.changed() => {}
                _ = looks.tick() => self.look(),
                Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
            }
        }
        tasks.shutdown().await;
    }

    /// Whose place an object is at follows from the Namespaces that are assigned.
    fn assigned_anew(&self, before: &Assigned, now: &Assigned) {
        if self.scope(None) == Some(Scope::All) && self.bound.strategy == Strategy::Namespaced {
            self.watched.with(|all| all.values().for_each(|watched| watched.watches.list_again()));
        }
        let keys = self.store.keys().into_iter();
        // One that was taken away has to be asked for again.
        let concerned = keys.filter(|place| {
            place.namespace.as_ref().is_some_and(|namespace| before.get(namespace) != now.get(namespace))
        });
        self.store.enqueue(concerned.map(|place| (place, Readers::ALL)).collect());
    }

    fn follow(&self, assigned: &Assigned, tasks: &mut JoinSet<()>) {
        let of_namespaces = assigned.values().flatten().filter_map(|namespace| self.scope(Some(namespace)));
        let wanted: BTreeSet<_> = self.scope(None).into_iter().chain(of_namespaces).collect();
        let ended = self.watched.with(|all| {
            let ended: Vec<_> = all.keys().filter(|scope| !wanted.contains(*scope)).cloned().collect();
            ended.iter().filter_map(|scope| all.remove(scope)).for_each(|watched| watched.stop.cancel());
            ended
        });
        ended.iter().for_each(|scope| self.forget(scope, &BTreeSet::new()));
        for scope in wanted {
            let is_new = self.watched.with(|all| !all.contains_key(&scope));
            if is_new {
                let (watches, stop) = (Watches::default(), CancellationToken::new());
                let watched = Watched { watches, stop, is_told: false, begun: Instant::now(), refused: None };
                let stop = watched.stop.clone();
                let watch = self.watch(&scope, &watched.watches);
                self.watched.with(|all| all.insert(scope, watched));
                tasks.spawn(async move {
                    tokio::select! {
                        () = watch => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        }
        let count = i64::try_from(self.watched.with(|all| all.len())).unwrap_or(i64::MAX);
        self.counted.count("", [([self.bound.api().as_str()], count)]);
    }

    fn watch(&self, scope: &Scope, watches: &Watches) -> impl Future<Output = ()> + Send + use<> {
        let (client, resource) = (self.contract.watching(), &self.bound.resource);
        let api: Api<Raw> = match scope {
            Scope::All => Api::all_with(client, resource),
            Scope::Within(namespace) => Api::namespaced_with(client, namespace, resource),
        };
        let (this, scope) = (self.clone(), scope.clone());
        let cluster_namespace = self.contract.cluster_namespace.name.clone();
        watches.watch_gathering(
            (api, watcher::Config::default()),
            Source { cluster: "provider", kind: "copy" },
            self.contract.env.metrics.clone(),
            Lightened { cluster_namespace, kept: Vec::new() },
            move |change| this.told(&scope, change),
        )
    }

    /// Takes in what a watch told: of a list, what of its scope it does not have is gone.
    fn told(&self, scope: &Scope, change: Change<Raw>) {
        let change: Change<There> = change.map(|object| self.placed(object));
        let Change::Reset(objects) = change else { return self.store.change(change) };
        let listed = objects.iter().map(|object| (object.namespace(), object.name_any())).collect();
        self.forget(scope, &listed);
        objects.into_iter().for_each(|object| self.store.change(Change::Apply(object)));
        self.watched.with(|all| all.get_mut(scope).into_iter().for_each(|watched| watched.is_told = true));
        // Those without a copy were waiting for the list.
        self.store.enqueue_all(Readers::ALL);
    }

    fn placed(&self, object: Raw) -> There {
        let there = Place { namespace: object.namespace(), name: object.name_any() };
        let mapping = Mapping {
            strategy: self.bound.strategy,
            cluster_namespace: &self.contract.cluster_namespace.name,
        };
        let assigned = self.contract.all_assigned();
        let ours = |theirs: &str| {
            assigned
                .iter()
                .find(|(_, to)| to.as_ref().is_ok_and(|to| to == theirs))
                .map(|(ours, _)| ours.as_str())
        };
        let here = mapping.here(&there, ours);
        let at = At { place: here, seen: Some(Instant::now()) };
        object.lightened(&self.contract.cluster_namespace.name).opened(at)
    }

    /// Forgets the copies of a scope that are not `listed`.
    fn forget(&self, scope: &Scope, listed: &BTreeSet<(Option<String>, String)>) {
        let copies = self.store.keys().into_iter().filter_map(|place| self.store.get(&place)?.there.clone());
        for copy in copies {
            let is_in = match scope {
                Scope::All => true,
                Scope::Within(namespace) => copy.namespace().as_deref() == Some(namespace),
            };
            if is_in && !listed.contains(&(copy.namespace(), copy.name_any())) {
                self.store.change(Change::Remove((*copy).clone()));
            }
        }
    }
}
