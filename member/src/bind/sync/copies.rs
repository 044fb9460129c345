//! The watches at the provider: of the whole cluster, of the cluster namespace, or of each Namespace that is assigned to one of ours.

mod placed;
mod watched;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
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
use kube::{Api, Client, ResourceExt, runtime::watcher};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    placed::Placed,
    watched::{Covered, Scope, Watched},
};
use super::{
    Bound,
    entry::{At, Pair, There},
    raw::Raw,
};
use crate::bind::{
    contract::{Assigned, Contract, Stream, WATCHES_MAX},
    local::Local,
};

/// How often it is looked whether a watch is refused.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// The watches of one API. Cloning shares them.
#[derive(Clone)]
pub(super) struct Copies {
    bound: Bound,
    contract: Contract,
    local: Local,
    store: Store<Place, Pair>,
    watched: Shared<BTreeMap<Scope, Watched>>,
    counted: Tally,
}

impl Copies {
    pub(super) fn new(bound: Bound, contract: Contract, local: Local, store: Store<Place, Pair>) -> Self {
        let counted = contract.env.metrics.bind().watches();
        Self { bound, contract, local, store, watched: Shared::default(), counted }
    }

    /// Whether all is known of where the copies of objects of this Namespace are, for which this one is assigned there.
    pub(super) fn are_told(&self, namespace: Option<&str>, assigned: Option<&str>) -> bool {
        let Some(scope) = self.scope(assigned) else { return true };
        let is_told = |watched: &Watched| watched.is_told(namespace.zip(assigned));
        self.watched.with(|all| all.get(&scope).is_some_and(is_told))
    }

    /// Why nothing is told of where those copies are.
    pub(super) fn refused(&self, assigned: Option<&str>) -> Option<Failure> {
        let scope = self.scope(assigned)?;
        self.watched.with(|all| all.get(&scope)?.refused().cloned())
    }

    /// Whether the provider has not served the API for some time.
    pub(super) fn are_unserved(&self, assigned: Option<&str>) -> bool {
        let Some(scope) = self.scope(assigned) else { return false };
        self.watched.with(|all| all.get(&scope).is_some_and(Watched::is_unserved))
    }

    /// Whether watches have told nothing in time, and not because the provider refuses them.
    pub(super) fn are_late(&self) -> bool {
        let is_silent = |watched: &Watched| {
            watched.is_late(Instant::now()) && !watched.refused().is_some_and(Failure::is_refusal)
        };
        self.watched.with(|all| all.values().any(is_silent))
    }

