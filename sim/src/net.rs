//! The network between a client and an API server: latency and faults from one seed, and a log of all that passes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{future::BoxFuture, stream};
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, Service};

use crate::{
    api::{self, Server, WatchEvent},
    clock::Random,
};

/// How much goes wrong.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Of a thousand requests so many are answered 503.
    pub refused: u64,
    /// Of a thousand requests so many are carried out and not answered.
    pub unanswered: u64,
    /// Watches end after this time on average, in milliseconds; 0: never.
    pub cut_after: u64,
}

/// What all links share.
pub struct Net {
    state: Mutex<State>,
    begun: Instant,
}

struct State {
    random: Random,
    faults: Faults,
    /// Who does not reach whom.
    cut: BTreeMap<(String, String), bool>,
    log: Vec<u8>,
    keep: bool,
    pub requests: u64,
    pub events: u64,
    /// Requests that write, as audit logs have them.
    audit: Vec<(String, serde_json::Value)>,
}

impl Net {
    pub fn new(seed: u64) -> Arc<Self> {
        let state = State {
            random: Random::new(seed),
            faults: Faults::default(),
            cut: BTreeMap::new(),
            log: Vec::new(),
            keep: true,
            requests: 0,
            events: 0,
            audit: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), begun: Instant::now() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn break_with(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// From now on `who` does not reach `server`, or does again.
    pub fn partition(&self, who: &str, server: &str, is_cut: bool) {
        self.lock().cut.insert((who.to_owned(), server.to_owned()), is_cut);
    }

    fn is_cut(&self, who: &str, server: &str) -> bool {
        let state = self.lock();
        !state.cut.is_empty() && state.cut.get(&(who.to_owned(), server.to_owned())).copied().unwrap_or_default()
    }

    /// A random number below `below`.
    pub fn below(&self, below: u64) -> u64 {
        let mut state = self.lock();
        state.random.below(below)
    }

    pub fn log(&self, line: std::fmt::Arguments<'_>) {
        use std::io::Write;
        let at = self.begun.elapsed().as_millis();
        let mut state = self.lock();
        if state.keep {
            let _ = writeln!(state.log, "{at:>9} {line}");
        }
    }

    /// Requests, events of watches.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.lock();
        (state.requests, state.events)
    }

    /// Requests that wrote, from the n-th on: the cluster, and what an audit log says.
    pub fn audited(&self, from: usize) -> Vec<(String, serde_json::Value)> {
        self.lock().audit[from..].to_vec()
    }

    pub fn audit_length(&self) -> usize {
        self.lock().audit.len()
    }

    pub fn take_log(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().log)
    }
}

/// A client's way to one API server.
#[derive(Clone)]
pub struct Link {
    who: Arc<str>,
    server: Arc<Server>,
    net: Arc<Net>,
}

/// A client of `server` for `who`.
pub fn client(net: &Arc<Net>, server: &Arc<Server>, who: &str) -> Client {
    Client::new(Link { who: who.into(), server: server.clone(), net: net.clone() }, "default")
}

type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl Service<Request<Body>> for Link {
    type Response = Answered;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answered, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let link = self.clone();
        Box::pin(async move { link.send(request).await })
    }
}

fn broken(words: &'static str) -> BoxError {
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, words).into()
}

