//! Whether this process may write. Of several replicas of a daemon one is active ([`election`](crate::election)); all others watch and
//! keep what they know, and change nothing.
//!
//! Every client of a daemon is guarded by its [`Hold`], so that no write goes past it: neither one of a replica that stands by, nor one of
//! a replica that was active, was paused, and does not know yet that another one has taken its place.

use std::{future::poll_fn, pin::pin, task::Poll, time::Instant};

use http::{HeaderValue, Method, Request, Response, header::USER_AGENT};
use kube::{Client, client::Body};
use tokio::sync::watch;

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this replica is not the active one, or cannot show that it still is")]
pub struct StandsBy;

/// Until when this process may write. None: it stands by.
type Until = Option<Instant>;

/// Whether this process may write. Cloning shares it.
#[derive(Clone)]
pub struct Hold(Option<OfReplica>);

#[derive(Clone)]
struct OfReplica {
    until: watch::Receiver<Until>,
    /// Who asks: audit logs of API servers tell replicas apart by it.
    agent: HeaderValue,
}

/// The other end: what [`Hold`]s say.
pub(crate) struct Grant(watch::Sender<Until>);

impl Grant {
    /// One that nobody has yet.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// What it is about: a replica of `daemon`.
    pub(crate) fn hold(&self, daemon: &'static str, replica: &str) -> Hold {
        let agent = HeaderValue::try_from(format!("{daemon}/{} ({replica})", env!("CARGO_PKG_VERSION")));
        let agent = agent.unwrap_or_else(|_| HeaderValue::from_static(daemon));
        Hold(Some(OfReplica { until: self.0.subscribe(), agent }))
    }

    /// This process may write until then.
    pub(crate) fn until(&self, at: Instant) {
        self.0.send_replace(Some(at));
    }
}

impl Hold {
    /// Of a process that is the only one of its kind.
    pub fn sole() -> Self {
        Self(None)
    }

    /// Waits until this process is the active one.
    pub async fn active(&self) {
        let Some(OfReplica { until, .. }) = &self.0 else { return };
        if until.clone().wait_for(Option::is_some).await.is_err() {
            // Nobody will ever say so: the process ends.
            std::future::pending().await
        }
    }

    /// Whether this process is or was the active one. A process that loses that ends.
    pub fn is_active(&self) -> bool {
        self.0.as_ref().is_none_or(|of| of.until.borrow().is_some())
    }

    /// Whether nobody else can have become active by `now`.
    pub fn may_write(&self, now: Instant) -> bool {
        self.0.as_ref().is_none_or(|of| of.until.borrow().is_some_and(|until| now < until))
    }

