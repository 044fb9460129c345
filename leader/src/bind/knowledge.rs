//! Watches what a provider has to know, and wakes who has to look at it.

use std::{fmt, sync::Arc};

use api::bind::label;
use kit::{
    boot::Env,
    index::Shared,
    metrics::Tally,
    objects::{Change, Decoded},
    queue::Queue,
    watch::{Source, Watches},
};
use kube::{Api, Resource, ResourceExt, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::{sync::RwLock, task::JoinSet};

use super::known::{Key, Known, Place};

/// The queues of the controllers.
#[derive(Clone)]
pub(super) struct Queues {
    pub(super) asks: Queue<String>,
    pub(super) credentials: Queue<String>,
    pub(super) requests: Queue<Key>,
    pub(super) exports: Queue<Key>,
    pub(super) namespaces: Queue<Key>,
}

/// What is known, and who has to look at it. Cloning shares it.
#[derive(Clone)]
pub(super) struct Knowledge {
    pub(super) known: Shared<Known>,
    pub(super) queues: Queues,
    /// Whoever gives rights in Namespaces reads: no export takes back what is being given in its name.
    pub(super) giving: Arc<RwLock<()>>,
    contracts: Tally,
}

/// What a change concerns.
enum Concerns {
    /// One cluster namespace.
    Contract(String),
    /// Whatever waits for something that is offered.
    Offer,
}

impl Knowledge {
    /// Nothing yet. `contracts` counts them by side and state.
    pub(super) fn new(contracts: Tally) -> Self {
        let pace = std::time::Duration::from_millis(50);
        Self {
            known: Shared::default(),
            giving: Arc::default(),
            contracts,
            queues: Queues {
                asks: Queue::new(pace),
                credentials: Queue::new(pace),
                requests: Queue::new(pace),
                exports: Queue::new(pace),
                namespaces: Queue::new(pace),
            },
        }
    }

    /// Begins to watch.
    pub(super) fn watch(&self, env: &Env, watches: &Watches, tasks: &mut JoinSet<()>) {
        let all = || env.client.clone();
        let plain = watcher::Config::default;
        let exported = plain().labels(&format!("{}=true", label::EXPORTED));
        let places = plain().labels(label::BIND);
        let asks = Api::namespaced(all(), &env.namespace);
        let mut begin = Begin { this: self, env, watches, tasks };
        begin.watch(
            "CustomResourceDefinition",
            (Api::all(all()), exported),
            |known, change| known.crds.change(change),
            |_| Concerns::Offer,
        );
        begin.watch(
            "APIServiceExportTemplate",
            (Api::all(all()), plain()),
            |known, change| known.templates.change(change),
            |_| Concerns::Offer,
        );
        begin.watch(
            "BindableResourcesRequest",
            (asks, plain()),
            |known, change| known.asks.change(change),
            |_| Concerns::Offer,
        );
        begin.watch(
            "APIServiceExportRequest",
            (Api::all(all()), plain()),
            |known, change| known.requests.change(change),
            inside,
        );
        begin.watch(
            "APIServiceExport",
            (Api::all(all()), plain()),
            |known, change| known.exports.change(change),
            inside,
        );
        begin.watch(
            "BoundSchema",
            (Api::all(all()), plain()),
            |known, change| known.schemas.change(change),
            inside,
        );
        begin.watch(
            "APIServiceNamespace",
            (Api::all(all()), plain()),
            |known, change| known.namespaces.change(change),
            inside,
        );
        begin.watch(
            "ClusterBinding",
            (Api::all(all()), plain()),
            |known, change| known.cluster_bindings.change(change),
            inside,
        );
        begin.watch(
            "Namespace",
            (Api::all(all()), places),
            |known, change| known.places.change(change),
            |place: &Place| {
                let made_for = place.annotations().get(label::API_SERVICE_NAMESPACE);
                let of = made_for.and_then(|name| Some(name.split_once('/')?.0.to_owned()));
                Concerns::Contract(of.unwrap_or_else(|| place.name_any()))
            },
        );
    }

    /// Who has to look again.
    fn wake(&self, concerns: &Concerns) {
        let is_of = |namespace: Option<&String>| match concerns {
            Concerns::Contract(name) => namespace == Some(name),
            Concerns::Offer => true,
        };
        let queues = &self.queues;
        self.known.with(|known| {
            self.contracts.count("", known.contracts().map(|(state, many)| (["provider", state], many)));
            queues.asks.enqueue(known.asks.iter().map(ResourceExt::name_any));
            let contracts = known.places.iter().map(ResourceExt::name_any);
            queues.credentials.enqueue(contracts.filter(|name| is_of(Some(name))));
            queues.requests.enqueue(keys(&known.requests, is_of));
            queues.exports.enqueue(keys(&known.exports, is_of));
            queues.namespaces.enqueue(keys(&known.namespaces, is_of));
        });
    }
}

fn keys<P: Resource>(of: &Decoded<P>, is_of: impl Fn(Option<&String>) -> bool) -> Vec<Key> {
    of.iter().filter(|object| is_of(object.meta().namespace.as_ref())).map(Key::of).collect()
}

fn inside<P: Resource>(object: &P) -> Concerns {
    Concerns::Contract(object.meta().namespace.clone().unwrap_or_default())
}

struct Begin<'a> {
    this: &'a Knowledge,
    env: &'a Env,
    watches: &'a Watches,
    tasks: &'a mut JoinSet<()>,
}

impl Begin<'_> {
    fn watch<P>(
        &mut self,
        kind: &'static str,
        (api, config): (Api<P>, watcher::Config),
        fold: fn(&mut Known, Change<P>),
        concerns: fn(&P) -> Concerns,
    ) where
        P: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let knowledge = self.this.clone();
        let sink = move |change: Change<P>| {
            let concerned = match &change {
                Change::Apply(object) | Change::Remove(object) => concerns(object),
                Change::Reset(_) => Concerns::Offer,
            };
            knowledge.known.with(|known| fold(known, change));
            knowledge.wake(&concerned);
        };
        let source = Source { cluster: "local", kind };
        self.tasks.spawn(self.watches.watch(api, config, source, self.env.metrics.clone(), sink));
    }
}