    /// Takes in which watches are refused. Those whose objects wait for them say so.
    fn look(&self) {
        let now = Instant::now();
        let is_news = self
            .watched
            .with(|all| all.values_mut().fold(false, |is_news, watched| watched.look(now) | is_news));
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
        let (mut changes, mut here) = (self.contract.changes(), self.local.changes());
        let (mut tasks, mut looks) = (JoinSet::new(), tokio::time::interval(LOOK));
        let mut known = Arc::<Assigned>::default();
        loop {
            changes.mark_unchanged();
            here.mark_unchanged();
            let assigned = self.contract.all_assigned();
            if assigned != known {
                self.assigned_anew(&known, &assigned);
            }
            known = assigned;
            self.follow(&known, &mut tasks);
            self.sort_anew(&known);
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = changes.changed() => {}
                Ok(()) = here.changed() => {}
                _ = looks.tick() => self.look(),
                Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
            }
        }
        tasks.shutdown().await;
    }

    /// Whose place an object is at follows from the Namespaces that are assigned: what was at nobody's is listed again.
    fn sort_anew(&self, assigned: &Assigned) {
        let now = Instant::now();
        self.watched.with(|all| {
            all.iter_mut().for_each(|(scope, watched)| watched.assigned(&self.covered(scope, assigned), now));
        });
    }

    /// The Namespaces of ours whose objects this watch covers.
    fn covered(&self, scope: &Scope, assigned: &Assigned) -> Covered {
        match (self.bound.strategy, scope) {
            (Strategy::Namespaced, Scope::All) => {
                assigned.given().map(|(ours, theirs)| (ours.clone(), theirs.clone())).collect()
            }
            (Strategy::Namespaced, Scope::Within(theirs)) => {
                assigned.ours(theirs).iter().map(|ours| (ours.clone(), theirs.clone())).collect()
            }
            _ => Covered::new(),
        }
    }

    fn assigned_anew(&self, before: &Assigned, now: &Assigned) {
        let keys = self.store.keys().into_iter();
        // One that was taken away has to be asked for again.
        let concerned = keys.filter(|place| {
            place.namespace.as_ref().is_some_and(|namespace| !now.says_as(before, namespace))
        });
        self.store.enqueue(concerned.map(|place| (place, Readers::ALL)).collect());
    }

    /// What is to be watched, those with objects here first, then those that are here: where we asked for one and lost ours, copies may be
    /// left. A provider may assign any number of others, and who is not here has no objects.
    fn wanted(&self, assigned: &Assigned) -> Vec<Scope> {
        if let Some(scope) = self.scope(None) {
            return vec![scope];
        }
        let with_objects: BTreeSet<_> =
            self.store.keys().into_iter().filter_map(|place| place.namespace).collect();
        let is_here = |ours: &str| self.local.known.with(|known| known.namespaces.get(ours).is_some());
        let rank = |ours: &String| match () {
            () if with_objects.contains(ours) => Some(0),
            () if is_here(ours) => Some(1),
            () => assigned.is_asked_for(ours).then_some(2),
        };
        let mut all: Vec<_> =
            assigned.given().filter_map(|(ours, theirs)| Some((rank(ours)?, theirs))).collect();
        all.sort();
        all.into_iter().map(|(_, theirs)| Scope::Within(theirs.clone())).collect()
    }

    fn follow(&self, assigned: &Assigned, tasks: &mut JoinSet<()>) {
        let wanted = self.wanted(assigned);
        let all_wanted: BTreeSet<_> = wanted.iter().collect();
        let ended = self.watched.with(|all| {
            let ended: Vec<_> = all.keys().filter(|scope| !all_wanted.contains(scope)).cloned().collect();
            ended.iter().filter_map(|scope| all.remove(scope)).for_each(|watched| watched.stop.cancel());
            ended
        });
        ended.iter().for_each(|scope| self.store.listed_within::<There>(|name| scope.has(name), Vec::new()));
        for scope in wanted {
            if self.watched.with(|all| all.get(&scope).is_none_or(Watched::has_no_room)) {
                self.begin(scope, tasks);
            }
        }
        let count = i64::try_from(self.watched.with(|all| all.len())).unwrap_or(i64::MAX);
        self.counted.count("", [([self.bound.api().as_str()], count)]);
    }

    fn begin(&self, scope: Scope, tasks: &mut JoinSet<()>) {
        let Some((client, stream)) = self.contract.watching() else {
            let why = format!("the contract has {WATCHES_MAX} watches already");
            self.watched.with(|all| all.insert(scope, Watched::without_room(Failure::Other(why))));
            return;
        };
        let watched = Watched::new(Instant::now());
        let (stop, watches) = (watched.stop.clone(), watched.watches.clone());
        let restored = self.contract.restored.clone();
        let watch = self.watch(&scope, (client, stream), &watched.watches);
        self.watched.with(|all| all.insert(scope, watched));
        tasks.spawn(async move {
            tokio::select! {
                () = watch => {}
                () = watches.restored() => restored.cancel(),
                () = stop.cancelled() => {}
            }
        });
    }

    fn watch(
        &self,
        scope: &Scope,
        (client, stream): (Client, Stream),
        watches: &Watches,
    ) -> impl Future<Output = ()> + Send + use<> {
        let resource = &self.bound.resource;
        let api: Api<Raw> = match scope {
            Scope::All => Api::all_with(client, resource),
            Scope::Within(namespace) => Api::namespaced_with(client, namespace, resource),
        };
        let (this, scope) = (self.clone(), scope.clone());
        let listed = Shared::<Arc<Assigned>>::default();
        let gather = Placed { copies: self.clone(), assigned: listed.clone(), kept: Vec::new() };
        let watch = watches.watch_gathering(
            (api, watcher::Config::default()),
            Source { cluster: "provider", kind: "copy" },
            self.contract.env.metrics.clone(),
            gather,
            move |change| {
                let assigned = match &change {
                    Change::Reset(_) => listed.with(|assigned| assigned.clone()),
                    _ => this.contract.all_assigned(),
                };
                this.told(&scope, change, &assigned);
            },
        );
        async move {
            let _stream = stream;
            watch.await;
        }
    }

    /// Takes in what a watch told when these Namespaces were assigned: of a list, what of its scope it does not have is gone.
    fn told(&self, scope: &Scope, change: Change<Raw>, assigned: &Assigned) {
        let cns = &self.contract.cluster_namespace.name;
        let placed = |object: Raw| {
            let at = At { place: self.place(&object, assigned), seen: Some(Instant::now()) };
            object.lightened(cns).opened(at)
        };
        let change: Change<There> = change.map(placed);
        let Change::Reset(objects) = change else { return self.store.change(change) };
        self.store.listed_within(|name| scope.has(name), objects);
        self.watched.with(|all| {
            if let Some(watched) = all.get_mut(scope) {
                watched.listed(self.covered(scope, assigned));
            }
        });
        // Those without a copy were waiting for the list.
        self.store.enqueue_all(Readers::ALL);
    }

    /// The place here of an object there; nothing where it is at nobody's.
    fn place(&self, object: &Raw, assigned: &Assigned) -> Option<Place> {
        let there = Place { namespace: object.namespace(), name: object.name_any() };
        let cluster_namespace = &self.contract.cluster_namespace.name;
        let mapping = Mapping { strategy: self.bound.strategy, cluster_namespace };
        mapping.here(&there, |theirs: &str| assigned.ours(theirs).first().map(String::as_str))
    }
}

#[cfg(test)]
mod tests;
