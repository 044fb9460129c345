//! The link to a leader: watches here and in the Common Area, the controllers between them, and our presence there.

use std::time::{Duration, Instant};

use api::{ServiceName, label, name, resource_export::ENDPOINT_SLICE};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{
    boot::Env,
    drive::{Queue, drive},
    index::{Part, Shared},
    lease::{self, LeaseView, Presence},
    vouch::Vouching,
    watch::{Source, Watches},
    write::Writer,
};
use kube::{Api, Client, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    membership::Target,
    presence,
    service::{
        entry::{Known, ServiceEntry},
        export::Exporting,
        import::Importing,
        status::Telling,
        view::{Derived, Export, HubImport, Import, Namespace, OwnRecord, PeerSlice, Service, Slice},
    },
};

/// A slice record is written at once, then at most this often.
const EXPORT_PACE: Duration = Duration::from_millis(250);
const RETRY: Duration = Duration::from_secs(2);

/// How it stands with the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No answer yet.
    Connecting,
    /// Present at the leader, and everything has been seen once.
    Connected,
    /// No answer any more, or a refusal.
    Lost {
        /// In words.
        error: String,
    },
    /// A live cluster has our ID.
    IdTaken {
        /// Who.
        holder: String,
    },
}

/// What all parts of a link share.
#[derive(Clone)]
struct Link {
    env: Env,
    known: Shared<Known>,
    vouching: Shared<Vouching<ServiceName>>,
    exports: Queue<ServiceName>,
    imports: Queue<ServiceName>,
    tellings: Queue<ServiceName>,
    local: Watches,
    hub: Watches,
}

