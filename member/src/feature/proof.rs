//! A feature as small as one can be: what a new feature needs. ConfigMaps with its label in the Common Area are its records; its
//! controller copies them to the daemon's Namespace.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::core::v1::ConfigMap;
use kit::{
    boot::Env,
    drive::{before, drive},
    failure::{Failure, classify},
    index::Shared,
    objects::{Change, Objects},
    queue::{Outcome, Queue},
    watch::{Source, Watches},
    write::{Error, Writer},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
    runtime::watcher,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Access, Feature, Run};

const LABEL: &str = "example.com/copy";

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
        let records = Api::namespaced(access.leader, &access.us.common_area);
        delete_all(records).map(|deleted| deleted.map_err(|error| classify(&error))).boxed()
    }

    fn remove_imports<'a>(&'a self, env: &'a Env, _us: Option<&'a str>) -> BoxFuture<'a, Result<(), Error>> {
        let copies = Api::namespaced(env.client.clone(), &env.namespace);
        delete_all(copies).map(|deleted| Ok(deleted?)).boxed()
    }
}

async fn delete_all(maps: Api<ConfigMap>) -> kube::Result<()> {
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels(LABEL)).await.map(drop)
}

pub(crate) struct CopiesRun {
    records: Shared<Objects<ConfigMap>>,
    pub(crate) queue: Queue<String>,
    writer: Writer,
    local: Watches,
    leader: Watches,
    access: Access,
}

impl CopiesRun {
    pub(crate) fn new(access: Access) -> Self {
        let env = &access.env;
        let writer = Writer::new(env.client.clone(), "copies", "local", env.metrics.clone());
        let leader = access.guard.clone().map(Watches::guarded).unwrap_or_default();
        let (records, queue) = (Shared::default(), Queue::new(Duration::ZERO));
        Self { records, queue, writer, local: Watches::default(), leader, access }
    }

    async fn reconcile(
        record: Option<ConfigMap>,
        writer: Writer,
        namespace: String,
    ) -> Result<Outcome, Error> {
        if let Some(mut copy) = record {
            copy.metadata.namespace = Some(namespace);
            writer.put(None, &copy).await?;
        }
        Ok(Outcome::Done)
    }
}

impl Run for CopiesRun {
    fn watch(&self, tasks: &mut JoinSet<()>) {
        let (Access { env, us, leader, .. }, records, queue) =
            (&self.access, self.records.clone(), self.queue.clone());
        let source = Source { cluster: "leader", kind: "ConfigMap" };
        let api = Api::namespaced(leader.clone(), &us.common_area);
        let config = watcher::Config::default().labels(LABEL);
        let take_in = move |change: Change<ConfigMap>| {
            records.with(|records| records.change(change));
            queue.enqueue(
                records.with(|records| records.iter().map(ResourceExt::name_any).collect::<Vec<_>>()),
            );
        };
        tasks.spawn(self.leader.watch(api, config, source, env.metrics.clone(), take_in));
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
                drive("copies", self.queue.clone(), env.metrics.clone(), stop, |name| {
                    let record = self.records.with(|records| records.get(&name).cloned());
                    Self::reconcile(record, self.writer.clone(), env.namespace.clone())
                })
                .await;
            }
        }
        .boxed()
    }

    fn unwritten(&self) -> Vec<String> {
        self.queue.busy()
    }

    fn retry_failed(&self) {
        self.queue.retry_failed();
    }
}
