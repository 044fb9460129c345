//! Watches what a provider has to know, and wakes who has to look at it.

use std::fmt;

use api::{
    bind::{binding::ClusterBinding, label},
    view::Meta,
};
use kit::{
    boot::Env,
    index::Shared,
    metrics::Tally,
    objects::Change,
    queue::{Party, Queue},
    watch::{Gather, Source, Watches},
};
use kube::{Api, Resource, ResourceExt, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Mutex, RwLock},
    task::JoinSet,
};

use super::{
    concerns::{self, Concerns, Event},
    key::Key,
    known::{Known, Place},
    lean::Gathered,
    turns::Turns,
};

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
    /// Whoever gives rights in Namespaces of a consumer reads: no export of it takes back what is being given in its name.
    pub(super) giving: Turns<RwLock<()>>,
    /// Whoever judges a request of a consumer is alone with that: another one may ask for the same.
    pub(super) turns: Turns<Mutex<()>>,
    contracts: Tally,
}

impl Knowledge {
    /// Nothing yet. `contracts` counts them by side and state.
    pub(super) fn new(contracts: Tally) -> Self {
        let pace = std::time::Duration::from_millis(50);
        Self {
            known: Shared::default(),
            giving: Turns::default(),
            turns: Turns::default(),
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
            |_, _, _| Concerns::Offer,
        );
        begin.watch(
            "APIServiceExportTemplate",
            (Api::all(all()), plain()),
            |known, change| known.templates.change(change),
            |_, _, _| Concerns::Offer,
        );
        begin.watch(
            "BindableResourcesRequest",
            (asks, plain()),
            |known, change| known.asks.change(change),
            |_, ask, _| Concerns::Ask(ask.name_any()),
        );
        begin.watch_gathering(
            "APIServiceExportRequest",
            (Api::all(all()), plain()),
            Gathered::default(),
            |known, change| known.requests.change(change),
            |_, request, _| Concerns::Request(Key::of(request)),
        );
        begin.watch(
            "APIServiceExport",
            (Api::all(all()), plain()),
            |known, change| known.exports.change(change),
            |known, export, event| {
                let before = known.exports.named(&Key::of(export).pair());
                concerns::of_export(before, export.object.as_ref().ok(), export, event)
            },
        );
        begin.watch(
            "BoundSchema",
            (Api::all(all()), plain()),
            |known, change| known.schemas.change(change),
            |known, schema, event| {
                let before = known.schemas.named(&Key::of(schema).pair());
                concerns::of_schema(before, schema.object.as_ref().ok(), schema, event)
            },
        );
        begin.watch_gathering(
            "APIServiceNamespace",
            (Api::all(all()), plain()),
            Gathered::default(),
            |known, change| known.namespaces.change(change),
            |_, namespace, _| Concerns::Space(Key::of(namespace)),
        );
        begin.watch(
            "ClusterBinding",
            (Api::<Meta<ClusterBinding>>::all(all()), plain()),
            |_, _| {},
            |_, binding, event| concerns::of_cluster_binding(binding, event),
        );
        begin.watch(
            "Namespace",
            (Api::all(all()), places),
            |known, change| known.places.change(change),
            |_, place: &Place, _| concerns::of_place(place),
        );
    }

    /// Whether all is to be listed again: consumers had more than is kept, and there is room now.
    pub(super) fn wants_list(&self) -> bool {
        self.known.with(|known| known.requests.wants_list() || known.namespaces.wants_list())
    }

    /// The credential of this cluster namespace is not there.
    pub(super) fn wants_credential(&self, cluster_namespace: String) {
        self.queues.credentials.enqueue_of([alone(cluster_namespace)]);
    }

    /// Who has to look again.
    fn wake(&self, concerns: &Concerns) {
        let queues = &self.queues;
        self.known.with(|known| {
            if concerns.may_change_contracts() {
                self.contracts.count("", known.contracts().map(|(state, many)| (["provider", state], many)));
            }
            match concerns {
                Concerns::All | Concerns::Offer | Concerns::Contract(_) => {
                    queues.asks.enqueue(known.asks.iter().map(ResourceExt::name_any));
                }
                Concerns::Ask(name) => queues.asks.enqueue([name.clone()]),
                _ => {}
            }
            match concerns {
                Concerns::All => {
                    queues.credentials.enqueue_of(known.places.iter().map(ResourceExt::name_any).map(alone));
                }
                Concerns::Contract(name) | Concerns::Credential(name) => {
                    queues.credentials.enqueue_of([alone(name.clone())]);
                }
                _ => {}
            }
            queues.requests.enqueue_of(concerns::requests(concerns, known).into_iter().map(Key::in_turn));
            match concerns {
                Concerns::All => {
                    queues.exports.enqueue_of(known.exports.iter().map(Key::of).map(Key::in_turn))
                }
                Concerns::Contract(of) | Concerns::Exports(of) => {
                    queues.exports.enqueue_of(known.exports_of(of).map(Key::of).map(Key::in_turn));
                }
                Concerns::Export(key) => queues.exports.enqueue_of([key.clone().in_turn()]),
                _ => {}
            }
            queues.namespaces.enqueue_of(concerns::spaces(concerns, known).into_iter().map(Key::in_turn));
        });
    }
}

/// A cluster namespace in the turn of its consumer.
fn alone(name: String) -> (String, Party) {
    let party = Party::of([&name]);
    (name, party)
}

struct Begin<'a> {
    this: &'a Knowledge,
    env: &'a Env,
    watches: &'a Watches,
    tasks: &'a mut JoinSet<()>,
}

impl Begin<'_> {
    /// Of a kind of which the leader, or an administrator, says how many there are.
    fn watch<P>(
        &mut self,
        kind: &'static str,
        all: (Api<P>, watcher::Config),
        fold: fn(&mut Known, Change<P>),
        concerns: fn(&Known, &P, Event) -> Concerns,
    ) where
        P: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        self.watch_gathering(kind, all, Vec::new(), fold, concerns);
    }

    fn watch_gathering<P, G>(
        &mut self,
        kind: &'static str,
        all: (Api<P>, watcher::Config),
        initial: G,
        fold: fn(&mut Known, Change<P>),
        concerns: fn(&Known, &P, Event) -> Concerns,
    ) where
        P: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
        G: Gather<P> + Send + 'static,
    {
        let knowledge = self.this.clone();
        let sink = move |change: Change<P>| {
            let concerned = knowledge.known.with(|known| {
                let concerned = match &change {
                    Change::Apply(object) => concerns(known, object, Event::Applied),
                    Change::Remove(object) => concerns(known, object, Event::Removed),
                    Change::Reset(_) => Concerns::All,
                };
                fold(known, change);
                concerned
            });
            knowledge.wake(&concerned);
        };
        let source = Source { cluster: "local", kind };
        let metrics = self.env.metrics.clone();
        self.tasks.spawn(self.watches.watch_gathering(all, source, metrics, initial, sink));
    }
}
