use std::{
    convert::Infallible,
    sync::atomic::{AtomicU32, Ordering},
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, client::Body};

use super::*;

/// An API server that shows the one object another way at each list, and whose watches tell nothing.
fn shows_otherwise() -> Client {
    let lists = Arc::new(AtomicU32::new(0));
    let answer = move |request: http::Request<Body>| {
        let lists = lists.clone();
        async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=")) {
                std::future::pending::<()>().await;
            }
            let list = lists.fetch_add(1, Ordering::SeqCst);
            let object = serde_json::json!({
                "metadata": {"name": "a", "resourceVersion": "7"}, "data": {"list": list.to_string()},
            });
            let list = serde_json::json!({"metadata": {"resourceVersion": "9"}, "items": [object]});
            Ok::<_, Infallible>(http::Response::new(Body::from(list.to_string().into_bytes())))
        }
    };
    Client::new(tower::service_fn(answer), "x")
}

/// An API server whose first list breaks off after its first page.
fn breaks_off() -> Client {
    let requests = Arc::new(AtomicU32::new(0));
    let answer = move |request: http::Request<Body>| {
        let requests = requests.clone();
        async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=")) {
                std::future::pending::<()>().await;
            }
            let object = |name: &str| serde_json::json!({"metadata": {"name": name, "resourceVersion": "7"}});
            let (status, page) = match requests.fetch_add(1, Ordering::SeqCst) {
                0 => (200, serde_json::json!({"metadata": {"continue": "more"}, "items": [object("gone")]})),
                1 => (500, serde_json::json!({"kind": "Status", "code": 500})),
                _ => (
                    200,
                    serde_json::json!({"metadata": {"resourceVersion": "9"}, "items": [object("a"), object("b")]}),
                ),
            };
            let answer = http::Response::builder().status(status);
            Ok::<_, Infallible>(answer.body(Body::from(page.to_string().into_bytes())).unwrap())
        }
    };
    Client::new(tower::service_fn(answer), "x")
}

#[tokio::test(start_paused = true)]
async fn what_was_told_of_a_list_that_broke_off_is_forgotten_and_not_listed() {
    let (watches, metrics) = (Watches::default(), Metrics::new().unwrap());
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let source = Source { cluster: "local", kind: "ConfigMap" };
    let known = watches.clone();
    let sink = move |change| drop(sender.send((known.are_listed(), change)));
    let api = Api::<ConfigMap>::default_namespaced(breaks_off());
    let watch = watches.watch_many(api, source, metrics, sink);
    let mut objects = crate::objects::Objects::default();
    let mut seen = Vec::new();
    let listed = async {
        watches.listed().await;
        while let Ok((was_listed, change)) = told.try_recv() {
            assert!(!was_listed);
            objects.change(change);
            let names = objects.iter().filter_map(|object: &ConfigMap| object.metadata.name.clone());
            seen.push(names.collect::<Vec<_>>().join(" "));
        }
    };
    tokio::select! {
        () = watch => panic!("it ended"),
        heard = tokio::time::timeout(Duration::from_secs(600), listed) => heard.unwrap(),
    }
    assert_eq!(seen, ["", "gone", "", "a", "a b"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_crd_shows_otherwise_is_told_though_its_version_is_the_same() {
    let (watches, metrics) = (Watches::default(), Metrics::new().unwrap());
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let source = Source { cluster: "local", kind: "ConfigMap" };
    let sink = move |change| drop(sender.send(change));
    let api = Api::<ConfigMap>::default_namespaced(shows_otherwise());
    let watch = watches.watch(api, watcher::Config::default(), source, metrics, sink);
    let mut objects = crate::objects::Objects::default();
    let listed = async {
        for list in ["0", "1"] {
            objects.change(told.recv().await.unwrap());
            let object: &ConfigMap = objects.get("a").unwrap();
            assert_eq!(object.data.as_ref().unwrap()["list"], list);
            watches.list_again();
        }
    };
    tokio::select! {
        () = watch => panic!("it ended"),
        heard = tokio::time::timeout(Duration::from_secs(600), listed) => heard.unwrap(),
    }
}
