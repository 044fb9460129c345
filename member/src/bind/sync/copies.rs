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
};
use crate::bind::contract::Contract;

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
    /// The provider refuses the watch.
    refused: Option<Failure>,
}

/// How often it is looked whether a watch is refused.
const LOOK: Duration = Duration::from_secs(5);

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

    /// Takes in which watches are refused. Those whose objects wait for them say so.
    fn look(&self) {
        let now = Instant::now();
        let is_news = self.watched.with(|all| {
            let mut is_news = false;
            for watched in all.values_mut() {
                let troubles = watched.watches.troubles(now).into_iter();
                let refused = troubles.map(|trouble| trouble.failure).find(Failure::is_refusal);
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
    fn assigned_anew(&self, before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) {
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

    fn follow(&self, assigned: &BTreeMap<String, String>, tasks: &mut JoinSet<()>) {
        let of_namespaces = assigned.values().filter_map(|namespace| self.scope(Some(namespace)));
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
                let watched = Watched { watches, stop, is_told: false, refused: None };
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
        let api: Api<There> = match scope {
            Scope::All => Api::all_with(client, resource),
            Scope::Within(namespace) => Api::namespaced_with(client, namespace, resource),
        };
        let (this, scope) = (self.clone(), scope.clone());
        watches.watch(
            api,
            watcher::Config::default(),
            Source { cluster: "provider", kind: "copy" },
            self.contract.env.metrics.clone(),
            move |change| this.told(&scope, change),
        )
    }

    /// Takes in what a watch told: of a list, what of its scope it does not have is gone.
    fn told(&self, scope: &Scope, change: Change<There>) {
        let change = change.map(|object| self.placed(object));
        let Change::Reset(objects) = change else { return self.store.change(change) };
        let listed = objects.iter().map(|object| (object.namespace(), object.name_any())).collect();
        self.forget(scope, &listed);
        objects.into_iter().for_each(|object| self.store.change(Change::Apply(object)));
        self.watched.with(|all| all.get_mut(scope).into_iter().for_each(|watched| watched.is_told = true));
        // Those without a copy were waiting for the list.
        self.store.enqueue_all(Readers::ALL);
    }

    fn placed(&self, object: There) -> There {
        let there = Place { namespace: object.namespace(), name: object.name_any() };
        let mapping = Mapping {
            strategy: self.bound.strategy,
            cluster_namespace: &self.contract.cluster_namespace.name,
        };
        let assigned = self.contract.all_assigned();
        let ours =
            |theirs: &str| assigned.iter().find(|(_, to)| *to == theirs).map(|(ours, _)| ours.as_str());
        let here = mapping.here(&there, ours);
        object.with(At { place: here, seen: Some(Instant::now()) })
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
