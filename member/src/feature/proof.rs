//! A feature as small as one can be, to show what a new feature needs: every ConfigMap with the label of a record in the Common Area
//! is a record, and its controller copies it to the daemon's Namespace.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::ConfigMap;
use kit::{
    boot::Env,
    drive::{Queue, before, drive},
    events,
    failure::{Failure, classify},
    holder::Holder,
    index::{Entry, Part, Readers, Shared},
    metrics::Metrics,
    queue::Outcome,
    serve::Readiness,
    store::Store,
    watch::{Source, Watches},
    write::{Error, Writer},
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams},
    runtime::watcher,
};
use presence::{
    heartbeat::Heartbeats,
    leases::{Leases, News},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Access, Feature, Features, Run};
use crate::identity::Identity;

const RECORDS: &str = "example.com/copy";

/// What is known of one name.
#[derive(Clone, Default)]
pub(crate) struct Copy {
    record: Option<ConfigMap>,
}

impl Entry for Copy {
    fn is_empty(&self) -> bool {
        self.record.is_none()
    }
}

impl Part<String, Copy> for ConfigMap {
    fn key(&self) -> Option<String> {
        Some(self.name_any())
    }

    fn put(self, entry: &mut Copy) -> Readers {
        entry.record = Some(self);
        Readers::ALL
    }

    fn take(entry: &mut Copy, _: &str) -> Readers {
        entry.record = None;
        Readers::ALL
    }
}

/// The feature.
pub(crate) struct Copies;

impl Feature for Copies {
    fn name(&self) -> &'static str {
        "Copies"
    }

    fn crds(&self) -> &'static [&'static str] {
        &["copies.example.com"]
    }

    fn begin(&self, access: Access) -> Box<dyn Run> {
        Box::new(CopiesRun::new(access))
    }

    fn withdraw(&self, access: Access) -> BoxFuture<'_, Result<(), Failure>> {
        let area = Api::<ConfigMap>::namespaced(access.leader, &access.us.common_area);
        remove(area).map(|removed| removed.map_err(|error| classify(&error))).boxed()
    }

    fn remove_imports<'a>(&'a self, env: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        let copies = Api::<ConfigMap>::namespaced(env.client.clone(), &env.namespace);
        remove(copies).map(|removed| Ok(removed?)).boxed()
    }

    fn clear_status<'a>(&'a self, _: &'a Env) -> BoxFuture<'a, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

async fn remove(maps: Api<ConfigMap>) -> kube::Result<()> {
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels(RECORDS)).await.map(drop)
}

/// The feature in one session.
pub(crate) struct CopiesRun {
    access: Access,
    pub(crate) store: Store<String, Copy>,
    local: Watches,
    leader: Watches,
    writer: Writer,
}

impl CopiesRun {
    pub(crate) fn new(access: Access) -> Self {
        let Access { env, guard, .. } = &access;
        Self {
            store: Store::new([Queue::new(Duration::ZERO)]),
            local: Watches::default(),
            leader: guard.clone().map(Watches::guarded).unwrap_or_default(),
            writer: Writer::new(env.client.clone(), "copies", "local", env.metrics.clone()),
            access,
        }
    }
}

async fn reconcile(
    store: Store<String, Copy>,
    writer: Writer,
    env: Env,
    name: String,
) -> Result<Outcome, Error> {
    if let Some(mut copy) = store.get(&name).and_then(|entry| entry.record.clone()) {
        copy.metadata.namespace = Some(env.namespace);
        writer.put(None, &copy).await?;
    }
    Ok(Outcome::Done)
}

impl Run for CopiesRun {
    fn watch(&self, tasks: &mut JoinSet<()>) {
        let (store, Access { env, us, leader, .. }) = (self.store.clone(), &self.access);
        let records = Api::<ConfigMap>::namespaced(leader.clone(), &us.common_area);
        let config = watcher::Config::default().labels(RECORDS);
        let source = Source { cluster: "leader", kind: "ConfigMap" };
        tasks
            .spawn(self.leader.watch(records, config, source, env.metrics.clone(), move |c| store.change(c)));
    }

    fn local(&self) -> &Watches {
        &self.local
    }

    fn leader(&self) -> &Watches {
        &self.leader
    }

    fn run(&self, begin: BoxFuture<'static, ()>, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move {
            let env = &self.access.env;
            if before(&stop, async { tokio::join!(self.leader.listed(), begin) }).await {
                drive("copies", self.store.queue(0), env.metrics.clone(), stop, |name| {
                    reconcile(self.store.clone(), self.writer.clone(), env.clone(), name)
                })
                .await;
            }
        }
        .boxed()
    }

    fn hear(&self, _: &News) {
        self.store.enqueue_all(Readers::ALL);
    }

    fn is_idle(&self) -> bool {
        self.store.is_idle(Readers::ALL)
    }

    fn retry_failed(&self) {
        self.store.retry_failed();
    }

    fn pruned(&self) -> Option<String> {
        self.writer.pruned().map(|error| error.to_string())
    }

    fn write_again(&self) {
        self.store.enqueue_all(Readers::ALL);
    }
}

/// A table with this feature: it takes one line.
pub(crate) fn features() -> Features {
    [Box::new(Copies) as _].into()
}

/// Access to API servers that do not answer.
pub(crate) fn access() -> Access {
    let client = || Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let metrics = Metrics::new().unwrap();
    let (events, _) = events::channel(client(), "member", "pod".into(), metrics.clone());
    let env = Env {
        client: client(),
        namespace: "freeport-system".into(),
        holder: Holder { cluster_uid: "uid".into(), instance: "pod".into() },
        pace: api::lease::Pace::default(),
        metrics,
        events,
        ready: Readiness::default(),
        stop: CancellationToken::new(),
    };
    Access {
        us: Identity { cluster: "east".into(), common_area: "clusterset-demo".into() },
        leader: client(),
        wire: api::membership::Wire::default(),
        antrea: api::antrea::Members::default(),
        leases: Shared::new(Leases::new(env.pace, Heartbeats::new(api::antrea::Members::default()), false)),
        guard: None,
        changed: Arc::default(),
        env,
    }
}
