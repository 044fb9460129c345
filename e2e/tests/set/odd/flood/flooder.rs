//! A member that floods the Common Area, by its own credential: its rights and what the API server does for each user apply to it.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Instant,
};

use api::{
    ServiceName, name,
    resource_export::{FAILURE, OVER_QUOTA, ResourceExport},
};
use cli::objects::access;
use e2e::{
    account::by_token,
    cluster::created,
    fixture::{AREA, World},
    odd::{
        MEMBER,
        authors::{join, leave},
    },
    record,
    waiting::{VOUCHED, eventually, within},
};
use futures::{StreamExt, future::ready, stream};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

/// Requests at once: as many as one controller of a member makes.
const WRITERS: usize = 16;

pub(super) struct Flooder<'a> {
    world: &'a World,
    records: Api<ResourceExport>,
    /// Of the Services that it says it has.
    namespace: String,
}

impl<'a> Flooder<'a> {
    /// What it exports is of this Namespace.
    pub(super) async fn new(world: &'a World, namespace: &str) -> Self {
        join(world).await;
        let client = by_token(world, "leader", AREA, &access::account(MEMBER)).await;
        let records = Api::namespaced(client, AREA);
        let flooder = Self { world, records, namespace: namespace.to_owned() };
        eventually("the member may write", || async {
            let first = flooder.create(0, 0).await;
            first.map_err(|error| error.to_string())
        })
        .await;
        flooder.clear().await;
        flooder
    }

    /// Takes everything back.
    pub(super) async fn leave(self) {
        self.clear().await;
        leave(self.world).await;
    }

    /// Writes one record.
    pub(super) async fn create(&self, number: usize, kilobytes: usize) -> Result<(), kube::Error> {
        let mut object = record::service(MEMBER, &self.service(number));
        let text = |number: usize| (format!("text-{number}"), json!("x".repeat(50_000)));
        let annotations: serde_json::Map<_, _> = (0..kilobytes / 50).map(text).collect();
        object["spec"]["service"]["exportedAnnotations"] = json!(annotations);
        let object = serde_json::from_value(object).unwrap();
        created(&self.records, &object).await.map(drop)
    }

    /// Writes so many records, about so large.
    pub(super) async fn write(&self, count: usize, kilobytes: usize) {
        let begun = Instant::now();
        let written = stream::iter(0..count).map(|number| self.create(number, kilobytes));
        written.buffer_unordered(WRITERS).for_each(|written| async { written.unwrap() }).await;
        e2e::note!("{:.0} records a second", count as f64 / begun.elapsed().as_secs_f64());
    }

    /// Writes so many records that take much more memory than they are long.
    pub(super) async fn write_dense(&self, count: usize) {
        self.write_odd(count, |service| record::dense(MEMBER, service)).await;
    }

    /// Writes so many records of endpoints that take just as much memory as one record may.
    pub(super) async fn write_endpoints(&self, count: usize) {
        self.write_odd(count, |service| {
            record::endpoints(
                MEMBER,
                &ServiceName::new(&service.namespace, format!("beside-{}", service.name)),
            )
        })
        .await;
    }

    /// Writes so many large slices, each of a Service of its own.
    pub(super) async fn write_slices(&self, count: usize) {
        self.write_odd(count, |service| record::large_slice(MEMBER, service)).await;
    }

    async fn write_odd(&self, count: usize, record: impl Fn(&ServiceName) -> Value) {
        let written = stream::iter(0..count).map(|number| {
            let object = serde_json::from_value(record(&self.service(number))).unwrap();
            async move { created(&self.records, &object).await.map(drop) }
        });
        written.buffer_unordered(WRITERS).for_each(|written| async { written.unwrap() }).await;
    }

    /// Changes so many records one after the other, again and again, as fast as the API server takes it.
    pub(super) async fn change(&self, count: usize, is_enough: &AtomicBool) {
        let begun = Instant::now();
        let changes = stream::iter(0_usize..).take_while(|_| ready(!is_enough.load(SeqCst))).map(
            async |number| {
                let name = name::service_export(MEMBER, &self.service(number % count));
                let port = 1 + number % 60_000;
                let patch =
                    json!({"spec": {"service": {"serviceSpec": {"ports": [{"port": port, "protocol": "TCP"}]}}}});
                self.records.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
            },
        );
        let done = changes.buffer_unordered(WRITERS).filter(|changed| ready(changed.is_ok())).count().await;
        e2e::note!("{:.0} changes a second", done as f64 / begun.elapsed().as_secs_f64());
    }

    /// Some records say that they are too much, others do not.
    pub(super) async fn over_quota(&self) -> Result<(), String> {
        let records = self.there().await?;
        let is_refused = |record: &ResourceExport| {
            let conditions = record.status.iter().flat_map(|status| &status.conditions);
            conditions
                .filter(|c| c.type_.as_deref() == Some(FAILURE))
                .any(|c| c.reason.as_deref() == Some(OVER_QUOTA))
        };
        let refused = records.iter().filter(|record| is_refused(record)).count();
        if refused > 0 && refused < records.len() {
            Ok(())
        } else {
            Err(format!("{refused} of {}", records.len()))
        }
    }

    async fn there(&self) -> Result<Vec<ResourceExport>, String> {
        let of_member = ListParams::default().labels(&format!("sourceClusterID={MEMBER}"));
        self.records.list(&of_member).await.map(|list| list.items).map_err(|error| error.to_string())
    }

    /// Takes all records back.
    pub(super) async fn clear(&self) {
        let there = self.there().await.unwrap();
        let withdrawn = Patch::Merge(json!({"spec": {"service": {"withdrawn": true}}}));
        let withdrawn = &withdrawn;
        let gone = stream::iter(there).map(|record| async move {
            let name = record.name_any();
            // Only these are merged, and a change of a large one takes an API server as long as the flood.
            if record.spec.kind.as_deref() == Some("Service") {
                drop(self.records.patch(&name, &PatchParams::default(), withdrawn).await);
            }
            drop(self.records.delete(&name, &DeleteParams::default()).await);
        });
        gone.buffer_unordered(WRITERS).collect::<Vec<()>>().await;
        within(VOUCHED, "the flood is gone", || async {
            let left = self.there().await?.len();
            if left == 0 { Ok(()) } else { Err(format!("{left} records")) }
        })
        .await;
    }

    fn service(&self, number: usize) -> ServiceName {
        ServiceName::new(&self.namespace, format!("s{number}"))
    }
}
