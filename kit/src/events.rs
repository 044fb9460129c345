//! Kubernetes Events: said where the user looks, never in the way of the work.

mod send;
mod series;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Client,
    runtime::events::{Event, EventType, Reporter},
};
use tokio::sync::mpsc;

use self::send::Sender;
use crate::metrics::Metrics;

/// Most Events that wait to be sent for the first time, and most that wait to be sent again. More are dropped and counted.
const WAITING: usize = 256;
/// Bytes of a message: an API server refuses Events with 1024 and more.
const NOTE_MAX: usize = 1023;

/// Where to leave an Event. Cloning shares it.
#[derive(Clone)]
pub struct Events {
    waiting: Arc<Mutex<Waiting>>,
    /// Wakes the sender; its end is ours.
    bell: mpsc::Sender<()>,
    metrics: Metrics,
}

impl Events {
    /// Says that something is wrong with `object`. What is said again in the same words is counted on one Event.
    pub fn warn(&self, object: ObjectReference, action: &str, reason: &str, message: &str) {
        self.say(EventType::Warning, object, action, reason, message);
    }

    /// Says something about `object` that somebody may want to know, though nothing is wrong.
    pub fn tell(&self, object: ObjectReference, action: &str, reason: &str, message: &str) {
        self.say(EventType::Normal, object, action, reason, message);
    }

    /// Says that a condition has become `False`, or so for another reason, and that it is `True` after it was not. What is `True` the
    /// first time that something is said is no news.
    pub fn turned(
        &self,
        object: ObjectReference,
        action: &str,
        type_: &str,
        (before, now): (&[Condition], &[Condition]),
    ) {
        let of = |said: &'_ [Condition]| said.iter().find(|condition| condition.type_ == type_).cloned();
        let (before, Some(now)) = (of(before), of(now)) else { return };
        if let Some(kind) = turn(before.as_ref(), &now) {
            self.say(kind, object, action, &now.reason, &now.message);
        }
    }

    fn say(&self, type_: EventType, object: ObjectReference, action: &str, reason: &str, message: &str) {
        let event = Event {
            type_,
            reason: reason.into(),
            note: Some(message[..message.floor_char_boundary(NOTE_MAX)].into()),
            action: action.into(),
            secondary: None,
        };
        if !lock(&self.waiting).put(object, event) {
            self.metrics.event_dropped();
        }
        // A bell that rings already will be heard.
        let _ = self.bell.try_send(());
    }
}

/// How it is said that a condition is another one now, if that is news.
fn turn(before: Option<&Condition>, now: &Condition) -> Option<EventType> {
    let was = |status: &str| before.is_some_and(|before| before.status == status);
    let is_same = was(&now.status) && before.is_some_and(|before| before.reason == now.reason);
    match now.status.as_str() {
        "False" if !is_same => Some(EventType::Warning),
        "True" if was("False") || was("Unknown") => Some(EventType::Normal),
        _ => None,
    }
}

/// Events that wait, by what they are about: the Namespace and the reason. Whoever has most to say loses what is too much,
/// and each has its turn, so that a flood about one thing leaves the others their say.
#[derive(Default)]
struct Waiting {
    topics: VecDeque<Topic>,
    count: usize,
}

struct Topic {
    namespace: Option<String>,
    reason: String,
    /// Never empty.
    events: VecDeque<(ObjectReference, Event)>,
}

impl Waiting {
    /// Whether there was room.
    fn put(&mut self, object: ObjectReference, event: Event) -> bool {
        let same = |topic: &&mut Topic| topic.namespace == object.namespace && topic.reason == event.reason;
        match self.topics.iter_mut().find(same) {
            Some(topic) => topic.events.push_back((object, event)),
            None => self.topics.push_back(Topic {
                namespace: object.namespace.clone(),
                reason: event.reason.clone(),
                events: [(object, event)].into(),
            }),
        }
        self.count += 1;
        if self.count <= WAITING {
            return true;
        }
        if let Some(longest) = self.topics.iter_mut().max_by_key(|topic| topic.events.len()) {
            longest.events.pop_back();
        }
        self.topics.retain(|topic| !topic.events.is_empty());
        self.count -= 1;
        false
    }

    fn take(&mut self) -> Option<(ObjectReference, Event)> {
        let mut topic = self.topics.pop_front()?;
        let next = topic.events.pop_front();
        self.count -= 1;
        if !topic.events.is_empty() {
            self.topics.push_back(topic);
        }
        next
    }
}

/// The sender of Events, and the task that sends them as `controller` through `client` until all senders are gone.
pub fn channel(
    client: Client,
    controller: &'static str,
    instance: String,
    metrics: Metrics,
) -> (Events, impl Future<Output = ()> + Send) {
    let (bell, mut rung) = mpsc::channel(1);
    let waiting = Arc::<Mutex<Waiting>>::default();
    let events = Events { waiting: waiting.clone(), bell, metrics: metrics.clone() };
    let send = async move {
        let reporter = Reporter { controller: controller.into(), instance: Some(instance) };
        let mut sender = Sender::new(client, reporter, metrics);
        loop {
            while let Some((object, event)) = { lock(&waiting).take() } {
                sender.send(object, event).await;
            }
            tokio::select! {
                rings = rung.recv() => if rings.is_none() { break },
                () = sender.is_due() => sender.again().await,
            }
        }
        sender.finish().await;
    };
    (events, send)
}

fn lock(waiting: &Mutex<Waiting>) -> std::sync::MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
