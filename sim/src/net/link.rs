//! A client's way to one API server, and back.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{future::BoxFuture, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, sleep, sleep_until},
};
use tower::{BoxError, Service};

use super::{
    Caller, Fate, Net, audit,
    wire::{self, Answered},
};
use crate::api::{self, Server, WatchEvent};

/// Until a client gives up on a server that it does not reach.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Link {
    caller: Arc<Caller>,
    server: Arc<Server>,
    net: Arc<Net>,
}

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

fn broken(why: &'static str) -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, why).into()
}

impl Link {
    pub(super) fn new(caller: Caller, server: Arc<Server>, net: Arc<Net>) -> Self {
        Self { caller: Arc::new(caller), server, net }
    }

    async fn send(self, request: Request<Body>) -> Result<Answered, BoxError> {
        let ask = wire::read(&self.caller.user, request).await?;
        let (there, back, fate) = (self.net.latency(), self.net.latency(), self.net.fate());
        if self.is_cut() {
            sleep(PATIENCE).await;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the server is not reached").into());
        }
        let link = self.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "what was sent arrives, whatever becomes of the sender"
        )]
        let arrived = tokio::spawn(async move {
            sleep(there).await;
            link.arrive(&ask, fate)
        });
        let answer = arrived.await?;
        if fate == Fate::Unanswered {
            return Err(broken("the answer was lost"));
        }
        sleep(back).await;
        Ok(match answer {
            None => wire::unavailable(),
            Some(api::Response::Whole { code, body }) => wire::whole(code, body),
            Some(api::Response::Watch { events, seconds }) => {
                self.watch(events, Duration::from_secs(seconds), back)
            }
        })
    }

    /// What the server answers, unless the request is refused on the way.
    fn arrive(&self, ask: &api::Request, fate: Fate) -> Option<api::Response> {
        if fate == Fate::Refused {
            self.note(ask, 503, 0);
            return None;
        }
        let answer = self.server.answer(ask);
        match &answer {
            api::Response::Whole { code, body } => self.note(ask, *code, body.len()),
            api::Response::Watch { .. } => self.note(ask, 200, 0),
        }
        Some(answer)
    }

    fn note(&self, ask: &api::Request, code: u16, length: usize) {
        {
            let mut state = self.net.state();
            state.requests += 1;
            if ask.method != "GET" {
                state.audit.push((self.server.name.clone(), audit::event(&self.caller, ask, code)));
            }
        }
        self.net.log(format_args!(
            "{} -> {}: {} {} {} -> {code} {length} v{}",
            self.caller.process,
            self.server.name,
            ask.method,
            audit::uri(ask),
            ask.body.len(),
            self.server.version()
        ));
    }

    fn is_cut(&self) -> bool {
        self.net.is_cut(&self.caller.process, &self.server.name)
    }

    /// The events of a watch as they arrive: in their order, each after the latency of the connection.
    fn watch(&self, events: UnboundedReceiver<WatchEvent>, lasts: Duration, latency: Duration) -> Answered {
        let ends = Instant::now() + lasts;
        let (cut, is_clean) = self.net.cut_at();
        let cut = cut.filter(|cut| *cut < ends);
        let watch = Watch { link: self.clone(), events, held: None, latency, ends: cut.unwrap_or(ends) };
        let is_clean = is_clean || cut.is_none();
        let frames = stream::unfold(Some(watch), move |watch| async move {
            let mut watch = watch?;
            match watch.next().await {
                Ok(Some(lines)) => Some((Ok(Frame::data(lines)), Some(watch))),
                Ok(None) if is_clean => None,
                Ok(None) => Some((Err(broken("the watch was cut")), None)),
                Err(error) => Some((Err(error), None)),
            }
        });
        Response::new(http_body_util::BodyExt::boxed_unsync(StreamBody::new(frames)))
    }
}

/// A watch under way.
struct Watch {
    link: Link,
    events: UnboundedReceiver<WatchEvent>,
    /// An event that has not arrived when those before it had.
    held: Option<WatchEvent>,
    latency: Duration,
    ends: Instant,
}

impl Watch {
    /// Lines that arrive together; none when the watch ends.
    async fn next(&mut self) -> Result<Option<Bytes>, BoxError> {
        let Self { link, .. } = self;
        let (process, cluster) = (link.caller.process.clone(), link.server.name.clone());
        let first = match self.held.take() {
            Some(told) => told,
            None => tokio::select! {
                biased;
                told = self.events.recv() => match told {
                    Some(told) => told,
                    None => return Ok(None),
                },
                () = sleep_until(self.ends) => {
                    link.net.log(format_args!("{process} <- {cluster}: a watch ends"));
                    return Ok(None);
                }
            },
        };
        sleep_until(first.at + self.latency).await;
        let now = Instant::now();
        let (mut lines, mut count) = (Vec::from(first.line), 1);
        while let Ok(told) = self.events.try_recv() {
            if told.at + self.latency > now {
                self.held = Some(told);
                break;
            }
            lines.extend_from_slice(&told.line);
            count += 1;
        }
        self.link.net.state().events += count;
        self.link.net.log(format_args!("{process} <- {cluster}: {count} events, {} bytes", lines.len()));
        if self.link.is_cut() {
            return Err(broken("the server is not reached"));
        }
        Ok(Some(Bytes::from(lines)))
    }
}
