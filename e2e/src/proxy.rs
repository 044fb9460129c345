//! A proxy in front of an API server, for one daemon: it shows each request to the daemon's [`Life`] before it passes it on. It has the API
//! server's own certificate, and passes the daemon's own token on, so that neither of the two notices it.

use std::{
    fs, io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use fleet::Cluster;
use http::{
    HeaderMap, Request, Response, Uri,
    header::{CONNECTION, HOST, TRANSFER_ENCODING},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    accept,
    life::{Fall, Fate, Life},
    shared::RUNTIME,
    trap::{Side, is_write, named},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A proxy, until it is dropped.
pub struct Proxy {
    /// Where daemons find it.
    pub server: String,
    /// So many connections that come next are not accepted.
    refuses: Arc<AtomicUsize>,
    _serves: JoinSet<()>,
}

impl Proxy {
    /// A proxy in front of the cluster's API server.
    pub async fn of(cluster: &Cluster, life: Arc<Life>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let server = format!("https://{}", listener.local_addr().unwrap());
        let there = Arc::new(There { server: cluster.server(), client: client(cluster), life });
        let acceptor = acceptor(cluster, &[]);
        let (mut serves, refuses) = (JoinSet::new(), Arc::new(AtomicUsize::default()));
        let refused = refuses.clone();
        let served = accept::each(listener, move |stream| {
            let one_less = |refuses: usize| refuses.checked_sub(1);
            let is_refused = refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
            let stream = (!is_refused).then_some(stream);
            connection(stream, acceptor.clone(), there.clone())
        });
        serves.spawn_on(served, RUNTIME.handle());
        Self { server, refuses, _serves: serves }
    }

    /// Refuses so many connections that come next, as an API server that is away does.
    pub fn refuse(&self, connections: usize) {
        self.refuses.store(connections, Ordering::Relaxed);
    }
}

/// The API server behind the proxy, and whose requests go there.
struct There {
    server: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    life: Arc<Life>,
}

/// Serves a connection, unless it is refused.
async fn connection(
    stream: Option<TcpStream>,
    acceptor: TlsAcceptor,
    there: Arc<There>,
) -> Result<(), Failure> {
    let Some(stream) = stream else { return Ok(()) };
    let process = there.life.process();
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    let service = service_fn(|request| there.pass(process, request));
    Ok(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?)
}

impl There {
    /// Passes a request on; an error, which ends the connection without an answer, if it must not arrive or its answer must not.
    async fn pass(&self, process: u64, request: Request<Incoming>) -> Result<Response<Incoming>, Failure> {
        let (mut parts, body) = request.into_parts();
        let body = if is_write(&parts.method) { body.collect().await?.to_bytes() } else { Bytes::new() };
        let fate = self.life.judge(process, &parts.method, &parts.uri, &body);
        let write = named(&parts.method, &parts.uri);
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = format!("{}{path}", self.server).parse::<Uri>()?;
        forget_connection(&mut parts.headers);
        let request = Request::from_parts(parts, Full::new(body));
        let side = match fate {
            Fate::Passes => return Ok(self.client.request(request).await?),
            Fate::Lost => return Err("its sender is dead".into()),
            Fate::Kills(side) => side,
        };
        let answer = match side {
            Side::Before => "never sent".to_owned(),
            Side::After => match self.client.request(request).await {
                Ok(answer) => answer.status().to_string(),
                Err(error) => error.to_string(),
            },
        };
        self.life.end(Fall { write, answer }).await;
        Err("its sender is dead".into())
    }
}

/// What a proxy does not pass on.
pub(crate) fn forget_connection(headers: &mut HeaderMap) {
    for of_connection in [HOST, CONNECTION, TRANSFER_ENCODING] {
        headers.remove(of_connection);
    }
}

/// Who is taken for the cluster's API server, and speaks these protocols.
pub(crate) fn acceptor(cluster: &Cluster, protocols: &[&[u8]]) -> TlsAcceptor {
    let certificates = certificates(&pki(cluster, "apiserver.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&pki(cluster, "apiserver.key")).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key);
    let mut config = config.unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Who trusts the cluster's API server.
pub(crate) fn client(cluster: &Cluster) -> Client<HttpsConnector<HttpConnector>, Full<Bytes>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&pki(cluster, "ca.crt")).unwrap());
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1();
    Client::builder(TokioExecutor::new()).build(https.build())
}

fn certificates(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(io::Error::other)
}

fn pki(cluster: &Cluster, file: &str) -> Vec<u8> {
    fs::read(cluster.dir().join("pki").join(file)).unwrap()
}
