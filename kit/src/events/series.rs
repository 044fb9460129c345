//! Which Event tells that something is said again: a series counts it, as long as its text is the same. Pure.
//!
//! An API server keeps the text of an Event as it is, so that another text is another Event.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    api::ObjectMeta,
    runtime::events::{Event as News, Reporter},
};

/// Characters of the name of an Event, of which those that its time takes are left to the object's.
const NAME_MAX: usize = 253;
/// Time after which what is said again is another Event.
const LASTS: SignedDuration = SignedDuration::from_mins(6);
/// Number of texts about one object with one reason that are Events of their own; further ones are counted by the last of these.
const TEXTS: usize = 8;

/// What an Event is about: type, action, reason, and the object's kind, Namespace, name and uid.
type Topic = (String, String, String, [Option<String>; 4]);

/// Events that were sent lately.
#[derive(Debug, Default)]
pub(super) struct Series {
    sent: HashMap<Topic, Vec<Event>>,
}

impl Series {
    /// Returns the Event to be sent for `news` about `object`: a new one, or the one that tells of it already, with its count.
    pub(super) fn next(
        &mut self,
        news: &News,
        object: &ObjectReference,
        reporter: &Reporter,
        now: Timestamp,
    ) -> Event {
        self.sent.retain(|_, events| {
            events.retain(|event| last(event).is_some_and(|last| last + LASTS > now));
            !events.is_empty()
        });
        let sent = self.sent.get(&topic(news, object)).map(Vec::as_slice).unwrap_or_default();
        let same = sent.iter().find(|event| event.note == news.note);
        let Some(same) = same.or_else(|| sent.last().filter(|_| sent.len() >= TEXTS)) else {
            return new(news, object, reporter, now);
        };
        let count = same.series.as_ref().map_or(2, |series| series.count + 1);
        Event { series: Some(EventSeries { count, last_observed_time: MicroTime(now) }), ..same.clone() }
    }

    /// Takes in that the API server has the Event.
    pub(super) fn sent(&mut self, news: &News, object: &ObjectReference, event: Event) {
        let events = self.sent.entry(topic(news, object)).or_default();
        events.retain(|had| had.metadata.name != event.metadata.name);
        events.push(event);
    }
}

fn topic(news: &News, object: &ObjectReference) -> Topic {
    let object = [&object.kind, &object.namespace, &object.name, &object.uid].map(Clone::clone);
    (format!("{:?}", news.type_), news.action.clone(), news.reason.clone(), object)
}

/// When it was said last.
fn last(event: &Event) -> Option<Timestamp> {
    let of_series = event.series.as_ref().map(|series| &series.last_observed_time);
    of_series.or(event.event_time.as_ref()).map(|time| time.0)
}

/// An Event whose name is that of the object and the time, cut where both are longer than a name.
fn new(news: &News, object: &ObjectReference, reporter: &Reporter, now: Timestamp) -> Event {
    let time = format!(".{:x}", now.as_nanosecond());
    let name = object.name.as_deref().unwrap_or(&reporter.controller);
    let kept = match name.len() + time.len() > NAME_MAX {
        true => name[..name.floor_char_boundary(NAME_MAX - time.len())].trim_end_matches(['.', '-']),
        false => name,
    };
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{kept}{time}")),
            namespace: Some(object.namespace.clone().unwrap_or_else(|| "default".into())),
            ..ObjectMeta::default()
        },
        action: Some(news.action.clone()),
        event_time: Some(MicroTime(now)),
        note: news.note.clone(),
        reason: Some(news.reason.clone()),
        regarding: Some(object.clone()),
        reporting_controller: Some(reporter.controller.clone()),
        reporting_instance: Some(reporter.instance.clone().unwrap_or_else(|| reporter.controller.clone())),
        type_: Some(format!("{:?}", news.type_)),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::events::EventType;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// Sends what is said about an object of this name; the name and the count of the Event.
    fn send(series: &mut Series, about: &str, note: &str, now: i64) -> (String, Option<i32>) {
        let news = News {
            type_: EventType::Warning,
            reason: "Refused".into(),
            note: Some(note.into()),
            action: "Connect".into(),
            secondary: None,
        };
        let object = ObjectReference { name: Some(about.into()), ..ObjectReference::default() };
        let reporter = Reporter { controller: "c".into(), instance: None };
        let event = series.next(&news, &object, &reporter, at(now));
        series.sent(&news, &object, event.clone());
        (event.metadata.name.unwrap(), event.series.map(|series| series.count))
    }

    #[test]
    fn what_is_said_again_is_counted_and_another_text_is_another_event() {
        let mut series = Series::default();
        let (first, count) = send(&mut series, "demo", "no a", 0);
        assert_eq!(count, None);
        assert_eq!(send(&mut series, "demo", "no a", 1), (first.clone(), Some(2)));
        let (second, count) = send(&mut series, "demo", "no b", 2);
        assert!(second != first && count.is_none());
        assert_eq!(send(&mut series, "demo", "no a", 3), (first.clone(), Some(3)));
        assert_eq!(send(&mut series, "demo", "no b", 4), (second, Some(2)));
        assert_eq!(send(&mut series, "other", "no a", 5).1, None);
        let (later, count) = send(&mut series, "demo", "no a", 400);
        assert!(later != first && count.is_none(), "it was not said for six minutes");
    }

    #[test]
    fn texts_that_always_differ_are_a_few_events() {
        let mut series = Series::default();
        let names: Vec<_> = (0..20).map(|n| send(&mut series, "demo", &format!("{n}"), n).0).collect();
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), TEXTS);
    }

    #[test]
    fn a_long_name_is_cut_where_it_stays_a_name() {
        let mut series = Series::default();
        let mut of = |name: &str| send(&mut series, name, "m", 0).0;
        let time = format!("{:x}", at(0).as_nanosecond());
        let whole = "n".repeat(NAME_MAX - 1 - time.len());
        assert_eq!(of(&whole), format!("{whole}.{time}"));
        let long = of(&format!("{}.-{}", "n".repeat(234), "m".repeat(17)));
        assert_eq!(long, format!("{}.{time}", "n".repeat(234)));
    }
}