    /// Waits until this process may write no more.
    async fn ends(&self) {
        let Some(OfReplica { until, .. }) = &self.0 else { return std::future::pending().await };
        let mut until = until.clone();
        loop {
            let granted = *until.borrow_and_update();
            let Some(at) = granted.filter(|at| Instant::now() < *at) else { return };
            let renewed = async {
                if until.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            drop(tokio::time::timeout_at(at.into(), renewed).await);
        }
    }

    /// The same client, which says to API servers which replica asks, and is not held: by it a replica becomes the active one.
    pub(crate) fn sign(&self, client: Client) -> Client {
        let Some(OfReplica { agent, .. }) = self.0.clone() else { return client };
        let namespace = client.default_namespace().to_owned();
        let send = move |mut request: Request<Body>| {
            request.headers_mut().insert(USER_AGENT, agent.clone());
            let client = client.clone();
            async move { client.send(request).await }
        };
        Client::new(tower::service_fn(send), namespace)
    }

    /// The same client, which sends nothing that writes while this process must not. A write under way, and each try of it, ends with
    /// the hold, whether it is answered or not: who wakes after a pause goes no further.
    pub fn guard(&self, client: Client) -> Client {
        let Some(OfReplica { agent, .. }) = self.0.clone() else { return client };
        let (hold, namespace) = (self.clone(), client.default_namespace().to_owned());
        let send = move |mut request: Request<Body>| {
            request.headers_mut().insert(USER_AGENT, agent.clone());
            send(hold.clone(), client.clone(), request)
        };
        Client::new(tower::service_fn(send), namespace)
    }
}

async fn send(hold: Hold, client: Client, request: Request<Body>) -> kube::Result<Response<Body>> {
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    let mut sent = pin!(client.send(request));
    if reads {
        return sent.await;
    }
    // Looked at whenever it goes on, since a timer may fire late.
    let sent = poll_fn(|context| match hold.may_write(Instant::now()) {
        true => sent.as_mut().poll(context),
        false => Poll::Ready(Err(kube::Error::Service(StandsBy.into()))),
    });
    tokio::select! {
        answer = sent => answer,
        () = hold.ends() => Err(kube::Error::Service(StandsBy.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use k8s_openapi::api::core::v1::Namespace;
    use kube::{Api, api::DeleteParams};

    use super::*;
    use crate::failure::{Failure, classify};

    /// A client of an API server that counts what it is asked and answers after so long.
    fn counting(after: Duration) -> (Client, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let answer = move |_: Request<Body>| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(after).await;
                let body = Body::from(br#"{"kind":"Namespace","metadata":{"name":"x"}}"#.to_vec());
                Ok::<_, std::convert::Infallible>(Response::new(body))
            }
        };
        (Client::new(tower::service_fn(answer), "x"), asked)
    }

    #[tokio::test]
    async fn who_stands_by_reads_and_writes_nothing() {
        let (client, asked) = counting(Duration::ZERO);
        let grant = Grant::new();
        let hold = grant.hold("freeport-leader", "a");
        let namespaces = Api::<Namespace>::all(hold.guard(client.clone()));
        assert!(!hold.is_active() && namespaces.get("x").await.is_ok());
        let refused = namespaces.delete("x", &DeleteParams::default()).await.unwrap_err();
        assert_eq!(classify(&refused), Failure::Unreachable("this replica is not the active one"));
        assert_eq!(asked.load(Ordering::SeqCst), 1);

        grant.until(Instant::now() + Duration::from_secs(600));
        hold.active().await;
        assert!(hold.is_active() && namespaces.delete("x", &DeleteParams::default()).await.is_ok());
        let asked_before = asked.load(Ordering::SeqCst);

        grant.until(Instant::now());
        assert!(hold.is_active(), "it does not know yet");
        assert!(namespaces.delete("x", &DeleteParams::default()).await.is_err());
        assert_eq!(asked.load(Ordering::SeqCst), asked_before);
        let sole = Api::<Namespace>::all(Hold::sole().guard(client));
        assert!(sole.delete("x", &DeleteParams::default()).await.is_ok());
    }

    #[tokio::test]
    async fn who_competes_for_the_lease_says_which_replica_it_is_and_is_not_held() {
        let answer = |request: Request<Body>| async move {
            let agent = request.headers()[USER_AGENT].to_str().unwrap().to_owned();
            let answer = format!(r#"{{"kind":"Namespace","metadata":{{"name":"{agent}"}}}}"#);
            Ok::<_, std::convert::Infallible>(Response::new(Body::from(answer.into_bytes())))
        };
        let client = Client::new(tower::service_fn(answer), "x");
        let hold = Grant::new().hold("freeport-leader", "a");
        let namespaces = Api::<Namespace>::all(hold.sign(client));
        let answered = namespaces.delete("x", &DeleteParams::default()).await.unwrap();
        let name = answered.left().and_then(|namespace| namespace.metadata.name);
        assert!(name.is_some_and(|name| name.starts_with("freeport-leader/") && name.ends_with("(a)")));
    }

    #[tokio::test]
    async fn a_write_under_way_ends_with_the_hold() {
        let (client, asked) = counting(Duration::from_secs(3600));
        let grant = Grant::new();
        let namespaces = Api::<Namespace>::all(grant.hold("freeport-leader", "a").guard(client));
        grant.until(Instant::now() + Duration::from_secs(3600));
        let ends = async {
            while asked.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            grant.until(Instant::now() + Duration::from_millis(30));
        };
        let params = DeleteParams::default();
        let (written, ()) = tokio::join!(namespaces.delete("x", &params), ends);
        assert!(written.is_err());
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_write_that_is_never_answered_ends_with_the_hold() {
        let (client, _) = counting(Duration::from_secs(3600));
        let (grant, begun) = (Grant::new(), Instant::now());
        let namespaces = Api::<Namespace>::all(grant.hold("freeport-leader", "a").guard(client));
        grant.until(begun + Duration::from_secs(3600));
        let renewed = async { grant.until(begun + Duration::from_millis(200)) };
        let params = DeleteParams::default();
        let written = tokio::time::timeout(Duration::from_secs(60), namespaces.delete("x", &params));
        let (written, ()) = tokio::join!(written, renewed);
        assert!(written.unwrap().is_err() && !grant.hold("freeport-leader", "a").may_write(Instant::now()));
    }
}