/// Exports and imports by way of the leader that `client` reaches, until `stop`, or until our ID turns out to be taken.
pub async fn run(
    env: Env,
    target: Target,
    client: Client,
    state: watch::Sender<State>,
    stop: CancellationToken,
) {
    let link = Link {
        env: env.clone(),
        known: Shared::default(),
        vouching: Shared::default(),
        exports: Queue::new(EXPORT_PACE),
        imports: Queue::new(Duration::ZERO),
        tellings: Queue::new(Duration::ZERO),
        local: Watches::default(),
        hub: Watches::default(),
    };
    let mut tasks = JoinSet::new();
    link.watch_here(&mut tasks);
    link.watch_there(&mut tasks, &client, &target);

    let (presence, mut present) = watch::channel(Presence::Unknown);
    let settled = {
        let link = link.clone();
        move || {
            let now = Instant::now();
            link.local.are_open(now) && link.hub.are_open(now) && link.exports.is_idle()
        }
    };
    let leases = Api::<Lease>::namespaced(client.clone(), &target.us.common_area);
    tasks.spawn(lease::keep(
        leases,
        name::member_lease(&target.us.cluster),
        env.holder.clone(),
        settled,
        presence,
    ));
    tasks.spawn(introduce(env.clone(), target.clone(), client.clone(), present.clone()));

    let gauge = env.metrics.present(&target.us.common_area);
    let controllers = link.control(&target, &client, present.clone(), stop.clone());
    tokio::pin!(controllers);
    let mut was_present = false;
    loop {
        let now = present.borrow_and_update().clone();
        gauge.set(i64::from(now == Presence::Held));
        was_present |= now == Presence::Held;
        let told = match now {
            Presence::Unknown => State::Connecting,
            Presence::Held if link.hub.are_listed() => State::Connected,
            Presence::Held => State::Connecting,
            Presence::Failing { error } => State::Lost { error },
            // Whoever took our ID while we were silent exports under it now: everything starts anew, and waits.
            Presence::Taken { .. } if was_present => return,
            Presence::Taken { holder } => State::IdTaken { holder },
        };
        let connecting = told == State::Connecting;
        state.send_if_modified(|old| std::mem::replace(old, told.clone()) != told);
        tokio::select! {
            () = &mut controllers => break,
            Ok(()) = present.changed() => {}
            () = link.hub.listed(), if connecting && was_present => {}
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    }
    gauge.set(0);
}

impl Link {
    /// Everything that changes about a Service name is for all three controllers to look at.
    fn mark(&self, services: impl IntoIterator<Item = ServiceName>) {
        let services: Vec<_> = services.into_iter().collect();
        self.exports.mark(services.iter().cloned());
        self.imports.mark(services.iter().cloned());
        self.tellings.mark(services);
    }

    fn watch_here(&self, tasks: &mut JoinSet<()>) {
        let ours = &self.env.client;
        let link = self.clone();
        tasks.spawn(self.local.watch(
            Api::<Service>::all(ours.clone()),
            watcher::Config::default(),
            here("Service"),
            self.env.metrics.clone(),
            move |change| {
                let derived = change.clone().map(Derived::from);
                link.mark(link.known.with(|known| known.services.change(derived)));
                link.mark(link.known.with(|known| known.services.change(change)));
            },
        ));
        let link = self.clone();
        tasks.spawn(self.local.watch(
            Api::<Namespace>::all(ours.clone()),
            watcher::Config::default(),
            here("Namespace"),
            self.env.metrics.clone(),
            move |change| {
                link.mark(link.known.with(|known| {
                    let namespaces = known.namespaces.change(change);
                    known.within(&namespaces)
                }));
            },
        ));
        self.index(tasks, &self.local, Api::<Export>::all(ours.clone()), here("ServiceExport"), "");
        self.index(
            tasks,
            &self.local,
            Api::<Slice>::all(ours.clone()),
            here("EndpointSlice"),
            label::SERVICE_NAME,
        );
        self.index(tasks, &self.local, Api::<Import>::all(ours.clone()), here("ServiceImport"), "");
    }

    fn watch_there(&self, tasks: &mut JoinSet<()>, client: &Client, target: &Target) {
        let (us, area) = (&target.us.cluster, &target.us.common_area);
        let own = format!("{}={us}", label::SOURCE_CLUSTER_ID);
        let peers = format!("{}!={us},{}={ENDPOINT_SLICE}", label::SOURCE_CLUSTER_ID, label::SOURCE_KIND);
        let records = Api::<OwnRecord>::namespaced(client.clone(), area);
        self.index(tasks, &self.hub, records, there("own ResourceExport"), &own);
        let records = Api::<PeerSlice>::namespaced(client.clone(), area);
        self.index(tasks, &self.hub, records, there("ResourceExport"), &peers);
        let imports = Api::<HubImport>::namespaced(client.clone(), area);
        self.index(tasks, &self.hub, imports, there("ResourceImport"), "");
        let link = self.clone();
        tasks.spawn(self.hub.watch(
            Api::<LeaseView>::namespaced(client.clone(), area),
            watcher::Config::default(),
            there("Lease"),
            self.env.metrics.clone(),
            move |change| link.imports.mark(link.vouching.with(|vouching| vouching.change(change))),
        ));
    }

    /// Watches what `selector` selects of a kind into the index.
    fn index<P>(
        &self,
        tasks: &mut JoinSet<()>,
        watches: &Watches,
        api: Api<P>,
        source: Source,
        selector: &str,
    ) where
        P: Part<ServiceName, ServiceEntry> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync,
    {
        let link = self.clone();
        let config = watcher::Config::default().labels(selector);
        tasks.spawn(watches.watch(api, config, source, self.env.metrics.clone(), move |change| {
            link.mark(link.known.with(|known| known.services.change(change)));
        }));
    }

    /// Runs the controllers until `stop`. What users see is told as soon as this cluster has been seen; nothing is exported
    /// or imported before the Common Area has been seen too and our ID is ours.
    async fn control(
        &self,
        target: &Target,
        leader: &Client,
        mut present: watch::Receiver<Presence>,
        stop: CancellationToken,
    ) {
        let metrics = &self.env.metrics;
        let here = Writer::new(self.env.client.clone(), label::MEMBER, "local", metrics.clone());
        let there = Writer::new(leader.clone(), label::MEMBER, "leader", metrics.clone());
        let telling = Telling {
            cluster: target.us.cluster.clone(),
            known: self.known.clone(),
            hub: self.hub.clone(),
            writer: here.clone(),
            events: self.env.events.clone(),
        };
        let exporting = Exporting { us: target.us.clone(), known: self.known.clone(), writer: there };
        let importing = Importing {
            us: target.us.clone(),
            known: self.known.clone(),
            vouching: self.vouching.clone(),
            leader: leader.clone(),
            writer: here,
            events: self.env.events.clone(),
        };
        let tell = async {
            if before(&stop, self.local.listed()).await {
                let look = |key| telling.clone().reconcile(key);
                drive("status", self.tellings.clone(), metrics.clone(), stop.clone(), look).await;
            }
        };
        let exchange = async {
            let everything = async {
                self.local.listed().await;
                self.hub.listed().await;
                self.tellings
                    .mark(self.known.with(|known| known.services.keys().cloned().collect::<Vec<_>>()));
                present.wait_for(|now| *now == Presence::Held).await.is_ok()
            };
            if before(&stop, everything).await {
                tokio::join!(
                    drive("export", self.exports.clone(), metrics.clone(), stop.clone(), |key| {
                        exporting.clone().reconcile(key)
                    }),
                    drive("import", self.imports.clone(), metrics.clone(), stop.clone(), |key| {
                        importing.clone().reconcile(key)
                    }),
                );
            }
        };
        tokio::join!(tell, exchange);
    }
}

fn here(kind: &'static str) -> Source {
    Source { cluster: "local", kind }
}

fn there(kind: &'static str) -> Source {
    Source { cluster: "leader", kind }
}

/// Waits for `what`, but not beyond `stop`; whether it came.
async fn before<T>(stop: &CancellationToken, what: impl Future<Output = T>) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        _ = what => true,
    }
}

/// Announces us once we are present.
async fn introduce(env: Env, target: Target, client: Client, mut present: watch::Receiver<Presence>) {
    let writer = Writer::new(client.clone(), label::MEMBER, "leader", env.metrics.clone());
    while present.wait_for(|now| *now == Presence::Held).await.is_ok() {
        let announced =
            presence::announce(&target.us, &target.cluster_set, target.leader.as_deref(), &client, &writer)
                .await;
        match announced {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "the announce was not written, trying again"),
        }
        tokio::time::sleep(RETRY).await;
    }
}
