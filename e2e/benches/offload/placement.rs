//! What placing costs where Pods come at a steady rate: one cluster, a webhook beside it as a process.

use std::time::Duration;

use api::offload::namespace::NamespaceOffloading;
use e2e::{metrics::Metrics, waiting::eventually, webhook::Webhook};
use futures::{StreamExt, stream::FuturesUnordered};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

const NAMESPACE: &str = "shop";
/// Pods a second.
const RATE: usize = 100;
const SECONDS: usize = 20;

/// Of one histogram.
struct Requests {
    count: f64,
    within: f64,
}

impl Requests {
    fn read(metrics: &Metrics, histogram: &str, bound: &str) -> Self {
        Self {
            count: metrics.sum(&format!("{histogram}_count")),
            within: metrics.of(&format!("{histogram}_bucket"), "le", bound).unwrap_or_default(),
        }
    }

    fn say(&self, before: &Self, what: &str) {
        let (count, within) = (self.count - before.count, self.within - before.within);
        println!("{what}: {:.2} % of {count}", within / count * 100.0);
    }
}

pub(crate) async fn measure() {
    let webhook = Webhook::up(&[]).await;
    webhook.namespace(NAMESPACE, true).await;
    let offloading = json!({"metadata": {"name": "offloading"}, "spec": {"podOffloadingStrategy": "Remote"}});
    webhook.cluster().create::<NamespaceOffloading>(NAMESPACE, offloading).await;
    eventually("a Pod is placed", || webhook.pod(NAMESPACE)).await;

    let before = requests(&webhook).await;
    let seconds = crate::share(SECONDS);
    let mut begins = interval(Duration::from_secs(1) / RATE as u32);
    begins.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut created = FuturesUnordered::new();
    for _ in 0..RATE * seconds {
        begins.tick().await;
        created.push(webhook.pod(NAMESPACE));
        while let Some(Some(pod)) = futures::FutureExt::now_or_never(created.next()) {
            pod.unwrap();
        }
    }
    while let Some(pod) = created.next().await {
        pod.unwrap();
    }
    let after = requests(&webhook).await;
    println!("{RATE} Pods a second for {seconds} s, through the webhook:");
    after.0.say(&before.0, "  handled within 1 ms");
    after.1.say(&before.1, "  answered within 25 ms, as the API server sees it");
    let memory = webhook.metrics().await.sum("process_resident_memory_bytes");
    println!("  memory {:.1} MB", memory / 1e6);
    webhook.world.discard().await;
}

/// Those that the webhook handled, and those that the API server made.
async fn requests(webhook: &Webhook) -> (Requests, Requests) {
    let server = Metrics::of_api_server(&webhook.cluster().client).await.unwrap();
    (
        Requests::read(&webhook.metrics().await, "freeport_webhook_admission_seconds", "0.001"),
        Requests::read(&server, "apiserver_admission_webhook_admission_duration_seconds", "0.025"),
    )
}
