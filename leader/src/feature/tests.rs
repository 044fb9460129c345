//! A second feature, as somebody would add it: one record kind, one controller, one line in the table.

use std::time::Duration;

use api::resource_export::ResourceExport;
use futures::FutureExt;
use kit::{
    drive::drive,
    index::{Entry, Part, Readers},
    objects::Objects,
    queue::{Outcome, Queue},
    store::Store,
};
use kube::{Client, Config, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use super::*;
use crate::service::Services;

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
struct Record {
    metadata: ObjectMeta,
}

#[derive(Clone, Default)]
struct Known {
    exists: bool,
    is_copied: bool,
}

impl Entry for Known {
    fn is_empty(&self) -> bool {
        !self.exists
    }
}

impl Part<String, Known> for Record {
    fn key(&self) -> Option<String> {
        Some(self.name_any())
    }

    fn put(self, known: &mut Known) -> Readers {
        Readers::ALL.when(!std::mem::replace(&mut known.exists, true))
    }

    fn take(known: &mut Known, _: &str) -> Readers {
        known.exists = false;
        Readers::ALL
    }
}

#[derive(Clone)]
struct Copies {
    access: Access,
    watches: Watches,
    records: Store<String, Known>,
}

impl Feature for Copies {
    fn name(&self) -> &'static str {
        "Copies"
    }

    fn watch(&self, tasks: &mut JoinSet<()>) {
        let records = self.records.clone();
        self.access.watch::<Record>(&self.watches, "ResourceExport", tasks, move |c| records.change(c));
    }

    fn watches(&self) -> &Watches {
        &self.watches
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        let reconcile = |name| {
            self.records.note(&name, |known| known.is_copied = true);
            std::future::ready(Ok(Outcome::Done))
        };
        drive("copy", self.records.queue(0), self.access.env.metrics.clone(), stop, reconcile).boxed()
    }

    fn hear(&self, news: &News) {
        let renewed = news.renewed.iter().map(|(lease, _)| (lease.clone(), Readers::ALL));
        self.records.enqueue(renewed.collect());
    }

    fn unwritten(&self) -> Vec<String> {
        self.records.busy(Readers::ALL)
    }

    fn retry_failed(&self) {
        self.records.retry_failed();
    }

    fn pruned(&self) -> Option<String> {
        self.records.get(&"large".to_owned()).map(|_| "the CRD has no field spec.copy".to_owned())
    }

    fn write_again(&self) {
        self.records.enqueue_all(Readers::ALL);
    }
}

/// In a cluster whose API server cannot be reached.
fn access() -> Access {
    fixture::access(Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap())
}

fn copies(access: &Access) -> Copies {
    let records = Store::new([Queue::new(Duration::ZERO)]);
    Copies { access: access.clone(), watches: Watches::default(), records }
}

fn record(name: &str) -> Change<Record> {
    Change::Apply(serde_json::from_value(serde_json::json!({"metadata": {"name": name}})).unwrap())
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("after 30 s still not so: {what}");
}

#[tokio::test]
async fn a_feature_is_settled_only_with_all_others() {
    let access = access();
    let (copies, others) = (copies(&access), copies(&access));
    let features = Features(vec![Box::new(others), Box::new(copies.clone())]);
    assert_eq!(features.settled(Instant::now()), Settled::Yes);
    copies.records.change(record("a"));
    let a = || Settled::Writing(Unwritten::of("Copies", ["a".to_owned()]));
    assert_eq!(features.settled(Instant::now()), a());

    let stop = CancellationToken::new();
    let run = async {
        eventually("the controller runs", || features.settled(Instant::now()) == Settled::Yes).await;
        assert!(copies.records.get(&"a".to_owned()).is_some_and(|known| known.is_copied));
        stop.cancel();
    };
    tokio::join!(features.run(&stop), run);

    let news = News { renewed: vec![("a".into(), Settled::Yes)], ..News::default() };
    features.hear(&news);
    assert_eq!(features.settled(Instant::now()), a(), "it hears of Leases");
    assert_eq!(features.pruned(), None);
    copies.records.change(record("large"));
    assert!(features.pruned().is_some_and(|why| why.contains("spec.copy")));

    let _watch = copies.watches.watch::<Record, _>(
        access.api(),
        watcher::Config::default(),
        Source { cluster: "leader", kind: "ResourceExport" },
        access.env.metrics.clone(),
        |_| {},
    );
    assert_eq!(features.settled(Instant::now()), Settled::No, "it has not listed yet");
}

#[tokio::test]
async fn a_feature_that_cannot_list_says_so_under_its_name_and_does_not_stop_the_others() {
    let access = access();
    // Records wait for the accounts of members.
    access.noted.take_in(&Objects::default());
    let copies = copies(&access);
    let services = Services::new(access.clone());
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    services.watch(&mut tasks);
    copies.records.change(record("a"));
    let features = Features(vec![Box::new(services), Box::new(copies.clone())]);
    let run = async {
        eventually("the other feature runs", || {
            copies.records.get(&"a".to_owned()).is_some_and(|known| known.is_copied)
        })
        .await;
        let said = || features.unavailable(Instant::now()).unwrap_or_default();
        eventually("the status names it", || {
            said().contains("Services: cannot watch ResourceExport: ") && said().contains("ResourceImport: ")
        })
        .await;
        assert!(!said().contains("Copies"), "{}", said());
        copies.watch(&mut tasks);
        eventually("the status names both", || said().contains("; Copies: cannot watch ResourceExport: "))
            .await;
        assert_eq!(features.settled(Instant::now()), Settled::No);
        stop.cancel();
    };
    tokio::join!(features.run(&stop), run);
}
