//! Connections: TLS, limits, and an end that cuts nobody off.
//!
//! Whoever reaches the address may connect, so nobody may hold a connection by doing nothing, and no one address all of them.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Response, StatusCode, header::CONNECTION},
    response::IntoResponse,
};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Connections at the same time. An API server has 25 idle ones at the most.
const CONNECTIONS: usize = 1000;
/// The same from one address: several API servers may come from one, by NAT or a proxy.
const FROM_ONE_ADDRESS: usize = 500;
/// For the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// For the next request. Longer than API servers keep connections that nobody uses (90 s): so it is they who end them, and none
/// sends a request into a connection that just ends.
const IDLE: Duration = Duration::from_secs(120);
/// For a request with its body and its answer: no API server waits longer.
const REQUEST: Duration = Duration::from_secs(30);
/// After the time to drain, for requests under way.
const FINISH: Duration = Duration::from_secs(5);

/// How connections are served.
pub(crate) struct Server {
    /// Its certificate.
    pub(crate) tls: ServerConfig,
    /// Its answers.
    pub(crate) router: Router,
    /// How long it goes on when it shall stop.
    pub(crate) drain: Duration,
}

impl Server {
    /// Accepts connections on `listener` until `stop` and for a while after, then finishes what is under way.
    pub(crate) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let acceptor = TlsAcceptor::from(Arc::new(self.tls));
        let (graceful, mut connections) = (GracefulShutdown::new(), JoinSet::new());
        let drained = async {
            stop.cancelled().await;
            sleep(self.drain).await;
        };
        tokio::pin!(drained);
        let mut held = Held::default();
        loop {
            let has_room = connections.len() < CONNECTIONS;
            tokio::select! {
                () = &mut drained => break,
                accepted = listener.accept(), if has_room => match accepted {
                    Ok((stream, from)) => {
                        let Some(holder) = held.one_more(from.ip()) else { continue };
                        let connection = Connection { router: self.router.clone(), stop: stop.clone() };
                        let served = connection.serve(acceptor.clone(), stream, graceful.watcher());
                        connections.spawn(async move {
                            let _holder = holder;
                            served.await;
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(Duration::from_millis(100)).await;
                    }
                },
                // One that panicked was said by the panic, and takes nobody along.
                Some(_) = connections.join_next() => held.forget_ended(),
            }
        }
        drop(listener);
        if timeout(FINISH, graceful.shutdown()).await.is_err() {
            tracing::warn!("some requests did not end within {FINISH:?}");
        }
    }
}

/// Who has how many connections: each holds a clone of what its address has.
#[derive(Default)]
struct Held(HashMap<IpAddr, Arc<()>>);

impl Held {
    /// What one more connection of this address holds while it lasts; none if it has enough.
    fn one_more(&mut self, address: IpAddr) -> Option<Arc<()>> {
        let held = self.0.entry(address).or_default();
        (Arc::strong_count(held) <= FROM_ONE_ADDRESS).then(|| held.clone())
    }

    fn forget_ended(&mut self) {
        self.0.retain(|_, held| Arc::strong_count(held) > 1);
    }
}

struct Connection {
    router: Router,
    stop: CancellationToken,
}

impl Connection {
    async fn serve(self, acceptor: TlsAcceptor, stream: TcpStream, watcher: Watcher) {
        let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "no TLS handshake"),
            Err(_) => return tracing::debug!("no TLS handshake within {HANDSHAKE:?}"),
        };
        let answer =
            service_fn(async |request| Ok::<_, std::convert::Infallible>(self.answer(request).await));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .serve_connection(TokioIo::new(stream), answer);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "a connection broke");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answer = self.router.clone().oneshot(request.map(Body::new));
        let mut response = match timeout(REQUEST, answer).await {
            Ok(Ok(response)) => response,
            Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response(),
        };
        if self.stop.is_cancelled() {
            // Who asks again does so on another connection, and soon of somebody else.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_holds_all_connections() {
        let (mut held, greedy, other) =
            (Held::default(), IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut all: Vec<_> = (0..FROM_ONE_ADDRESS).map(|_| held.one_more(greedy).unwrap()).collect();
        assert!(held.one_more(greedy).is_none() && held.one_more(other).is_some());
        all.pop();
        assert!(held.one_more(greedy).is_some(), "one has ended");
        all.clear();
        held.forget_ended();
        assert!(held.0.is_empty());
    }
}