impl Link {
    async fn send(self, request: Request<Body>) -> Result<Answered, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let ask = api::Request { client: self.who.to_string(), ..ask(&head, body) };
        let (there, back) = (1 + self.net.below(3), 1 + self.net.below(3));
        let fate = self.net.below(1000);
        let faults = self.net.lock().faults.clone();
        if self.net.is_cut(&self.who, &self.server.name) {
            sleep(Duration::from_secs(5)).await;
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "partitioned").into());
        }
        // What is on its way arrives, whatever becomes of who sent it.
        let carried = tokio::spawn({
            let link = self.clone();
            async move {
                sleep(Duration::from_millis(there)).await;
                if fate < faults.refused {
                    link.note(&ask, 503, 0);
                    return Err(unavailable());
                }
                let answer = link.server.answer(&ask);
                match &answer {
                    api::Response::Whole { code, body } => link.note(&ask, *code, body.len()),
                    api::Response::Watch { .. } => link.note(&ask, 200, 0),
                }
                Ok(answer)
            }
        });
        let answer = carried.await?;
        if fate >= faults.refused && fate < faults.refused + faults.unanswered {
            return Err(broken("the answer was lost"));
        }
        sleep(Duration::from_millis(back)).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(refused) => return Ok(refused),
        };
        Ok(match answer {
            api::Response::Whole { code, body } => respond(code, Full::new(body).map_err(|never| match never {}).boxed_unsync()),
            api::Response::Watch { events, seconds } => respond(200, self.stream(events, seconds, back, &faults)),
        })
    }

    fn note(&self, ask: &api::Request, code: u16, length: usize) {
        {
            let mut state = self.net.lock();
            state.requests += 1;
            if state.keep && ask.method != "GET" {
                state.audit.push((self.server.name.clone(), self.audit(ask, code)));
            }
        }
        let query: Vec<_> = ask.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        self.net.log(format_args!(
            "{} -> {}: {} {}?{} {} -> {code} {length} v{}",
            self.who, self.server.name, ask.method, ask.path, query.join("&"), ask.body.len(), self.server.version()
        ));
    }

    fn audit(&self, ask: &api::Request, code: u16) -> serde_json::Value {
        let daemon = self.who.strip_suffix(&format!("-{}", self.server.name));
        let user = match (&*self.who, daemon) {
            ("admin", _) => "admin".to_owned(),
            (_, Some(daemon)) => format!("system:serviceaccount:freeport-system:{daemon}"),
            (who, None) => format!("system:serviceaccount:clusterset-demo:{who}"),
        };
        let query: Vec<_> = ask.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let uri = format!("{}?{}", ask.path, query.join("&"));
        let steps: Vec<&str> = ask.path.split('/').filter(|step| !step.is_empty()).collect();
        let rest = if steps.first() == Some(&"api") { &steps[2..] } else { &steps[3.min(steps.len())..] };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, _, ..] => (*namespace, &rest[2..]),
            rest => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default();
        let verb = match ask.method.as_str() {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            _ => "delete",
        };
        serde_json::json!({
            "user": {"username": user}, "verb": verb, "requestURI": uri, "responseStatus": {"code": code},
            "objectRef": {"namespace": namespace, "resource": part(0), "name": part(1), "subresource": part(2)},
            "stageTimestamp": jiff::Timestamp::now().to_string(),
        })
    }

    /// The events of a watch as they arrive: in order, each after a while.
    fn stream(
        &self,
        events: tokio::sync::mpsc::UnboundedReceiver<WatchEvent>,
        seconds: u64,
        latency: u64,
        faults: &Faults,
    ) -> UnsyncBoxBody<Bytes, BoxError> {
        let until = Instant::now() + Duration::from_secs(seconds);
        let cut = (faults.cut_after > 0)
            .then(|| Instant::now() + Duration::from_millis(1 + self.net.below(2 * faults.cut_after)));
        let cleanly = self.net.below(2) == 0;
        let state = (self.clone(), events, None::<WatchEvent>);
        let lines = stream::unfold(Some(state), move |state| async move {
            let (link, mut events, held) = state?;
            let first = match held {
                Some(told) => told,
                None => {
                    let end = cut.unwrap_or(until).min(until);
                    tokio::select! {
                        biased;
                        told = events.recv() => told?,
                        () = sleep_until(end) => {
                            link.net.log(format_args!("{} -> {}: a watch ends", link.who, link.server.name));
                            let is_cut = end < until;
                            if is_cut && !cleanly {
                                return Some((Err(broken("the watch was cut")), None));
                            }
                            if is_cut {
                                return None;
                            }
                            return None;
                        }
                    }
                }
            };
            sleep_until(first.at + Duration::from_millis(latency)).await;
            let now = Instant::now();
            let (mut lines, mut held, mut count) = (Vec::from(first.line), None, 1);
            while let Ok(told) = events.try_recv() {
                if told.at + Duration::from_millis(latency) > now {
                    held = Some(told);
                    break;
                }
                lines.extend_from_slice(&told.line);
                count += 1;
            }
            link.net.lock().events += count;
            link.net.log(format_args!("{} <- {}: {count} events, {} bytes", link.who, link.server.name, lines.len()));
            if link.net.is_cut(&link.who, &link.server.name) {
                return Some((Err(broken("partitioned")), None));
            }
            Some((Ok(http_body::Frame::data(Bytes::from(lines))), Some((link, events, held))))
        });
        StreamBody::new(lines).boxed_unsync()
    }
}

fn respond(code: u16, body: UnsyncBoxBody<Bytes, BoxError>) -> Answered {
    let kind = if code == 404 { "text/plain" } else { "application/json" };
    let mut answer = Response::new(body);
    *answer.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    answer.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    answer
}

fn unavailable() -> Answered {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "the server is currently unable to handle the request",
        "reason": "ServiceUnavailable", "code": 503,
    });
    respond(503, Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync())
}

fn ask(head: &http::request::Parts, body: Bytes) -> api::Request {
    let text = |name: header::HeaderName| {
        head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let pairs = head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key), decode(value))
    });
    api::Request {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: query.collect(),
        content_type: text(header::CONTENT_TYPE),
        accept: text(header::ACCEPT),
        agent: text(header::USER_AGENT),
        client: String::new(),
        body,
    }
}

fn decode(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = std::str::from_utf8(&digits).unwrap_or_default();
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
