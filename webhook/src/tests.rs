//! The server as API servers meet it: by TLS, on a port of this machine.

mod fixture;

use std::time::Duration;

use axum::http::{StatusCode, header::CONNECTION};
use futures::future::join_all;
use jiff::Timestamp;
use kit::failure::Failure;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::fixture::{Ca, Webhook, asked, offloading, patch_of, review};
use crate::{offloadings::Offloadings, tls::Tls};

/// No test waits for it.
const RELIST: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_pod_gets_what_its_namespace_asks_for() {
    let webhook = Webhook::start(Duration::ZERO);
    webhook.offloadings.know(offloading("shop", &json!({"podOffloadingStrategy": "Remote"})));
    webhook.offloadings.know(offloading("here", &json!({"podOffloadingStrategy": "Local"})));
    webhook.offloadings.know(offloading("odd", &json!({"podOffloadingStrategy": "Everywhere"})));
    let client = webhook.client();
    let (code, answer) = asked(&client, &review("1", "shop")).await;
    assert_eq!((code, &answer["response"]["uid"]), (StatusCode::OK, &json!("1")));
    let term =
        json!({"matchExpressions": [{"key": "liqo.io/type", "operator": "In", "values": ["virtual-node"]}]});
    let required = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    let toleration =
        json!({"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists", "effect": "NoExecute"});
    let patch = json!([
        {"op": "add", "path": "/spec/affinity", "value": required},
        {"op": "add", "path": "/spec/tolerations", "value": [toleration]},
    ]);
    assert_eq!(patch_of(&answer), patch);

    let (_, answer) = asked(&client, &review("2", "here")).await;
    assert_eq!(answer["response"], json!({"uid": "2", "allowed": true}));
    let (code, answer) = asked(&client, &review("3", "odd")).await;
    assert_eq!((code, &answer["response"]["allowed"]), (StatusCode::OK, &json!(false)));
    let says = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(says.contains("odd/offloading cannot be read") && says.contains("Everywhere"), "{says}");
    // Nobody knows of one there, and the API server that was to be asked does not answer.
    let (code, answer) = asked(&client, &review("4", "new")).await;
    assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.to_string().contains("new/offloading"), "{answer}");
    let metrics = webhook.metrics();
    for result in ["patched", "unchanged", "denied", "unavailable"] {
        let line = format!("freeport_webhook_admissions_total{{result=\"{result}\"}} 1\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    assert!(metrics.contains("freeport_webhook_admission_seconds_count 4\n"), "{metrics}");
}

#[tokio::test]
async fn a_pod_that_cannot_travel_stays_at_home_or_is_created_with_a_warning() {
    let webhook = Webhook::start(Duration::ZERO);
    webhook.offloadings.know(offloading("both", &json!({})));
    webhook.offloadings.know(offloading("shop", &json!({"podOffloadingStrategy": "Remote"})));
    let client = webhook.client();
    let with_config = |uid: &str, namespace: &str| {
        let mut review = review(uid, namespace);
        review["request"]["object"]["spec"]["volumes"] =
            json!([{"name": "web", "configMap": {"name": "web"}}]);
        review
    };
    let (_, answer) = asked(&client, &with_config("1", "both")).await;
    let patch = patch_of(&answer);
    let [affinity] = patch.as_array().unwrap().as_slice() else { panic!("{patch}") };
    assert!(affinity["path"] == "/spec/affinity" && patch.to_string().contains("NotIn"), "{patch}");
    assert_eq!(answer["response"].get("warnings"), None);
    let (_, answer) = asked(&client, &with_config("2", "shop")).await;
    assert_eq!(patch_of(&answer).as_array().unwrap().len(), 2);
    let warning = answer["response"]["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("stays Pending") && warning.contains("spec.volumes[web].configMap"),
        "{warning}"
    );
    let (_, answer) = asked(&client, &review("3", "shop")).await;
    assert_eq!(answer["response"].get("warnings"), None);
}

#[tokio::test]
async fn no_pod_is_placed_for_what_is_being_deleted() {
    let webhook = Webhook::start(Duration::ZERO);
    let going = |namespace: &str, strategy: &str| {
        let mut going = offloading(namespace, &json!({"podOffloadingStrategy": strategy}));
        going["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
        webhook.offloadings.know(going);
    };
    going("shop", "Remote");
    going("here", "Local");
    let client = webhook.client();
    let (code, answer) = asked(&client, &review("1", "shop")).await;
    assert_eq!((code, &answer["response"]["allowed"]), (StatusCode::OK, &json!(false)));
    let says = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(says.contains("shop/offloading is being deleted") && says.contains("try again"), "{says}");
    let mut bound = review("2", "shop");
    bound["request"]["object"]["spec"]["nodeName"] = json!("n1");
    for passes in [bound, review("3", "here")] {
        let (_, answer) = asked(&client, &passes).await;
        assert_eq!(answer["response"]["allowed"], true, "{answer}");
    }
}

/// Issue 14, A4.
#[tokio::test]
async fn a4_a_pod_as_large_as_an_api_server_takes_is_served_and_so_are_others_meanwhile() {
    let webhook = Webhook::start(Duration::ZERO);
    webhook.offloadings.know(offloading("shop", &json!({"podOffloadingStrategy": "Remote"})));
    let client = webhook.client();
    let mut large = review("1", "shop");
    large["request"]["object"]["spec"]["containers"][0]["env"] = json!(vec![json!({"name": "A"}); 120_000]);
    assert!(large.to_string().len() > 1_500_000);
    let others = (0..10).map(|_| asked(&client, &large));
    let small = review("2", "shop");
    let (small, large) = tokio::join!(asked(&client, &small), join_all(others));
    for (code, answer) in large.iter().chain([&small]) {
        assert_eq!((*code, patch_of(answer).as_array().unwrap().len()), (StatusCode::OK, 2));
    }
}

#[tokio::test]
async fn what_is_malformed_is_answered_and_harms_nobody() {
    let webhook = Webhook::start(Duration::ZERO);
    webhook.offloadings.know(offloading("shop", &json!({})));
    let client = webhook.client();
    let mut no_spec = review("1", "shop");
    no_spec["request"]["object"] = json!({"spec": 7});
    let (code, answer) = asked(&client, &no_spec).await;
    assert_eq!((code, &answer["response"]["allowed"]), (StatusCode::OK, &json!(false)));
    for (body, code) in [
        (Vec::new(), StatusCode::BAD_REQUEST),
        (b"{\"apiVersion\":".to_vec(), StatusCode::BAD_REQUEST),
        (vec![0xff; 100], StatusCode::BAD_REQUEST),
        (vec![b'['; 1 << 20], StatusCode::BAD_REQUEST),
        (vec![b' '; (3 << 20) + 1], StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let request = fixture::post("/mutate/pod", body);
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.status(), code);
        let (code, _) = asked(&client, &review("2", "shop")).await;
        assert_eq!(code, StatusCode::OK);
    }
    for (path, code) in [("/", StatusCode::NOT_FOUND), ("/mutate/pods", StatusCode::NOT_FOUND)] {
        assert_eq!(client.send(fixture::post(path, vec![])).await.unwrap().status(), code);
    }
    let get = http::Request::get("/mutate/pod").body(kube::client::Body::empty()).unwrap();
    assert_eq!(client.send(get).await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_rotations_refuse_nobody() {
    let mut webhook = Webhook::start(Duration::ZERO);
    webhook.offloadings.know(offloading("shop", &json!({})));
    let cas: Vec<_> = (0..4).map(|_| Ca::new()).collect();
    webhook.serve(&cas[0]);
    let bundle: Vec<_> = cas.iter().map(Ca::der).collect();
    let asking = (0..8).map(|asker| {
        let (address, bundle) = (webhook.address, bundle.clone());
        async move {
            let mut client = fixture::client(address, &bundle);
            for request in 0..60 {
                // Some on the connection they have, some on a new one each time.
                if asker % 2 == 0 {
                    client = fixture::client(address, &bundle);
                }
                let (code, answer) = asked(&client, &review(&request.to_string(), "shop")).await;
                assert_eq!(
                    (code, &answer["response"]["allowed"]),
                    (StatusCode::OK, &json!(true)),
                    "{answer}"
                );
            }
        }
    });
    let asking: JoinSet<()> = asking.collect();
    for (old, new) in cas.iter().zip(&cas[1..]) {
        webhook.serve(new);
        let (code, _) = asked(&webhook.client(), &review("x", "shop")).await;
        assert_eq!(code, StatusCode::OK, "who trusts the new authority alone is answered");
        let of_old = fixture::client(webhook.address, &[old.der()]);
        assert!(of_old.send(fixture::post("/mutate/pod", vec![])).await.is_err(), "the old one is gone");
    }
    asking.join_all().await;
}

#[tokio::test]
async fn who_asks_while_it_stops_is_answered_and_sent_elsewhere() {
    let webhook = Webhook::start(Duration::from_secs(3600));
    webhook.offloadings.know(offloading("shop", &json!({})));
    let client = webhook.client();
    let post = || fixture::post("/mutate/pod", review("1", "shop").to_string().into_bytes());
    let before = client.send(post()).await.unwrap();
    assert_eq!((before.status(), before.headers().get(CONNECTION)), (StatusCode::OK, None));
    webhook.stop.cancel();
    let answers = join_all([client.send(post()), webhook.client().send(post())]).await;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(
            (answer.status(), &answer.headers()[CONNECTION]),
            (StatusCode::OK, &"close".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn an_end_waits_for_requests_under_way() {
    let mut webhook = Webhook::start(Duration::ZERO);
    webhook.offloadings.know(offloading("shop", &json!({})));
    let client = webhook.client();
    // A body that comes in two halves, the second after the end began.
    let text = review("1", "shop").to_string();
    let (first, second) = text.split_at(text.len() / 2);
    let (mut stream, length) = (webhook.connect().await, text.len());
    let head = format!(
        "POST /mutate/pod HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write(&[head.as_bytes(), first.as_bytes()].concat()).await;
    let (code, _) = asked(&client, &review("2", "shop")).await;
    assert_eq!(code, StatusCode::OK);
    webhook.stop.cancel();
    while tokio::net::TcpStream::connect(webhook.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write(second.as_bytes()).await;
    let answer = stream.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"allowed\":true"), "{answer}");
    webhook.ended().await;
}

#[test]
fn what_is_garbled_keeps_the_last_good_certificate() {
    let (dir, tls, now) = (tempfile::tempdir().unwrap(), Tls::default(), Timestamp::UNIX_EPOCH);
    let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
    let read = || {
        tls.read(dir.path(), now);
        (tls.expiry().is_some(), tls.problem())
    };
    let (served, problem) = read();
    assert!(!served && problem.unwrap().contains("tls.crt"));
    let (ca, next) = (Ca::new(), Ca::new());
    let (certificate, key) = ca.leaf();
    write("tls.crt", &certificate);
    assert!(read().1.unwrap().contains("tls.key"));
    write("tls.key", &key);
    assert_eq!(read(), (true, None));
    let (certificate, key) = next.leaf();
    write("tls.crt", &certificate);
    let (served, problem) = read();
    assert!(served && problem.unwrap().contains("does not belong"), "half of the next one is there");
    write("tls.key", &key);
    assert_eq!(read(), (true, None));
    write("tls.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let (served, problem) = read();
    assert!(served && problem.is_some());
    assert!(read().1.is_some(), "as long as it lasts");
    std::fs::remove_file(dir.path().join("tls.crt")).unwrap();
    let (served, problem) = read();
    assert!(served && problem.unwrap().contains("tls.crt"));
    write("tls.crt", &certificate);
    assert_eq!(read(), (true, None));
}

/// As a kubelet mounts Secrets: `tls.crt` leads through `..data`, which it replaces at once.
#[test]
fn both_files_are_of_one_generation() {
    use std::os::unix::fs::symlink;

    let (dir, tls) = (tempfile::tempdir().unwrap(), Tls::default());
    let at = |name: &str| dir.path().join(name);
    for (generation, ca) in [("..1", Ca::new()), ("..2", Ca::new())] {
        let (certificate, key) = ca.leaf();
        std::fs::create_dir(at(generation)).unwrap();
        std::fs::write(at(generation).join("tls.crt"), certificate).unwrap();
        std::fs::write(at(generation).join("tls.key"), key).unwrap();
        symlink(generation, at("..new")).unwrap();
        std::fs::rename(at("..new"), at("..data")).unwrap();
        tls.read(dir.path(), Timestamp::UNIX_EPOCH);
        assert_eq!((tls.expiry().is_some(), tls.problem()), (true, None));
    }
}

#[tokio::test]
async fn it_is_ready_with_a_certificate_and_a_list() {
    let webhook = Webhook::start(Duration::ZERO);
    let says = crate::readiness(&Tls::default(), &webhook.offloadings);
    assert!(says.unwrap_err().contains("no certificate"));
    let says = crate::readiness(&webhook.tls, &webhook.offloadings);
    assert!(says.unwrap_err().contains("list of NamespaceOffloadings"));
}

#[tokio::test]
async fn it_is_ready_where_the_kind_is_missing() {
    let webhook = Webhook::start(Duration::ZERO);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    // It serves no kind at all.
    let serving = axum::serve(listener, axum::Router::new()).into_future();
    let client = kube::Client::try_from(kube::Config::new(server.parse().unwrap())).unwrap();
    let (offloadings, watch) = Offloadings::watch(client, kit::metrics::Metrics::new().unwrap(), RELIST);
    let seen = async {
        while offloadings.refused().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = seen => {}
        () = watch => {}
        _ = serving => {}
    }
    assert_eq!(offloadings.refused(), Some(Failure::KindMissing));
    assert_eq!(crate::readiness(&webhook.tls, &offloadings), Ok(()), "it answers with what there is to do");
}

#[tokio::test]
async fn who_is_placed_by_somebody_else_passes_where_nothing_is_known() {
    let webhook = Webhook::start(Duration::ZERO);
    let client = webhook.client();
    let of = |change: &dyn Fn(&mut Value)| {
        let mut review = review("1", "new");
        change(&mut review["request"]["object"]);
        review
    };
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true});
    for placed in [
        of(&|pod| pod["metadata"]["ownerReferences"] = json!([owner])),
        of(&|pod| pod["spec"]["nodeName"] = json!("worker")),
        of(&|pod| pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"})),
    ] {
        let (code, answer) = asked(&client, &placed).await;
        assert_eq!((code, &answer["response"]), (StatusCode::OK, &json!({"uid": "1", "allowed": true})));
    }
    assert_eq!(asked(&client, &review("2", "new")).await.0, StatusCode::SERVICE_UNAVAILABLE);
}

/// The answer as JSON, or as a text of JSON.
fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
