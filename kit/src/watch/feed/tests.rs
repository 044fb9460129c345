use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// What a reader was told.
#[derive(Default)]
struct Heard(Vec<String>);

impl Heard {
    fn said(&mut self, what: &str, object: &str) -> serde_json::Result<()> {
        let object: Value = serde_json::from_str(object)?;
        self.0.push(format!("{what} {}", object["metadata"]["name"].as_str().unwrap_or("nameless")));
        // A kind whose `data` is a map.
        serde_json::from_value::<Option<std::collections::BTreeMap<String, String>>>(object["data"].clone())
            .map(drop)
    }
}

impl Reader for Heard {
    fn begin(&mut self) {
        self.0.push("begin".to_owned());
    }

    fn listed(&mut self, object: &str) -> serde_json::Result<()> {
        self.said("listed", object)
    }

    fn end(&mut self) {
        self.0.push("end".to_owned());
    }

    fn changed(&mut self, object: &str, is_there: bool) -> serde_json::Result<()> {
        self.said(if is_there { "there" } else { "gone" }, object)
    }
}

/// An API server that gives these answers in turn, then none; and what it was asked.
fn answers(all: &[(u16, String)]) -> (Client, Arc<Mutex<Vec<String>>>) {
    let all = Arc::new(Mutex::new(all.iter().cloned().collect::<VecDeque<_>>()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let questions = asked.clone();
    let answer = move |request: http::Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        questions.lock().unwrap().push(query);
        let next = all.lock().unwrap().pop_front();
        async move {
            match next {
                Some((status, text)) => {
                    let answer = http::Response::builder().status(status);
                    Ok::<_, Infallible>(answer.body(Body::from(text.into_bytes())).unwrap())
                }
                None => std::future::pending().await,
            }
        }
    };
    (Client::new(tower::service_fn(answer), "x"), asked)
}

fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version}})
}

fn page(version: &str, more: &str, items: &[Value]) -> (u16, String) {
    (200, json!({"metadata": {"resourceVersion": version, "continue": more}, "items": items}).to_string())
}

/// The API server is at this version.
fn at(version: &str) -> (u16, String) {
    page(version, "", &[])
}

