use std::{convert::Infallible, sync::atomic::AtomicU32};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, client::Body};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

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
    let (sender, mut told) = unbounded_channel();
    let source = Source { cluster: "local", kind: "ConfigMap" };
    let known = watches.clone();
    let sink = move |told: Streamed<ConfigMap>| {
        let says = match told {
            Streamed::ListBegins => "begins".to_owned(),
            Streamed::Change(Change::Apply(object)) => object.metadata.name.unwrap(),
            Streamed::Change(other) => panic!("{other:?}"),
            Streamed::ListEnds => "ends".to_owned(),
        };
        drop(sender.send((known.are_listed(), says)));
    };
    let api = Api::<ConfigMap>::default_namespaced(breaks_off());
    let watch = watches.watch_many(api, source, metrics, sink);
    let mut seen = Vec::new();
    let listed = async {
        watches.listed().await;
        while let Ok((was_listed, says)) = told.try_recv() {
            assert!(!was_listed);
            seen.push(says);
        }
    };
    tokio::select! {
        () = watch => panic!("it ended"),
        heard = tokio::time::timeout(Duration::from_secs(600), listed) => heard.unwrap(),
    }
    assert_eq!(seen, ["begins", "gone", "begins", "a", "b", "ends"]);
}

/// A watch of ConfigMaps of this API server, and what it tells.
fn watching(
    watches: &Watches,
    server: Client,
) -> (impl Future<Output = ()>, UnboundedReceiver<Change<ConfigMap>>) {
    let (sender, told) = unbounded_channel();
    let source = Source { cluster: "local", kind: "ConfigMap" };
    let sink = move |change| drop(sender.send(change));
    let (api, all) = (Api::default_namespaced(server), watcher::Config::default());
    (watches.watch(api, all, source, Metrics::new().unwrap(), sink), told)
}

#[tokio::test(start_paused = true)]
async fn what_a_crd_shows_otherwise_is_told_though_its_version_is_the_same() {
    let watches = Watches::default();
    let (watch, mut told) = watching(&watches, shows_otherwise());
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

#[tokio::test(start_paused = true)]
async fn watches_that_wait_for_a_turn_to_list_again_are_not_open_and_a_list_of_our_own_waits_for_none() {
    let watches = Watches::default();
    let (watch, mut told) = watching(&watches, shows_otherwise());
    let turns = async {
        let mut list = async || {
            let before = tokio::time::Instant::now();
            drop(told.recv().await.unwrap());
            tokio::task::yield_now().await;
            before.elapsed()
        };
        list().await;
        assert!(watches.are_open(Instant::now()));
        watches.take_turns(Some(100));
        watches.list_again();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!watches.are_open(Instant::now()), "it waits, and hears nothing");
        assert!(list().await > Duration::from_secs(5));
        assert!(watches.are_open(Instant::now()));
        watches.list_again_alone();
        assert!(list().await < Duration::from_secs(1));
    };
    tokio::select! {
        () = watch => panic!("it ended"),
        () = turns => {}
    }
}

/// An API server that comes to older versions, one with each list, and whose watches end at once.
fn goes_back() -> Client {
    let version = Arc::new(AtomicU32::new(100));
    let answer = move |request: http::Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let version = if is_watch { 0 } else { version.fetch_sub(1, Ordering::SeqCst) };
        let list = serde_json::json!({"metadata": {"resourceVersion": version.to_string()}, "items": []});
        let body = if is_watch { Body::empty() } else { Body::from(list.to_string().into_bytes()) };
        async move { Ok::<_, Infallible>(http::Response::new(body)) }
    };
    Client::new(tower::service_fn(answer), "x")
}

/// Whether it holds.
struct Says(bool);

impl Guard for Says {
    fn still_holds(&self) -> BoxFuture<'_, kube::Result<bool>> {
        let Self(holds) = *self;
        Box::pin(async move { Ok(holds) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_version_has_a_watch_list_again_and_says_that_the_server_was_restored_where_no_guard_does() {
    let guarded = |holds| Watches::guarded(Arc::new(Says(holds)));
    for (watches, is_restored) in [(Watches::default(), true), (guarded(true), false)] {
        let (watch, mut told) = watching(&watches, goes_back());
        let twice = async { (told.recv().await, told.recv().await) };
        tokio::select! {
            () = watch => panic!("it ended"),
            told = twice => assert!(matches!(told, (Some(Change::Reset(_)), Some(Change::Reset(_))))),
        }
        assert_eq!(watches.0.restored.is_cancelled(), is_restored);
    }
    let watches = guarded(false);
    let (watch, mut told) = watching(&watches, goes_back());
    watch.await;
    assert!(watches.0.restored.is_cancelled());
    assert!(told.recv().await.is_some() && told.recv().await.is_none(), "the second list is not believed");
}
