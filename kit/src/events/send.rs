//! Sends Events, one after the other. One that is not taken for now is sent again later, and keeps no other one waiting until then.

use std::{future::pending, mem::take, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::ObjectReference, events::v1};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::events::{Event, Reporter},
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{WAITING, series::Series};
use crate::{
    backoff::Backoff,
    failure::{Failure, classify},
    log_limit::LogLimit,
    metrics::Metrics,
};

/// For sending one.
const LIMIT: Duration = Duration::from_secs(10);
/// Between tries.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(16) };
/// How often an Event is sent for which the API server has no time, or that it does not answer: for a minute, in which it may have started
/// again. Kubernetes' own programs try for two.
const TRIES: u32 = 8;
/// How often one is sent that is refused: an API server that starts refuses for a moment what it allows afterwards.
const TRIES_REFUSED: u32 = 3;

/// How often an Event is sent that fails so.
fn tries(failure: &Failure) -> u32 {
    match failure {
        Failure::Unreachable(_) => TRIES,
        Failure::Forbidden(_) | Failure::Unauthorized => TRIES_REFUSED,
        _ => 1,
    }
}

/// Sends Events. What nobody takes is lost.
pub(super) struct Sender {
    series: Series,
    client: Client,
    reporter: Reporter,
    metrics: Metrics,
    /// Those that were not taken for now.
    late: Vec<Late>,
    log_limit: LogLimit,
}

/// An Event, how often it was sent, and when it is to be sent.
struct Late {
    object: ObjectReference,
    event: Event,
    tried: u32,
    at: Instant,
}

impl Sender {
    pub(super) fn new(client: Client, reporter: Reporter, metrics: Metrics) -> Self {
        let series = Series::default();
        Self { series, client, reporter, metrics, late: Vec::new(), log_limit: LogLimit::default() }
    }

    /// Sends an Event for the first time.
    pub(super) async fn send(&mut self, object: ObjectReference, event: Event) {
        self.attempt(Late { object, event, tried: 0, at: Instant::now() }).await;
    }

    /// Waits until one is to be sent again.
    pub(super) async fn is_due(&self) {
        match self.late.iter().map(|late| late.at).min() {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        }
    }

    /// Sends again the one that waits for it longest.
    pub(super) async fn again(&mut self) {
        let first = self.late.iter().enumerate().min_by_key(|(_, late)| late.at);
        if let Some(first) = first.map(|(number, _)| number) {
            let late = self.late.swap_remove(first);
            self.attempt(late).await;
        }
    }

    /// Sends a last time what was not taken: the daemon ends, which one without an API server does not put off for each of them.
    pub(super) async fn finish(mut self) {
        if self.late.is_empty() {
            return;
        }
        sleep(AGAIN.first).await;
        let late = take(&mut self.late);
        let sent = async {
            for late in &late {
                if let Err(failure) = self.publish(late).await {
                    tracing::debug!(%failure, "an Event was not sent");
                }
            }
        };
        if timeout(LIMIT, sent).await.is_err() {
            tracing::debug!("no Event is sent any more");
        }
    }

    async fn attempt(&mut self, mut late: Late) {
        let Err(failure) = self.publish(&late).await else { return };
        late.tried += 1;
        tracing::debug!(%failure, tried = late.tried, "an Event was not sent");
        let most = tries(&failure);
        if late.tried < most && self.late.len() < WAITING {
            late.at = Instant::now() + AGAIN.wait(late.tried);
            self.late.push(late);
        } else if late.tried < most {
            self.metrics.event_dropped();
        } else if most > 1
            && let Some(left_out) = self.log_limit.allows(Instant::now().into_std())
        {
            let (object, reason) = (late.object.name.as_deref(), &late.event.reason);
            tracing::warn!(object, reason, %failure, left_out, "an Event was not taken, and is lost");
        }
    }

    /// One that is not answered in time may be there all the same, and be there twice then.
    async fn publish(&mut self, late: &Late) -> Result<(), Failure> {
        match timeout(LIMIT, self.once(&late.event, &late.object)).await {
            Ok(sent) => sent.map_err(|error| classify(&error)),
            Err(_) => Err(Failure::Unreachable("no answer in time")),
        }
    }

    async fn once(&mut self, news: &Event, object: &ObjectReference) -> kube::Result<()> {
        let event = self.series.next(news, object, &self.reporter, Timestamp::now());
        let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
        let events = Api::<v1::Event>::namespaced(self.client.clone(), namespace);
        if event.series.is_some() {
            let patch = Patch::Merge(&event);
            events.patch(&event.name_any(), &PatchParams::default(), &patch).await?;
        } else {
            events.create(&PostParams::default(), &event).await?;
        }
        self.series.sent(news, object, event);
        Ok(())
    }
}
