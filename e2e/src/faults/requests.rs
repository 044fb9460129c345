//! Requests on their way, and their answers.

use std::{convert::Infallible, io, net::Ipv4Addr, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use fleet::Cluster;
use futures::{Stream, stream};
use http::{
    Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::Fault;
use crate::{
    accept,
    proxy::{acceptor, client, forget_connection},
    shared::RUNTIME,
};

type Failure = io::Error;
type Body = UnsyncBoxBody<Bytes, Failure>;

/// How often a connection is told that it shall end.
const AGAIN: Duration = Duration::from_millis(500);
/// What a watch is told whose version is too old.
const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}
"#;

/// Passes requests to an API server.
pub(super) struct Requests {
    pub(super) address: SocketAddr,
    fault: Arc<watch::Sender<Option<Fault>>>,
    _serves: JoinSet<()>,
}

impl Requests {
    pub(super) async fn to(cluster: &Cluster) -> Arc<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (fault, mut serves) = (Arc::new(watch::Sender::new(None)), JoinSet::new());
        let there = There { server: cluster.server(), client: client(cluster), fault: fault.subscribe() };
        let acceptor = acceptor(cluster, &[b"h2", b"http/1.1"]);
        let served =
            accept::each(listener, move |stream| connection(stream, acceptor.clone(), there.clone()));
        serves.spawn_on(served, RUNTIME.handle());
        Arc::new(Self { address, fault, _serves: serves })
    }

    pub(super) fn set(&self, fault: Option<Fault>) {
        self.fault.send_replace(fault);
    }
}

/// The API server behind it.
#[derive(Clone)]
struct There {
    server: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    fault: watch::Receiver<Option<Fault>>,
}

/// Serves one connection as its client wants it.
async fn connection(stream: TcpStream, acceptor: TlsAcceptor, there: There) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let (stream, fault) = (TokioIo::new(stream), there.fault.clone());
    let service = service_fn(move |request| {
        let there = there.clone();
        async move { there.pass(request).await }
    });
    if is_h2 {
        let mut connection =
            pin!(http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service));
        loop {
            tokio::select! {
                ended = connection.as_mut() => return ended.map_err(io::Error::other),
                () = shall_end(fault.clone()) => connection.as_mut().graceful_shutdown(),
            }
        }
    }
    let mut connection = pin!(http1::Builder::new().serve_connection(stream, service));
    loop {
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(io::Error::other),
            () = shall_end(fault.clone()) => connection.as_mut().graceful_shutdown(),
        }
    }
}

async fn shall_end(mut fault: watch::Receiver<Option<Fault>>) {
    tokio::time::sleep(AGAIN).await;
    if fault.wait_for(|fault| *fault == Some(Fault::GoAway)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl There {
    /// Passes a request on; an error ends the connection, or its stream.
    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Body>, Failure> {
        let fault = *self.fault.borrow();
        match fault {
            Some(Fault::TooMany) => return Ok(refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
            Some(Fault::Unavailable) => {
                return Ok(refused(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"));
            }
            _ => {}
        }
        let (mut parts, body) = request.into_parts();
        let query = parts.uri.query().unwrap_or_default();
        let is_watch = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = format!("{}{path}", self.server).parse::<Uri>().map_err(io::Error::other)?;
        parts.version = Version::HTTP_11;
        forget_connection(&mut parts.headers);
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let answer = self.client.request(Request::from_parts(parts, Full::new(body))).await;
        let answer = answer.map_err(io::Error::other)?;
        let (mut parts, body) = answer.into_parts();
        forget_connection(&mut parts.headers);
        if is_watch && parts.status.is_success() {
            let events = events(body, self.fault.clone());
            return Ok(Response::from_parts(parts, StreamBody::new(events).boxed_unsync()));
        }
        let whole = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let head = String::from_utf8_lossy(&whole[..whole.len().min(200)]).into_owned();
        if fault == Some(Fault::ResetInList) && head.contains("List\"") {
            parts.headers.remove(CONTENT_LENGTH);
            let half = whole.slice(..whole.len() / 2);
            let broken = stream::iter([Ok(Frame::data(half)), Err(Failure::other("a list breaks off"))]);
            return Ok(Response::from_parts(parts, StreamBody::new(broken).boxed_unsync()));
        }
        Ok(Response::from_parts(parts, whole_body(whole)))
    }
}

fn whole_body(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// As API servers refuse.
fn refused(code: StatusCode, reason: &str) -> Response<Body> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16(),
    });
    let answer = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
    let answer = answer.header(RETRY_AFTER, "1");
    answer.body(whole_body(status.to_string().into())).unwrap()
}

/// How far a watch is.
enum Events {
    Come(Incoming, watch::Receiver<Option<Fault>>),
    Break,
    End,
}

/// The events of a watch, until a fault ends it.
fn events(
    body: Incoming,
    fault: watch::Receiver<Option<Fault>>,
) -> impl Stream<Item = Result<Frame<Bytes>, Failure>> {
    stream::unfold(Events::Come(body, fault), |events| async move {
        let (mut body, mut fault) = match events {
            Events::Come(body, fault) => (body, fault),
            Events::Break => return Some((Err(Failure::other("a watch breaks off")), Events::End)),
            Events::End => return None,
        };
        let mut ending = fault.clone();
        let is_too_old = |fault: &Option<Fault>| matches!(fault, Some(Fault::Expired | Fault::ResetInList));
        tokio::select! {
            Ok(_) = ending.wait_for(is_too_old) => {
                Some((Ok(Frame::data(EXPIRED.into())), Events::End))
            }
            frame = body.frame() => match frame? {
                Ok(frame) if *fault.borrow_and_update() == Some(Fault::ResetInEvent) => {
                    let bytes = frame.into_data().unwrap_or_default();
                    let half = bytes.slice(..bytes.len() / 2);
                    Some((Ok(Frame::data(half)), Events::Break))
                }
                Ok(frame) => Some((Ok(frame), Events::Come(body, fault))),
                Err(error) => Some((Err(Failure::other(error)), Events::End)),
            }
        }
    })
}
