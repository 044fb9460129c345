//! Connections: TLS, limits, and an end that cuts nobody off.
//!
//! Whoever reaches the address may connect, so nobody may hold a connection by doing nothing, or all of them.

use std::{sync::Arc, time::Duration};

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
        loop {
            let has_room = connections.len() < CONNECTIONS;
            tokio::select! {
                () = &mut drained => break,
                accepted = listener.accept(), if has_room => match accepted {
                    Ok((stream, _)) => {
                        let connection = Connection { router: self.router.clone(), stop: stop.clone() };
                        connections.spawn(connection.serve(acceptor.clone(), stream, graceful.watcher()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(Duration::from_millis(100)).await;
                    }
                },
                // One that panicked was said by the panic, and takes nobody along.
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        if timeout(FINISH, graceful.shutdown()).await.is_err() {
            tracing::warn!("some requests did not end within {FINISH:?}");
        }
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
