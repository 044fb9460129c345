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
    time::{Instant, sleep, sleep_until, timeout},
};
use tower::{BoxError, Service};

use super::{
    Caller, Fate, Fault, Net, audit,
    fault::SILENCE,
    traffic,
    wire::{self, Answered},
};
use crate::api::{self, Server, WatchEvent};

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
        let ask = wire::read(&self.caller, request).await?;
        let (mut there, mut back, fate) = (self.net.latency(), self.net.latency(), self.net.fate());
        match self.fault() {
            Some(Fault::Cut) => {
                sleep(there).await;
                return Err(broken("the link is cut"));
            }
            Some(Fault::Silent) => self.speaks().await?,
            Some(Fault::Refused(code)) => {
                sleep(there + back).await;
                self.note(&ask, code, 0);
                return Ok(wire::refused(code));
            }
            Some(Fault::Slow(more)) => (there, back) = (there + more, back + more),
            Some(Fault::NoWatches) | None => {}
        }
        let (link, is_of_leases) = (self.clone(), traffic::is_of_leases(&ask));
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
        self.speaks().await?;
        Ok(match answer {
            None => wire::refused(503),
            Some(api::Response::Whole { code, body }) => wire::whole(code, body),
            Some(api::Response::Watch { events, seconds }) => {
                self.watch(is_of_leases, events, Duration::from_secs(seconds), back)
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
            state.counts.request(&self.server.name, ask, length);
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

    fn fault(&self) -> Option<Fault> {
        self.net.fault(&self.caller.process, &self.server.name)
    }

    /// The events of a watch as they arrive: in their order, each after the latency of the connection.
    fn watch(
        &self,
        is_of_leases: bool,
        events: UnboundedReceiver<WatchEvent>,
        lasts: Duration,
        latency: Duration,
    ) -> Answered {
        let ends = Instant::now() + lasts;
        let (cut, is_clean) = self.net.cut_at();
        let cut = cut.filter(|cut| *cut < ends);
        let latency = latency + self.net.late();
        let ends = cut.unwrap_or(ends);
        let watch = Watch { link: self.clone(), is_of_leases, events, held: None, latency, ends };
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
    is_of_leases: bool,
    events: UnboundedReceiver<WatchEvent>,
    /// An event that has not arrived when those before it had.
    held: Option<WatchEvent>,
    latency: Duration,
    ends: Instant,
}

impl Watch {
    /// Lines that arrive together; none when the watch ends.
    async fn next(&mut self) -> Result<Option<Bytes>, BoxError> {
        let link = self.link.clone();
        let lines = tokio::select! {
            biased;
            error = link.breaks() => return Err(error),
            lines = self.arrive() => lines,
        };
        link.speaks().await?;
        Ok(lines)
    }

    async fn arrive(&mut self) -> Option<Bytes> {
        let first = match self.held.take() {
            Some(event) => event,
            None => tokio::select! {
                biased;
                event = self.events.recv() => event?,
                () = sleep_until(self.ends) => {
                    self.log(format_args!("a watch ends"));
                    return None;
                }
            },
        };
        let at = first.at;
        // Until then it is under way, and breaks with the link.
        self.held = Some(first);
        sleep_until(at + self.latency).await;
        let now = Instant::now();
        let (mut lines, mut count) = (Vec::new(), 0);
        while let Some(event) = self.held.take().or_else(|| self.events.try_recv().ok()) {
            if event.at + self.latency > now {
                self.held = Some(event);
                break;
            }
            lines.extend_from_slice(&event.line);
            count += 1;
        }
        let Self { link, is_of_leases, .. } = &*self;
        link.net.state().counts.events(&link.server.name, *is_of_leases, count, lines.len());
        self.log(format_args!("{count} events, {} bytes", lines.len()));
        Some(Bytes::from(lines))
    }

    fn log(&self, what: std::fmt::Arguments<'_>) {
        let Link { caller, server, net } = &self.link;
        net.log(format_args!("{} <- {}: {what}", caller.process, server.name));
    }
}

impl Link {
    /// Waits while the link is silent. What was sent gets through when it ends in time; otherwise the client gives the connection up.
    async fn speaks(&self) -> Result<(), BoxError> {
        let mut changed = self.net.changed.subscribe();
        let ends = async {
            while self.fault() == Some(Fault::Silent) {
                if changed.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        timeout(SILENCE, ends)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into())
    }

    /// Waits until a watch on this link breaks.
    async fn breaks(&self) -> BoxError {
        let mut changed = self.net.changed.subscribe();
        loop {
            match self.fault() {
                Some(Fault::Cut | Fault::NoWatches) => return broken("the watch was cut"),
                Some(Fault::Silent) => match self.speaks().await {
                    Ok(()) => continue,
                    Err(error) => return error,
                },
                _ => {}
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
