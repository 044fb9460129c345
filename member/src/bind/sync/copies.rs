//! The watches at the provider: of the whole cluster, of the cluster namespace, or of each Namespace that is assigned to one of ours.

mod watched;

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

use self::watched::{Assigned, Scope, Watched};
use super::{
    Bound,
    entry::{At, Pair, There},
    raw::{Lightened, Raw},
};
use crate::bind::contract::Contract;

/// How often it is looked whether a watch is refused.
pub(super) const LOOK: Duration = Duration::from_secs(5);

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
            self.sort_anew(&known);
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = changes.changed() => {}
                _ = looks.tick() => self.look(),
                Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
            }
        }
        tasks.shutdown().await;
    }

    /// Whose place an object is at follows from the Namespaces that are assigned: what was at nobody's is listed again.
    fn sort_anew(&self, assigned: &Assigned) {
        let (now, is_sorted) = (Instant::now(), self.bound.strategy == Strategy::Namespaced);
        let is_in = |scope: &Scope, theirs: &Result<String, String>| {
            is_sorted && theirs.as_ref().is_ok_and(|theirs| self.scope(Some(theirs)).as_ref() == Some(scope))
        };
        self.watched.with(|all| {
            for (scope, watched) in all {
                let covered = assigned.iter().filter(|(_, theirs)| is_in(scope, theirs));
                let covered = covered.map(|(ours, theirs)| (ours.clone(), theirs.clone())).collect();
                watched.assigned(&covered, now);
            }
        });
    }

    fn assigned_anew(&self, before: &Assigned, now: &Assigned) {
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
        ended.iter().for_each(|scope| self.store.listed_within::<There>(|name| scope.has(name), Vec::new()));
        for scope in wanted {
            let is_new = self.watched.with(|all| !all.contains_key(&scope));
            if is_new {
                let watched = Watched::new(Instant::now());
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
        let assigned = self.contract.all_assigned();
        let change: Change<There> = change.map(|object| self.placed(object, &assigned));
        let Change::Reset(objects) = change else { return self.store.change(change) };
        self.store.listed_within(|name| scope.has(name), objects);
        self.watched.with(|all| {
            if let Some(watched) = all.get_mut(scope) {
                watched.listed(assigned);
            }
        });
        // Those without a copy were waiting for the list.
        self.store.enqueue_all(Readers::ALL);
    }

    fn placed(&self, object: Raw, assigned: &Assigned) -> There {
        let there = Place { namespace: object.namespace(), name: object.name_any() };
        let mapping = Mapping {
            strategy: self.bound.strategy,
            cluster_namespace: &self.contract.cluster_namespace.name,
        };
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
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bind::fixture;

    fn copies(informer_scope: InformerScope) -> Copies {
        let bound = Bound { informer_scope, ..fixture::bound() };
        Copies::new(bound, fixture::contract(), Store::new([kit::queue::Queue::new(Duration::ZERO)]))
    }

    fn raw(namespace: &str, version: u64) -> Raw {
        let metadata = json!({"name": "foo", "namespace": namespace, "uid": "p1", "resourceVersion": version.to_string()});
        serde_json::from_str(&json!({ "metadata": metadata }).to_string()).unwrap()
    }

    fn version(copies: &Copies) -> Option<String> {
        copies.store.get(&Place::within("team1", "foo"))?.there.as_ref()?.resource_version()
    }

    #[tokio::test]
    async fn in_a_namespace_that_is_assigned_anew_nothing_is_written_before_it_was_listed() {
        let (copies, mut tasks) = (copies(InformerScope::Cluster), JoinSet::new());
        fixture::assign(&copies.contract, "team2", "team2");
        copies.follow(&copies.contract.all_assigned(), &mut tasks);
        copies.told(&Scope::All, Change::Reset(vec![raw("team1", 7)]));
        let are_told = |namespace| copies.are_told(Some(namespace), Some(namespace));
        assert!(are_told("team2") && version(&copies).is_none());
        fixture::assign(&copies.contract, "team1", "team1");
        assert!(!are_told("team1") && are_told("team2"), "at once, whatever the task that follows has seen");
        copies.sort_anew(&copies.contract.all_assigned());
        assert!(!are_told("team1") && are_told("team2"));
        copies.told(&Scope::All, Change::Reset(vec![raw("team1", 7)]));
        assert_eq!(
            (are_told("team1"), version(&copies).as_deref()),
            (true, Some("7")),
            "what is there is known"
        );
    }

    #[tokio::test]
    async fn a_list_of_a_restored_provider_replaces_newer_versions() {
        let (copies, mut tasks) = (copies(InformerScope::Namespaced), JoinSet::new());
        fixture::assign(&copies.contract, "team1", "there");
        copies.follow(&copies.contract.all_assigned(), &mut tasks);
        let scope = Scope::Within("there".to_owned());
        for listed in [9, 2] {
            copies.told(&scope, Change::Reset(vec![raw("there", listed)]));
            assert_eq!(version(&copies), Some(listed.to_string()));
        }
        copies.told(&scope, Change::Reset(Vec::new()));
        assert_eq!(version(&copies), None);
    }
}
