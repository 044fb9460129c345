//! Kubernetes Events: said where the user looks, never in the way of the work.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::sync::mpsc;

use crate::metrics::Metrics;

/// Events waiting to be sent. More are dropped and counted.
const WAITING: usize = 256;

/// Where to leave an Event. Cloning shares it.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<(ObjectReference, Event)>,
    metrics: Metrics,
}

impl Events {
    /// Says that something is wrong with `object`. Repeated Events are counted on one object by the API.
    pub fn warn(&self, object: ObjectReference, action: &str, reason: &str, message: &str) {
        self.say(EventType::Warning, object, action, reason, message);
    }

    /// Says something about `object` that somebody may want to know, though nothing is wrong.
    pub fn tell(&self, object: ObjectReference, action: &str, reason: &str, message: &str) {
        self.say(EventType::Normal, object, action, reason, message);
    }

    fn say(&self, type_: EventType, object: ObjectReference, action: &str, reason: &str, message: &str) {
        let event = Event {
            type_,
            reason: reason.into(),
            note: Some(message.chars().take(1000).collect()),
            action: action.into(),
            secondary: None,
        };
        if self.queue.try_send((object, event)).is_err() {
            self.metrics.event_dropped();
        }
    }
}

/// The sender of Events, and the task that sends them as `controller` through `client` until all senders are gone.
pub fn channel(
    client: Client,
    controller: &'static str,
    instance: String,
    metrics: Metrics,
) -> (Events, impl Future<Output = ()> + Send) {
    let (queue, mut waiting) = mpsc::channel(WAITING);
    let send = async move {
        let recorder =
            Recorder::new(client, Reporter { controller: controller.into(), instance: Some(instance) });
        while let Some((object, event)) = waiting.recv().await {
            if let Err(error) = recorder.publish(&event, &object).await {
                tracing::debug!(%error, "an Event was not sent");
            }
        }
    };
    (Events { queue, metrics }, send)
}
