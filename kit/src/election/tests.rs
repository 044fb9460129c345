use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::Value;

use super::*;

/// An API server with one Lease, which any number of replicas compete for.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Option<Value>>>);

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let answer = move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (code, answer) = server.answer(&head.method, &body);
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, kube::Error>(Response::builder().status(code).body(body).unwrap())
            }
        };
        Client::new(tower::service_fn(answer), "x")
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (u16, Value) {
        let mut lease = self.0.lock().unwrap();
        let status = |code: u16, reason: &str| {
            (code, json!({"kind": "Status", "status": "Failure", "reason": reason, "code": code}))
        };
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        match (method.clone(), lease.as_mut()) {
            (Method::GET, Some(lease)) => (200, lease.clone()),
            (Method::POST, None) => {
                let mut new = sent;
                new["metadata"]["resourceVersion"] = json!("1");
                new["metadata"]["uid"] = json!("u");
                (201, lease.insert(new).clone())
            }
            (Method::PATCH, Some(lease)) => {
                let version = &lease["metadata"]["resourceVersion"];
                if *version != sent["metadata"]["resourceVersion"] {
                    return status(409, "Conflict");
                }
                let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
                lease["metadata"]["resourceVersion"] = json!(next.to_string());
                for (key, value) in sent["spec"].as_object().unwrap() {
                    lease["spec"][key] = value.clone();
                }
                (200, lease.clone())
            }
            (Method::POST, Some(_)) => status(409, "AlreadyExists"),
            _ => status(404, "NotFound"),
        }
    }

    fn election(&self, replica: &str, random: &str) -> Election {
        let metrics = Metrics::new().unwrap();
        Election::new(self.client(), "freeport-leader", "x", (replica, random), metrics)
    }

    fn holder(&self) -> String {
        self.0.lock().unwrap().as_ref().unwrap()["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_has_it_and_the_other_takes_what_is_not_renewed() {
    let server = Server::default();
    let (mut a, mut b) = (server.election("a", "1"), server.election("b", "2"));
    assert_eq!((a.compete().await.unwrap(), b.compete().await.unwrap()), (true, false));
    for _ in 0..20 {
        tokio::time::sleep(EVERY).await;
        assert!(a.renew(Instant::now() + GIVE_UP).await.unwrap() && !b.compete().await.unwrap());
    }
    let begun = Instant::now();
    b.acquire().await;
    let took = begun.elapsed();
    assert!(took > GIVE_UP && took <= LASTS + 2 * LOOK, "{took:?}");
    let until = Instant::now() + GIVE_UP;
    assert!(!a.renew(until).await.unwrap(), "it learns of it");
    b.release().await;
    assert_eq!(server.holder(), "");
    assert!(!b.renew(until).await.unwrap(), "what was given up is not ours");
    let begun = Instant::now();
    server.election("c", "3").acquire().await;
    assert_eq!((begun.elapsed(), server.holder()), (Duration::ZERO, "c_3".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_starts_again_takes_the_lease_of_its_pod() {
    let server = Server::default();
    assert!(server.election("pod", "1").compete().await.unwrap());
    let begun = Instant::now();
    server.election("pod", "2").acquire().await;
    assert_eq!((begun.elapsed(), server.holder()), (Duration::ZERO, "pod_2".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn who_was_paused_finds_that_it_must_not_write() {
    let (server, grant) = (Server::default(), Grant::new());
    let hold = grant.hold("freeport-leader", "a");
    let mut a = server.election("a", "1");
    let until = a.acquire().await;
    grant.until(until.into());
    assert!(hold.may_write(std::time::Instant::now()));
    let mut b = server.election("b", "2");
    b.acquire().await;
    let lost = tokio::time::timeout(Duration::from_secs(60), a.keep(&grant, until)).await;
    assert!(lost.is_ok() && GIVE_UP + PATIENCE <= LASTS);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deletes_makes_no_second_one_active() {
    let server = Server::default();
    let (mut a, mut b) = (server.election("a", "1"), server.election("b", "2"));
    assert_eq!((a.compete().await.unwrap(), b.compete().await.unwrap()), (true, false));
    let until = Instant::now() + GIVE_UP;
    *server.0.lock().unwrap() = None;
    assert!(!b.compete().await.unwrap(), "a writes on");
    assert!(a.renew(until).await.unwrap() && !b.compete().await.unwrap());

    *server.0.lock().unwrap() = None;
    let begun = Instant::now();
    b.acquire().await;
    let took = begun.elapsed();
    assert!(took > GIVE_UP && took <= LASTS + 2 * LOOK, "{took:?}");
    *server.0.lock().unwrap() = None;
    assert!(!a.renew(until).await.unwrap(), "b may have it");
}
