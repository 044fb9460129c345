use std::{
    convert::Infallible,
    future::pending,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use kube::client::Body;
use serde_json::{Value, json};

use super::*;

#[tokio::test(start_paused = true)]
async fn an_event_that_an_api_server_does_not_take_yet_is_sent_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let answer = move |_: http::Request<Body>| {
        let (code, body) = match count.fetch_add(1, Ordering::SeqCst) {
            0 => (403, json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden"})),
            _ => (201, json!({"metadata": {"name": "o.1", "namespace": "default"}})),
        };
        let answer = http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        std::future::ready(Ok::<_, Infallible>(answer.unwrap()))
    };
    let client = Client::new(tower::service_fn(answer), "x");
    let (events, send) = channel(client, "test", "one".into(), Metrics::new().unwrap());
    let object = ObjectReference { name: Some("o".into()), ..ObjectReference::default() };
    events.warn(object, "Test", "R", "m");
    drop(events);
    send.await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

/// About `a` the API server does not answer at first, and then has no time for a while; what is about `c` it refuses.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_not_answered_or_not_taken_is_sent_again_and_keeps_no_other_one_waiting() {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = asked.clone();
    let answer = move |request: http::Request<Body>| {
        let seen = seen.clone();
        async move {
            let event = request.into_body().collect_bytes().await.unwrap();
            let event: Value = serde_json::from_slice(&event).unwrap();
            let about = event["regarding"]["name"].as_str().unwrap().to_owned();
            let times = {
                let mut seen = seen.lock().unwrap();
                seen.push(about.clone());
                seen.iter().filter(|name| **name == about).count()
            };
            let code: u16 = match (about.as_str(), times) {
                ("a", 1) => pending().await,
                ("a", 2..6) => 503,
                ("c", _) => 403,
                _ => 201,
            };
            let body = match code {
                201 => json!({"metadata": {"name": "o.1", "namespace": "default"}}),
                code => json!({"kind": "Status", "status": "Failure", "code": code}),
            };
            let answer =
                http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            Ok::<_, Infallible>(answer.unwrap())
        }
    };
    let client = Client::new(tower::service_fn(answer), "x");
    let (events, send) = channel(client, "test", "one".into(), Metrics::new().unwrap());
    let said = async {
        for name in ["a", "b", "c"] {
            let object = ObjectReference { name: Some(name.into()), ..ObjectReference::default() };
            events.warn(object, "Test", "R", "m");
        }
        tokio::time::sleep(Duration::from_secs(600)).await;
        drop(events);
    };
    tokio::join!(send, said);
    let mut asked = asked.lock().unwrap().clone();
    assert_eq!(asked[..3], ["a", "b", "c"]);
    asked.sort();
    assert_eq!(asked, ["a", "a", "a", "a", "a", "a", "b", "c", "c", "c"]);
}

fn put(waiting: &mut Waiting, namespace: &str, name: &str, reason: &str) -> bool {
    let object = ObjectReference {
        namespace: Some(namespace.into()),
        name: Some(name.into()),
        ..ObjectReference::default()
    };
    let event = Event {
        type_: EventType::Normal,
        reason: reason.into(),
        note: None,
        action: "Test".into(),
        secondary: None,
    };
    waiting.put(object, event)
}

fn taken(waiting: &mut Waiting) -> Vec<String> {
    std::iter::from_fn(|| waiting.take()).filter_map(|(object, _)| object.name).collect()
}

#[test]
fn a_condition_that_turns_is_news_and_one_that_begins_true_is_not() {
    let conditions: Vec<Condition> = ["True Ready", "False Silent", "False Refused", "Unknown Pending"]
        .into_iter()
        .filter_map(|said| said.split_once(' '))
        .map(|(status, reason)| {
            let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-11-01T12:00:00Z"});
            serde_json::from_value(condition).unwrap()
        })
        .collect();
    let [ready, silent, refused, pending] = &conditions[..] else { panic!("{conditions:?}") };
    for (before, now, news) in [
        (None, ready, None),
        (Some(ready), ready, None),
        (Some(silent), ready, Some(EventType::Normal)),
        (Some(pending), ready, Some(EventType::Normal)),
        (None, silent, Some(EventType::Warning)),
        (Some(ready), silent, Some(EventType::Warning)),
        (Some(silent), silent, None),
        (Some(silent), refused, Some(EventType::Warning)),
        (Some(silent), pending, None),
    ] {
        assert_eq!(format!("{:?}", turn(before, now)), format!("{news:?}"), "{before:?} {now:?}");
    }
}

#[test]
fn a_flood_leaves_the_others_their_say() {
    let mut waiting = Waiting::default();
    for n in 0..WAITING {
        assert!(put(&mut waiting, "flooded", &format!("flood-{n}"), "NotDecodable"));
    }
    assert!(!put(&mut waiting, "flooded", "one-more", "NotDecodable"), "that is too much");
    assert!(!put(&mut waiting, "other", "other", "NotDecodable"), "in the place of one of the flood");
    assert!(!put(&mut waiting, "flooded", "member", "MemberDisconnected"), "and so is this");
    let taken = taken(&mut waiting);
    assert_eq!(taken[..4], ["flood-0", "other", "member", "flood-1"]);
    assert_eq!((taken.len(), waiting.count), (WAITING, 0));
}

#[test]
fn when_all_have_little_to_say_the_last_one_loses() {
    let mut waiting = Waiting::default();
    for n in 0..WAITING {
        assert!(put(&mut waiting, &format!("ns-{n}"), &format!("{n}"), "Reason"));
    }
    assert!(!put(&mut waiting, "late", "late", "Reason"));
    let taken = taken(&mut waiting);
    assert_eq!((taken.len(), taken.contains(&"late".to_owned())), (WAITING, false));
}