/// Events as API servers write them: the type comes first.
fn events(all: &[(&str, Value)]) -> (u16, String) {
    let lines = all.iter().map(|(kind, object)| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"));
    (200, lines.collect())
}

/// What was told in so many steps, errors included, and what was asked.
async fn told(answers_: &[(u16, String)], steps: usize) -> (Vec<String>, Vec<String>) {
    let (client, asked) = answers(answers_);
    let a = watcher::Config::default().labels("a=b");
    let mut feed = Feed::new(client, "/api/v1/configmaps", false, a, Latest::default());
    let mut heard = Heard::default();
    for _ in 0..steps {
        match feed.next(&mut heard).await {
            Ok(Step::Listed { is_older: false }) => heard.end(),
            Ok(Step::Listed { is_older: true }) => heard.0.push("end of an older one".to_owned()),
            Ok(Step::Behind) => heard.0.push("behind".to_owned()),
            Ok(_) => {}
            Err(error) => heard.0.push(format!("error: {}", Failure::from(&error))),
        }
    }
    let asked = asked.lock().unwrap().clone();
    (heard.0, asked)
}

#[tokio::test(start_paused = true)]
async fn pages_are_told_object_by_object_and_a_watch_goes_on_where_the_list_ended() {
    let all = [
        page("", "more", &[object("a", "1"), object("b", "2")]),
        page("9", "", &[object("c", "3")]),
        events(&[("MODIFIED", object("a", "11")), ("DELETED", object("b", "12"))]),
        at("12"),
        events(&[("BOOKMARK", json!({"metadata": {"resourceVersion": "20"}, "kind": "", "apiVersion": ""}))]),
        at("20"),
        events(&[("ADDED", object("d", "21"))]),
    ];
    let (heard, asked) = told(&all, 5).await;
    assert_eq!(heard, ["begin", "listed a", "listed b", "listed c", "end", "there a", "gone b", "there d"]);
    let selects = |query: &String| query.contains("labelSelector=a%3Db") || query == "&limit=1";
    assert!(asked.iter().all(selects), "{asked:?}");
    assert!(asked[1].contains("continue=more"), "{asked:?}");
    let from = |query: &String| {
        query.split('&').find(|part| part.starts_with("resourceVersion=")).map(str::to_owned)
    };
    let from: Vec<_> = asked[2..].iter().filter_map(from).collect();
    assert_eq!(from, ["resourceVersion=9", "resourceVersion=12", "resourceVersion=20"]);
}

#[tokio::test]
async fn null_in_the_place_of_objects_is_none() {
    let none = json!({"metadata": {"resourceVersion": "9"}, "items": null});
    let all = [(200, none.to_string()), events(&[("ADDED", object("a", "10"))])];
    let (heard, _) = told(&all, 2).await;
    assert_eq!(heard, ["begin", "end", "there a"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_gone_is_listed_anew() {
    let gone = json!({"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410});
    let all = [
        page("9", "", &[object("a", "1")]),
        events(&[("ERROR", gone.clone())]),
        page("19", "", &[object("b", "11")]),
        (410, gone.to_string()),
        page("29", "", &[]),
    ];
    let (heard, _) = told(&all, 5).await;
    assert_eq!(
        heard,
        [
            "begin",
            "listed a",
            "end",
            "error: too old",
            "begin",
            "listed b",
            "end",
            "error: too old",
            "begin",
            "end"
        ]
    );
}

#[tokio::test]
async fn a_refusal_keeps_the_place_and_an_object_that_does_not_decode_the_watch() {
    let odd = json!({"metadata": {"name": "odd", "resourceVersion": "10"}, "data": 7});
    let all = [
        page("9", "", &[]),
        (403, json!({"kind": "Status", "status": "Failure", "message": "no", "code": 403}).to_string()),
        at("9"),
        events(&[("ADDED", odd.clone()), ("ADDED", object("a", "11"))]),
    ];
    let (heard, asked) = told(&all, 4).await;
    assert_eq!(heard[..3], ["begin", "end", "error: forbidden (403): no"]);
    assert_eq!(heard[3], "there odd");
    assert!(heard[4].starts_with("error: invalid type"), "{heard:?}");
    assert_eq!(heard[5..], ["there a"]);
    assert!(asked[3].contains("resourceVersion=9"), "{asked:?}");
}

fn no(code: u16) -> (u16, String) {
    (code, json!({"kind": "Status", "status": "Failure", "message": "no", "code": code}).to_string())
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_broke_begins_with_a_list_where_the_api_server_is_at_an_older_version() {
    let all = [
        page("90", "", &[object("a", "1")]),
        events(&[("ADDED", object("b", "100"))]),
        no(500),
        at("99"),
        page("99", "", &[object("a", "1")]),
        events(&[]),
        at("99"),
        events(&[("ADDED", object("c", "101"))]),
    ];
    let (heard, asked) = told(&all, 6).await;
    assert_eq!(heard[..4], ["begin", "listed a", "end", "there b"]);
    assert!(heard[4].starts_with("error: "), "{heard:?}");
    assert_eq!(heard[5..], ["behind", "begin", "listed a", "end of an older one", "there c"]);
    assert_eq!(asked[3], "&limit=1", "one key is read for it");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_begins_for_another_reason_shows_an_older_version_as_well() {
    let gone = json!({"kind": "Status", "status": "Failure", "message": "too old", "code": 410});
    let all =
        [page("90", "", &[]), events(&[("ADDED", object("b", "100")), ("ERROR", gone)]), page("95", "", &[])];
    let (heard, _) = told(&all, 4).await;
    assert_eq!(heard, ["begin", "end", "there b", "error: too old", "begin", "end of an older one"]);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_list_any_more_watches_on() {
    for code in REFUSALS {
        let all = [page("9", "", &[]), events(&[]), no(code), events(&[("ADDED", object("a", "10"))])];
        assert_eq!(told(&all, 2).await.0, ["begin", "end", "there a"]);
    }
}

/// What is asked first after a watch that may have told something, has this at its end, and ends then or tells nothing more.
async fn asked_after(has_told: bool, at: Duration, end: Option<kube::Error>, ends: bool) -> String {
    let (client, asked) = answers(&[page("9", "", &[])]);
    let only_a = watcher::Config::default().fields("metadata.name=a").labels("b=c");
    let mut feed = Feed::new(client, "/api/v1/configmaps", false, only_a, Latest::default());
    let mut heard = Heard::default();
    feed.next(&mut heard).await.unwrap();
    let last = futures::stream::once(tokio::time::sleep(at)).filter_map(|()| async { None });
    let events = last.chain(futures::stream::iter(end.map(Err)));
    let events = match ends {
        true => events.boxed(),
        false => events.chain(futures::stream::pending()).boxed(),
    };
    feed.state = State::Watching("9".to_owned(), Watch { has_told, ..Watch::new(events) });
    let goes_on = async {
        while feed.next(&mut heard).await.is_err() {
            tokio::time::sleep(SILENT).await;
        }
    };
    assert!(tokio::time::timeout(4 * SILENT, goes_on).await.is_err());
    let asked = asked.lock().unwrap();
    asked[1].clone()
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_time_is_over_goes_on_and_any_other_end_asks_first() {
    let broke = || Some(kube::Error::ReadEvents(std::io::Error::other("broke")));
    assert!(asked_after(true, IN_TIME, None, true).await.contains("watch=true"));
    let asks = "&fieldSelector=metadata.name%3Da&limit=1";
    assert_eq!(asked_after(true, Duration::ZERO, None, true).await, asks);
    assert_eq!(asked_after(true, IN_TIME, broke(), true).await, asks);
    assert_eq!(asked_after(true, SILENT, None, false).await, asks);
    assert_eq!(asked_after(false, IN_TIME, None, true).await, asks, "it may be deaf");
}

#[tokio::test]
async fn a_list_without_a_version_or_with_what_does_not_decode_begins_again() {
    let odd = json!({"metadata": {"name": "odd"}, "data": 7});
    let all = [page("", "", &[]), page("9", "", &[odd]), page("10", "", &[])];
    let (heard, _) = told(&all, 3).await;
    assert_eq!(heard[..4], ["begin", "error: the list has no resourceVersion", "begin", "listed odd"]);
    assert!(heard[4].starts_with("error: invalid type"), "{heard:?}");
    assert_eq!(heard[5..], ["begin", "end"]);
}

#[tokio::test]
async fn a_page_of_small_objects_is_followed_by_a_larger_one_and_one_of_large_objects_by_a_smaller_one() {
    let large = |name: &str| json!({"metadata": {"name": name, "note": "x".repeat(PAGE_BYTES)}});
    let all = [
        page("", "more", &[object("a", "1"), object("b", "2")]),
        page("", "still", &[large("c"), large("d")]),
        page("9", "", &[]),
    ];
    let (_, asked) = told(&all, 3).await;
    let limit =
        |query: &String| query.split('&').find_map(|part| part.strip_prefix("limit=").map(str::to_owned));
    let limits: Vec<_> = asked.iter().filter_map(limit).collect();
    assert_eq!(limits, ["50", "500", "1"]);
}

#[tokio::test]
async fn a_page_that_is_too_large_is_asked_for_in_halves_and_a_list_begins_with_the_first_that_comes() {
    let huge = json!({"metadata": {"name": "huge", "note": "x".repeat(PAGE_MAX as usize)}});
    let all = [
        page("", "more", std::slice::from_ref(&huge)),
        page("", "more", &[object("a", "1")]),
        page("9", "", &[]),
    ];
    let (heard, asked) = told(&all, 1).await;
    assert_eq!((heard, asked.len()), (vec![], 1));
    let (heard, asked) = told(&all, 3).await;
    assert_eq!(heard, ["begin", "listed a", "end"]);
    assert!(asked[1].contains("limit=25") && !asked[1].contains("continue"), "{asked:?}");
}
